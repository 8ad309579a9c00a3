"""Models that are straight lines: f(x) = x'W + c, from kernels that are linear in x."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..kernels.columns import as_table
from .dictionary import Expansion
from .lowrank.dictionary import FactorExpansion
from .lowrank.maps import ExactMap, NystroemMap
from .sources import FeatureSource, KernelSource

#: kernel m, its coefficients (n, J) and offsets (J,) in f = sum_m K_m(x, .) coef_m + offset_m
Term = tuple[int, FloatArray, FloatArray]


class NotLinearError(ValueError):
    """Why a model is not a linear function of the columns."""


def affine_terms(source: KernelSource, terms: Iterable[Term], size: int) -> tuple[FloatArray, FloatArray]:
    """W of shape (n_features, size) and c of shape (size,) with sum_m K_m(x, .) coef_m + offset_m = x'W + c.

    Raises `NotLinearError` where a kernel is not linear in x.
    """
    if not isinstance(source, FeatureSource):
        raise NotLinearError("the kernels are precomputed matrices, which have no columns")
    Z = as_table(source.X)
    W, c = np.zeros((Z.shape[1], size)), np.zeros(size)
    for m, coef, offset in terms:
        part = source.kernels[m].affine(Z, coef)
        if part is None:
            raise NotLinearError(f"kernel {source.names[m]!r} is not linear")
        W += part[0]
        c += part[1] + offset
    return W, c


def affine_expansion(expansion: Expansion) -> tuple[FloatArray, FloatArray]:
    """`affine_terms` of the functions of an MKL model."""
    if isinstance(expansion, FactorExpansion):
        return _affine_factors(expansion)
    terms = [_checked(term, expansion.source) for term in expansion.terms]
    return affine_terms(expansion.source, terms, expansion.n_functions)


def refuse_rows_on_the_sphere(needs_diag: bool) -> None:
    """Raise for a normalisation that scales every new sample by its own length."""
    if needs_diag:
        raise NotLinearError("normalize='spherical' divides by the length of each sample")


def _checked(term: Any, source: KernelSource) -> Term:
    if not hasattr(term, "m"):  # kernels computed together are Gaussian
        raise NotLinearError(f"kernel {source.names[int(source.together[term.kernels[0]])]!r} is not linear")
    refuse_rows_on_the_sphere(term.rule.needs_diag)
    return term.m, term.coef, term.offset


def _affine_factors(expansion: FactorExpansion) -> tuple[FloatArray, FloatArray]:
    """The same for kernels by their features: z(x) = phi(x) - mean, and phi is linear with the kernel."""
    source = expansion.source
    assert isinstance(source, FeatureSource)
    p = as_table(source.X).shape[1]
    W, c = np.zeros((p, expansion.n_functions)), np.zeros(expansion.n_functions)
    for term in expansion.terms:
        features, coef = term.features, term.coef  # type: ignore[union-attr]
        refuse_rows_on_the_sphere(features.spherical)
        part = _affine_map(features.map, coef, p)
        if part is None:
            raise NotLinearError(f"kernel {source.names[term.m]!r} is not linear")  # type: ignore[union-attr]
        W += part[0]
        c += part[1] - (0.0 if features.mean is None else features.mean @ coef)
    return W, c


def _affine_map(phi: Any, coef: FloatArray, p: int) -> tuple[FloatArray, FloatArray] | None:
    """W and c with phi(x)'coef = x'W + c, or None."""
    if isinstance(phi, NystroemMap):
        found: tuple[FloatArray, FloatArray] | None = phi.kernel.affine(phi.landmarks, phi.root @ coef)
        return found
    if not isinstance(phi, ExactMap) or phi.kernel.affine(np.zeros((1, p)), np.zeros((1, 1))) is None:
        return None
    at_zero = phi(np.zeros((1, p)))
    return (phi(np.eye(p)) - at_zero) @ coef, at_zero[0] @ coef
