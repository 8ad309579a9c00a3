"""Samples that lack a whole view: kernels masked, or completed by conditional mean embeddings.

s_im = 1 when sample i has what kernel m reads, O_m = {i : s_im = 1}. Every kernel is centred and scaled on
O_m alone, so that 0 is the mean embedding of the samples that have it.

    mask       K_m^s,ij = s_im s_jm K_m,ij, and an indicator kernel for each view with gaps
    complete   K_m^ = A K_m,OO A',  a_i = e_i for i in O_m,  a_i = (S_OO + lambda I)^-1 S_Oi for the others

with S = sum of K_l^s over the kernels l of the other views, so that one A serves all kernels of a view. Both
are positive semidefinite, whatever the pattern of gaps, and a new sample is treated like a training sample.
"""

from .completion import RIDGES, left_out_errors
from .sources import MISSING, GapSource, with_gaps
from .terms import GapFactorTerm, GapTerm, Indicator, IndicatorTerm

__all__ = [
    "MISSING",
    "RIDGES",
    "GapFactorTerm",
    "GapSource",
    "GapTerm",
    "Indicator",
    "IndicatorTerm",
    "left_out_errors",
    "with_gaps",
]
