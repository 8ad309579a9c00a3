"""Block q-norm of the components."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from .base import Regularizer, indicator, power_norm
from .lp_norm import LpNorm


class BlockNorm(Regularizer):
    """Omega(n) = 1/2 ||n||_q^2,  Omega*(r) = 1/2 ||r||_{q*}^2,  1/q + 1/q* = 1.

    For q <= 2 it is the lp norm of the weights with p = q / (2 - q): q = 1 is sparse, q = 2
    the uniform sum. For q > 2 components are made more equal than the uniform sum makes them;
    the weights then are d = 1 / theta with ||theta||_rho <= 1, rho = q / (q - 2), and

        ||r||_{q*}^2 = min_theta sum_m r_m^2 / theta_m,   theta_m ~ r_m^(2/(rho+1))

    is maximised jointly over alpha and theta. Kloft et al. (2011), section 3; their update
    (33) can diverge and is not used.

    Parameters
    ----------
    q : float, default=2.0
        From 1 to infinity.

    Examples
    --------
    >>> import numpy as np
    >>> BlockNorm(q=np.inf).penalty(np.array([3.0, 1.0]))
    4.5
    """

    name = "block"

    def __init__(self, q: float = 2.0) -> None:
        self.q = q

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Only q = 1 gives weights of exactly zero."""
        return self._order() == 1.0

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """q = 1 is the simplex."""
        return self.sparse

    @property
    def ascends(self) -> bool:
        """Whether weights come from a maximum, q > 2, not from a minimum."""
        return self._order() > 2.0

    def price(self, weights: FloatArray) -> float:
        if self.ascends:
            return indicator(power_norm(1.0 / np.maximum(weights, 1e-300), self._rho()) - 1.0)
        return self._lp().price(weights)

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of the lp constraint: zero."""
        return self._lp().price_slopes(weights)

    def penalty(self, norms: FloatArray) -> float:
        return 0.5 * power_norm(norms, self._order()) ** 2

    def weights(self, norms: FloatArray) -> FloatArray:
        if self.ascends:
            raise ValueError("BlockNorm with q > 2 has no weights of given norms; use `weights_from_dual`.")
        return self._lp().weights(norms)

    def weights_from_dual(self, dual_norms: FloatArray) -> FloatArray:
        """1 / theta with theta_m ~ r_m^(2/(rho+1)), kept away from zero."""
        top = dual_norms.max(initial=0.0)
        share = dual_norms / top if top > 0.0 else np.ones(dual_norms.shape)
        raised = np.maximum(share, 1e-6) ** (2.0 / (self._rho() + 1.0))
        return np.asarray(power_norm(raised, self._rho()) / raised)

    def initial_weights(self, n_kernels: int) -> FloatArray:
        equal = np.ones(n_kernels)
        return self.weights_from_dual(equal) if self.ascends else self.weights(equal)

    def conjugate(self, dual_norms: FloatArray) -> float:
        q = self._order()
        dual = np.inf if q == 1.0 else 1.0 if np.isinf(q) else q / (q - 1.0)
        return 0.5 * power_norm(dual_norms, dual) ** 2

    def _order(self) -> float:
        if not self.q >= 1:
            raise ValueError(f"BlockNorm: q={self.q!r} must be at least 1.")
        return float(self.q)

    def _lp(self) -> LpNorm:
        q = self._order()
        return LpNorm(np.inf if q == 2.0 else q / (2.0 - q))

    def _rho(self) -> float:
        q = self._order()
        return 1.0 if np.isinf(q) else q / (q - 2.0)
