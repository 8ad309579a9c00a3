"""Matern kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, kve

from .._backend import follow, to_host
from .bandwidth import resolve_gamma
from .base import Kernel, positive
from .bases import Base, Euclidean, SquaredEuclidean, squared_euclidean
from .columns import Columns

MAX_NU = 100.0  # beyond it, Gamma(nu) leaves the range of floating-point numbers


class Matern(Kernel):
    """Matern kernel of smoothness nu.

    With t = sqrt(2 nu) ||x - z|| / (factor * length_scale),
    k(x, z) = 2^(1 - nu) / Gamma(nu) * t^nu K_nu(t), which is

        nu = 1/2    exp(-t)
        nu = 3/2    (1 + t) exp(-t)
        nu = 5/2    (1 + t + t^2 / 3) exp(-t)
        nu = inf    exp(-||x - z||^2 / (2 (factor * length_scale)^2)), the Gaussian kernel.

    Parameters
    ----------
    length_scale : float, "scale", "weighted" or "median", default="scale"
        "scale", "weighted" and "median" are 1 / sqrt(2 gamma) with the gamma of those rules in `RBF`, so
        ``Matern("scale", nu=inf)`` is ``RBF("scale")``.
    nu : float, default=1.5
        Functions of the space are ceil(nu) - 1 times differentiable. At most 100, or inf.
    factor : float, default=1.0
        Multiplies `length_scale`.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    length_scale_ : float
        The value in use, factor included.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(length_scale=2.0, nu=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    name = "matern"
    bandwidth = "length_scale"

    def __init__(
        self,
        length_scale: float | str = "scale",
        nu: float = 1.5,
        factor: float = 1.0,
        columns: Columns = None,
    ) -> None:
        self.length_scale = length_scale
        self.nu = nu
        self.factor = factor
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        if self.nu != np.inf and positive(self.nu, "nu") > MAX_NU:
            raise ValueError(f"nu={self.nu!r}: above {MAX_NU:g} use nu=inf, the Gaussian kernel.")
        self.length_scale_ = positive(self.factor, "factor") * self._length_scale(X, sample_weight)

    def _length_scale(self, X: Any, sample_weight: np.ndarray | None) -> float:
        if not isinstance(self.length_scale, str):
            return positive(self.length_scale, "length_scale")
        gamma = resolve_gamma(
            self.length_scale, X, sample_weight, squared_euclidean, power=2, argument="length_scale"
        )
        return float(1.0 / np.sqrt(2.0 * gamma))

    @property
    def base(self) -> Base:  # type: ignore[override]
        """||x - z||, or its square for the Gaussian kernel."""
        return SquaredEuclidean() if self.nu == np.inf else Euclidean()

    def form(self) -> tuple[Any, ...] | None:
        """("exp", r, c_1, ...) for k = exp(r b) (1 + c_1 b + c_2 b^2); None for other nu than those above."""
        if self.nu == np.inf:
            return ("exp", -0.5 / self.length_scale_**2)
        s = float(np.sqrt(2.0 * self.nu)) / self.length_scale_
        terms = {0.5: (), 1.5: (s,), 2.5: (s, s * s / 3.0)}.get(self.nu)
        return None if terms is None else ("exp", -s, *terms)

    def of_base(self, B: Any, xp: Any) -> Any:
        form = self.form()
        if form is None:  # Bessel functions are computed with the host
            t = to_host(B)
            scale = float(np.sqrt(2.0 * self.nu)) / self.length_scale_
            return follow(_general(t.astype(np.float64) * scale, float(self.nu)).astype(t.dtype), B)
        _, rate, *terms = form
        E = B * rate
        xp.exp(E, out=E)
        if terms:
            P = B * terms[-1]
            for coefficient in terms[-2::-1]:
                P += coefficient
                P *= B
            P += 1.0
            E *= P
        return E


def _general(t: np.ndarray, nu: float) -> np.ndarray:
    """2^(1 - nu) / Gamma(nu) t^nu K_nu(t), in logarithms: its factors overflow long before it does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_k = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(t) + np.log(kve(nu, t)) - t
    # K_nu overflows only near t = 0, where k = 1 - t^2 / (4 (nu - 1)) + O(t^4) for nu > 1
    near_zero = 1.0 - t**2 / (4.0 * (nu - 1.0)) if nu > 1.0 else np.ones_like(t)
    finite = np.isfinite(log_k)
    return np.where(finite, np.exp(np.where(finite, np.minimum(log_k, 0.0), 0.0)), near_zero)
