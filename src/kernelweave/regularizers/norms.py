"""Norms of the weights or of the components: lp, block q, elastic net, and the uniform sum."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from .._typing import FloatArray
from .base import Regularizer, indicator, power_norm

#: of kernels that all cost the same
NO_COSTS: FloatArray = np.ones(())


class LpNorm(Regularizer):
    """lp-norm multiple kernel learning, Ivanov or Tikhonov; p* = p/(p-1), s = r^2.

    form="constraint":  h(d) = 0 if ||d||_p <= 1, else +inf

        weights    d_m = n_m^(2/(p+1)) / (sum_k n_k^(2p/(p+1)))^(1/p)
        penalty    1/2 (sum_m n_m^q)^(2/q),  q = 2p/(p+1)
        conjugate  1/2 ||s||_{p*}

    form="penalty":  h(d) = sum_m d_m^p / p

        weights    d_m = n_m^(2/(p+1))
        penalty    1/2 (1 + 1/p) sum_m n_m^(2p/(p+1))
        conjugate  1/2 sum_m s_m^{p*} / p*;  p = 1: 0 if all r_m <= 1, else +inf

    p = 1 is sparse (the simplex of classical MKL), larger p spreads the weights, p = inf is
    the uniform sum. Both forms give the same models, at different C (`equivalent_cost`). Kloft,
    Brefeld, Sonnenburg & Zien (2011), sections 2-4 and Theorem 1.

    Notes
    -----
    Special cases of Kloft et al. (2011), section 3:

    * ``LpNorm(p=1)`` with the hinge loss is the QCQP of Lanckriet et al. (2004) and Bach et al.
      (2004):  max_alpha sum_i |alpha_i| - t/2  subject to  alpha' K_m alpha <= t for every m.
    * ``LpNorm(p=1, costs=traces)`` with traces_m = tr(K_m) is the same under tr(K_d) <= 1.
    * ``LpNorm(p=np.inf)`` is the sum of the kernels, one support vector machine.

    Parameters
    ----------
    p : float, default=2.0
        From 1 to infinity.
    form : {"constraint", "penalty"}, default="constraint"
    costs : array-like of shape (M,), optional
        Positive costs of the kernels: d_m is replaced by costs_m d_m in h (weighted lp norm).

    Examples
    --------
    >>> import numpy as np
    >>> LpNorm(p=1).weights(np.array([3.0, 1.0]))
    array([0.75, 0.25])
    >>> LpNorm(p=1, form="penalty").weights(np.array([3.0, 1.0]))
    array([3., 1.])
    """

    name = "lp"
    per_kernel = ("costs",)

    def __init__(self, p: float = 2.0, form: str = "constraint", costs: Any = None) -> None:
        self.p = p
        self.form = form
        self.costs = costs

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Only p = 1 gives weights of exactly zero."""
        return self._checked()[0] == 1.0

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """The constraint p = 1 is the simplex."""
        p, penalised, _ = self._checked()
        return p == 1.0 and not penalised

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """The penalty p = 1 is the sum of norms."""
        p, penalised, _ = self._checked()
        return p == 1.0 and penalised

    def price(self, weights: FloatArray) -> float:
        p, penalised, costs = self._checked()
        costly = weights * costs
        return float((costly**p).sum() / p) if penalised else indicator(power_norm(costly, p) - 1.0)

    def generators(self, n_kernels: int) -> FloatArray:
        """d = z / costs: the costs vanish from the price of z."""
        return np.asarray(1.0 / (self._checked()[2] * np.ones(n_kernels)))

    def price_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h' and h'' of the penalty in z; of the constraint only its domain matters."""
        p, penalised, _ = self._checked()
        if not penalised:
            return np.zeros_like(z), np.zeros_like(z)
        floor = np.maximum(z, 1e-300)
        return floor ** (p - 1.0), (p - 1.0) * floor ** (p - 2.0)

    def penalty(self, norms: FloatArray) -> float:
        p, penalised, costs = self._checked()
        costly = norms * np.sqrt(costs)  # n^2 / d = (n sqrt(c))^2 / (c d)
        q = 2.0 if np.isinf(p) else 2.0 * p / (p + 1.0)
        if penalised:
            return 0.5 * (1.0 + 1.0 / p) * float((costly**q).sum())
        return 0.5 * power_norm(costly, q) ** 2

    def weights(self, norms: FloatArray) -> FloatArray:
        p, penalised, costs = self._checked()
        costly = norms * np.sqrt(costs)
        if np.isinf(p):
            return np.ones(norms.shape) / costs
        if penalised:
            return np.asarray(costly ** (2.0 / (p + 1.0)) / costs)
        top = costly.max(initial=0.0)
        raised = (costly / top) ** (2.0 / (p + 1.0)) if top > 0.0 else np.ones(norms.shape)
        return np.asarray(raised / (power_norm(raised, p) * costs))

    def weights_from_dual(self, dual_norms: FloatArray) -> FloatArray:
        """2 dOmega*/ds, for p > 1: costs d = (s / costs)^(1/(p-1)), of the constraint on its sphere."""
        p, penalised, costs = self._checked()
        if p == 1.0:
            raise ValueError(
                "LpNorm(p=1) has no weights of given dual norms: a price of many weights is one."
            )
        if np.isinf(p):
            return np.ones(dual_norms.shape) / costs
        s, power = dual_norms**2 / costs, 1.0 / (p - 1.0)
        if penalised:
            return np.asarray(s**power / costs)
        top = s.max(initial=0.0)
        raised = (s / top) ** power if top > 0.0 else np.ones(dual_norms.shape)
        return np.asarray(raised / (power_norm(raised, p) * costs))

    def conjugate(self, dual_norms: FloatArray) -> float:
        p, penalised, costs = self._checked()
        s = dual_norms**2 / costs
        dual = 1.0 if np.isinf(p) else np.inf if p == 1.0 else p / (p - 1.0)
        if not penalised:
            return 0.5 * power_norm(s, dual)
        if p == 1.0:
            return indicator(float(s.max(initial=0.0)) - 1.0)
        return 0.5 * float((s**dual).sum()) / dual

    def dual_scale(self, dual_norms: FloatArray) -> float:
        p, penalised, costs = self._checked()
        if p > 1.0 or not penalised:
            return 1.0
        return float(min(1.0, 1.0 / max(float((dual_norms / np.sqrt(costs)).max()), 1e-300)))

    def _checked(self) -> tuple[float, bool, FloatArray]:
        """p, whether h is a penalty, and the costs."""
        if not (isinstance(self.p, Real) and self.p >= 1):
            raise ValueError(f"LpNorm: p={self.p!r} must be at least 1; for sparser models use p=1.")
        if self.form not in ("constraint", "penalty"):
            raise ValueError(f"LpNorm: form={self.form!r} must be 'constraint' or 'penalty'.")
        p, costs = float(self.p), NO_COSTS
        if self.costs is not None:
            costs = np.asarray(self.costs, dtype=np.float64)
            if not (costs > 0).all():
                raise ValueError("LpNorm: costs must be positive.")
        return p, self.form == "penalty" and p < np.inf, costs  # p = inf is a constraint in either form


def equivalent_cost(
    C: float, norms: FloatArray, p: float, to: str, mu: float = 1.0, costs: Any = None
) -> float:
    """The C at which the other form of the lp norm has the same model.

    The penalty mu sum_m d_m^p / p has at component norms n the weights d_m = (n_m^2 / mu)^(1/(p+1)),
    the constraint has d / ||d||_p. Dividing the objective by the scale of the weights gives

        C_constraint = ||d||_p C_penalty

    and the kernel weights differ by the same factor. Kloft et al. (2011), Theorem 1.

    Parameters
    ----------
    C : float
        Cost in the form the model was fitted with.
    norms : ndarray of shape (M,)
        Component norms of the model (`norms_`), the same in both forms.
    p : float
    to : {"constraint", "penalty"}
        The form wanted.
    mu : float, default=1.0
        Strength of the penalty; ``LpNorm(form="penalty")`` has 1.
    costs : array-like of shape (M,), optional
        Those of the `LpNorm`.

    Examples
    --------
    >>> import numpy as np
    >>> equivalent_cost(10.0, np.array([3.0, 1.0]), p=1, to="constraint")
    40.0
    >>> equivalent_cost(10.0, np.array([3.0, 1.0]), p=1, to="constraint", mu=4.0)
    20.0
    """
    if not mu > 0:
        raise ValueError(f"mu={mu!r} must be positive.")
    rule = LpNorm(p, "penalty", costs)
    d = rule.weights(np.asarray(norms, dtype=np.float64)) * mu ** (-1.0 / (p + 1.0))
    size = power_norm(d * rule._checked()[2], p)
    factors = {"constraint": size, "penalty": 1.0 / size}
    if to not in factors:
        raise ValueError(f"to={to!r} must be 'constraint' or 'penalty'.")
    return float(C * factors[to])


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
    def ascends(self) -> bool:  # type: ignore[override]
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
        """1 / theta with theta_m ~ r_m^(2/(rho+1)), kept away from zero; q <= 2: those of the lp norm."""
        if not self.ascends:
            return self._lp().weights_from_dual(dual_norms)
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


class Uniform(Regularizer):
    """h(d) = 0 if max_m d_m <= 1, else +inf:  the uniform sum, lp-norm at p = inf.

        weights    d_m = 1
        penalty    1/2 sum_m n_m^2
        conjugate  1/2 sum_m r_m^2

    The baseline every learned weighting has to beat. Kloft et al. (2011), section 2.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform().weights(np.array([3.0, 0.0]))
    array([1., 1.])
    """

    name = "uniform"

    def price(self, weights: FloatArray) -> float:
        return indicator(float(weights.max(initial=0.0)) - 1.0)

    def penalty(self, norms: FloatArray) -> float:
        return 0.5 * float(norms @ norms)

    def weights(self, norms: FloatArray) -> FloatArray:
        return np.ones(norms.shape)

    def conjugate(self, dual_norms: FloatArray) -> float:
        return 0.5 * float(dual_norms @ dual_norms)


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
