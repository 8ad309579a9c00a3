"""Where the parameters of a kernel may lie: a box, or any closed convex set with a projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._typing import FloatArray


class Box(BaseEstimator):
    """lower <= d <= upper, one bound a parameter or one for all.

    Parameters
    ----------
    lower : float or array-like, default=0.0
        Non-negative.
    upper : float or array-like, optional
        Unbounded by default.

    Examples
    --------
    >>> import numpy as np
    >>> Box(upper=[1.0, 2.0]).project(np.array([3.0, -1.0]))
    array([1., 0.])
    """

    #: every parameter is projected on its own
    separable = True

    def __init__(self, lower: Any = 0.0, upper: Any = None) -> None:
        self.lower = lower
        self.upper = upper

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        lower, upper = self.bounds(len(d))
        return np.clip(d, lower, upper)

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Both bounds, one per parameter."""
        upper = np.inf if self.upper is None else self.upper
        try:
            low, high = (
                np.broadcast_to(np.asarray(side, dtype=np.float64), n_parameters)
                for side in (self.lower, upper)
            )
        except ValueError:
            raise ValueError(
                f"Box: bounds must be numbers, or one for each of the {n_parameters} parameters."
            ) from None
        if not ((low >= 0) & (low <= high)).all():
            raise ValueError("Box: bounds must satisfy 0 <= lower <= upper.")
        return low, high


class Projection(BaseEstimator):
    """The closed convex set onto which a function projects; it must lie in d >= 0.

    Parameters
    ----------
    function : callable
        ``function(d)`` returns the nearest point of the set.

    Examples
    --------
    >>> import numpy as np
    >>> ball = Projection(lambda d: np.maximum(d, 0) / max(1, np.linalg.norm(np.maximum(d, 0))))
    >>> ball.project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    separable = False

    def __init__(self, function: Callable[[FloatArray], FloatArray]) -> None:
        self.function = function

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        projected = np.asarray(self.function(d.copy()), dtype=np.float64)
        if projected.shape != d.shape or not (projected >= 0).all():
            raise ValueError(
                "Projection: function must return an array of the shape of d with no negative entries."
            )
        return projected


def resolve_constraint(constraint: Any) -> Box | Projection:
    """None is d >= 0, a function is a projection.

    Examples
    --------
    >>> resolve_constraint(None)
    Box()
    """
    if constraint is None:
        return Box()
    if hasattr(constraint, "project"):
        return constraint
    if callable(constraint):
        return Projection(constraint)
    raise ValueError(f"constraint={constraint!r}: expected None, a Box, or a projection function of d.")
