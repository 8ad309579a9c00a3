"""What a fitted model says, and how far to trust it: components, stability, alignments, plots."""

from __future__ import annotations

from .agreement import AttributionStability, attribution_stability
from .alignments import AlignmentDisplay, kernel_alignments
from .bands import BandsDisplay
from .components import ContributionDisplay, DropOneResult, contributions, drop_one
from .convergence import ConvergenceDisplay
from .explanation import Explanation, Importance, KernelAttribution, explain
from .explanation_plots import AttributionCurveDisplay, BeeswarmDisplay, WaterfallDisplay
from .pairs import Interactions, interactions
from .path import PathDisplay
from .stability import StabilityResult, stability_selection
from .survival import KaplanMeierDisplay, SurvivalCalibrationDisplay, SurvivalCurvesDisplay
from .weights import KernelWeightsDisplay

__all__ = [
    "AlignmentDisplay", "AttributionCurveDisplay", "AttributionStability", "BandsDisplay", "BeeswarmDisplay",
    "ContributionDisplay", "ConvergenceDisplay", "DropOneResult", "Explanation", "Importance", "Interactions",
    "KaplanMeierDisplay", "KernelAttribution", "KernelWeightsDisplay", "PathDisplay", "StabilityResult",
    "SurvivalCalibrationDisplay", "SurvivalCurvesDisplay", "WaterfallDisplay",
    "attribution_stability", "contributions", "drop_one",
    "explain", "interactions", "kernel_alignments", "stability_selection",
]  # fmt: skip
