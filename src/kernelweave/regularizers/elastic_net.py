"""Elastic net on the component norms."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Regularizer, indicator


class ElasticNet(Regularizer):
    """Omega(n) = a sum_m n_m + (1 - a)/2 sum_m n_m^2,  a = `l1_ratio`.

        price      h(d) = sum_m a^2 d_m / (1 - (1-a) d_m),  d_m < 1 / (1-a)
        weights    d_m = n_m / (a + (1-a) n_m)
        conjugate  1/(2 (1-a)) sum_m (r_m - a)_+^2;  a = 1: 0 if all r_m <= 1, else +inf

    a = 0 is the uniform sum, a = 1 the block 1-norm (group lasso); between them kernels are
    selected, and those selected share. Tomioka & Suzuki (2010), section 3 and Table 1.

    Notes
    -----
    With linear kernels on groups of columns, f_m = X_g w_g and n_m = ||w_g||:

    * ``MKLRegressor(per_group(groups, Linear()), regularizer=ElasticNet(l1_ratio=1), normalize=None)``
      is the group lasso of Yuan & Lin (2006),  C sum_i V + sum_g ||w_g||;
    * with groups that overlap, the latent group lasso of Jacob, Obozinski & Vert (2009): the
      support is a union of groups. Tomioka & Suzuki (2010), Examples 5 and 6.

    Parameters
    ----------
    l1_ratio : float, default=0.5
        Share of the sum of norms, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l1_ratio=0.5).weights(np.array([1.0, 0.0]))
    array([1., 0.])
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5) -> None:
        self.l1_ratio = l1_ratio

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Any share of the sum of norms selects."""
        return self._ratio() > 0.0

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """At l1_ratio = 1."""
        return self._ratio() == 1.0

    @property
    def max_weight(self) -> float:  # type: ignore[override]
        """The price is infinite from 1 / (1 - l1_ratio) on."""
        return float(np.inf) if self.homogeneous else 1.0 / (1.0 - self._ratio())

    def price(self, weights: FloatArray) -> float:
        a = self._ratio()
        if a == 0.0:
            return indicator(float(weights.max(initial=0.0)) - 1.0)
        room = 1.0 - (1.0 - a) * weights
        return np.inf if (room <= 0).any() else float((a**2 * weights / room).sum())

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h' = a^2 / (1 - (1-a) d)^2 and h'' = 2 a^2 (1-a) / (1 - (1-a) d)^3."""
        a = self._ratio()
        room = np.maximum(1.0 - (1.0 - a) * weights, 1e-12)
        return a**2 / room**2, 2.0 * a**2 * (1.0 - a) / room**3

    def penalty(self, norms: FloatArray) -> float:
        a = self._ratio()
        return a * float(norms.sum()) + 0.5 * (1.0 - a) * float(norms @ norms)

    def weights(self, norms: FloatArray) -> FloatArray:
        a = self._ratio()
        if a == 0.0:
            return np.ones(norms.shape)
        return np.asarray(norms / (a + (1.0 - a) * norms))

    def conjugate(self, dual_norms: FloatArray) -> float:
        a = self._ratio()
        if a == 1.0:
            return indicator(float(dual_norms.max(initial=0.0)) - 1.0)
        return 0.5 * float((np.maximum(dual_norms - a, 0.0) ** 2).sum()) / (1.0 - a)

    def dual_scale(self, dual_norms: FloatArray) -> float:
        return min(1.0, 1.0 / max(float(dual_norms.max()), 1e-300)) if self.homogeneous else 1.0

    def _ratio(self) -> float:
        if not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"ElasticNet: l1_ratio={self.l1_ratio!r} must be between 0 and 1.")
        return float(self.l1_ratio)
