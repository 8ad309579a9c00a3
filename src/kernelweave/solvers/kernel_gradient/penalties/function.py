"""Any differentiable function as a penalty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...._typing import FloatArray
from .base import Penalty


class FunctionPenalty(Penalty):
    """r(d) = function(d), with its gradient.

    Parameters
    ----------
    function : callable
        ``function(d)`` returns a number.
    slope : callable
        ``slope(d)`` returns the gradient, of the shape of d. `check_gradient=True` on the
        estimator compares the two.

    Examples
    --------
    >>> import numpy as np
    >>> FunctionPenalty(lambda d: (d**4).sum(), lambda d: 4 * d**3).value(np.array([1.0, 2.0]))
    17.0
    """

    name = "function"

    def __init__(
        self, function: Callable[[FloatArray], float], slope: Callable[[FloatArray], FloatArray]
    ) -> None:
        self.function = function
        self.slope = slope

    def check(self, n_parameters: int) -> None:
        for argument in ("function", "slope"):
            if not callable(getattr(self, argument)):
                raise ValueError(f"FunctionPenalty: {argument} is not callable: pass a function of d.")

    def value(self, d: FloatArray) -> float:
        return float(self.function(d))

    def gradient(self, d: FloatArray) -> FloatArray:
        gradient = np.asarray(self.slope(d), dtype=np.float64)
        if gradient.shape != d.shape:
            raise ValueError(
                f"FunctionPenalty: slope returned shape {gradient.shape}, expected {d.shape}, one entry a "
                "parameter."
            )
        return gradient
