"""Norms of the weights or of the components: lp, block q, elastic net, and the uniform sum."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .._typing import FloatArray
from .base import Regularizer, TwoForms, checked_form, indicator, power_norm

#: of kernels that all cost the same
NO_COSTS: FloatArray = np.ones(())


class LpNorm(TwoForms):
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
    def degree(self) -> float:
        """The penalty is ||costs d||_p^p / p."""
        return self._checked()[0]

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Only p = 1 gives weights of exactly zero."""
        return self.degree == 1.0

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """The constraint p = 1 is the simplex."""
        return self.degree == 1.0 and not self.penalised

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """The penalty p = 1 is the sum of norms."""
        return self.degree == 1.0 and self.penalised

    def size(self, weights: FloatArray) -> float:
        p, costs = self._checked()
        return power_norm(weights * costs, p)

    def generators(self, n_kernels: int) -> FloatArray:
        """d = z / costs: the costs vanish from the price of z."""
        return np.asarray(1.0 / (self._checked()[1] * np.ones(n_kernels)))

    def price_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h' and h'' of the penalty in z; of the constraint only its domain matters."""
        if not self.penalised:
            return np.zeros_like(z), np.zeros_like(z)
        p, floor = self.degree, np.maximum(z, 1e-300)
        return floor ** (p - 1.0), (p - 1.0) * floor ** (p - 2.0)

    def least(self, norms: FloatArray) -> float:
        p, costs = self._checked()
        q = 2.0 if np.isinf(p) else 2.0 * p / (p + 1.0)
        return power_norm(norms * np.sqrt(costs), q) ** 2  # n^2 / d = (n sqrt(c))^2 / (c d)

    def unit_weights(self, norms: FloatArray) -> FloatArray:
        p, costs = self._checked()
        if np.isinf(p):
            return np.ones(norms.shape) / costs
        costly = norms * np.sqrt(costs)
        top = costly.max(initial=0.0)
        raised = (costly / top) ** (2.0 / (p + 1.0)) if top > 0.0 else np.ones(norms.shape)
        return np.asarray(raised / (power_norm(raised, p) * costs))

    def log_slopes(self, norms: FloatArray) -> FloatArray:
        """k [m = l] - k x_l of the constraint, k = 2 / (p + 1), x_l the shares of (n_l sqrt(c_l))^(k p).

        The size of the weights of the penalty, A^(1/(p+1)), has the slopes k x_l: only k [m = l] is left.
        """
        p, costs = self._checked()
        k, each = 2.0 / (p + 1.0), np.eye(len(norms))
        if self.penalised or np.isinf(p):
            return k * each
        costly = norms * np.sqrt(costs)
        raised = (costly / costly.max()) ** (k * p)
        return np.asarray(k * (each - raised / raised.sum()))

    def most(self, dual_norms: FloatArray) -> float:
        p, costs = self._checked()
        return power_norm(dual_norms**2 / costs, conjugate_order(p))

    def weights_from_dual(self, dual_norms: FloatArray) -> FloatArray:
        """2 dOmega*/ds, for p > 1: costs d = (s / costs)^(1/(p-1)), of the constraint on its sphere."""
        p, costs = self._checked()
        if p == 1.0:
            raise ValueError(
                "LpNorm(p=1) has no weights of given dual norms: a price of many weights is one."
            )
        if np.isinf(p):
            return np.ones(dual_norms.shape) / costs
        s, power = dual_norms**2 / costs, 1.0 / (p - 1.0)
        if self.penalised:
            return np.asarray(s**power / costs)
        top = s.max(initial=0.0)
        raised = (s / top) ** power if top > 0.0 else np.ones(dual_norms.shape)
        return np.asarray(raised / (power_norm(raised, p) * costs))

    def largest_norm(self, scales: FloatArray, order: float) -> float:
        """max ||a d||_q over ||costs d||_p <= 1:  ||a / costs||_s, 1/s = 1/q - 1/p;  s = inf if q >= p."""
        p, costs = self._checked()
        share = 1.0 / order - 1.0 / p
        return power_norm(scales / costs, 1.0 / share if share > 0.0 else np.inf)

    def _checked(self) -> tuple[float, FloatArray]:
        """p and the costs."""
        if not (isinstance(self.p, Real) and self.p >= 1):
            raise ValueError(f"LpNorm: p={self.p!r} must be at least 1; for sparser models use p=1.")
        checked_form(self)
        if self.costs is None:
            return float(self.p), NO_COSTS
        costs = np.asarray(self.costs, dtype=np.float64)
        if not (costs > 0).all():
            raise ValueError("LpNorm: costs must be positive.")
        return float(self.p), costs


def conjugate_order(p: float) -> float:
    """p* with 1/p + 1/p* = 1."""
    return 1.0 if np.isinf(p) else np.inf if p == 1.0 else p / (p - 1.0)


class BlockNorm(TwoForms):
    """Block q-norms of the components, 1/q + 1/q* = 1.

        form="constraint":  Omega(n) = 1/2 ||n||_q^2       Omega*(r) = 1/2 ||r||_{q*}^2
        form="penalty":     Omega(n) = 1/q sum_m n_m^q     Omega*(r) = 1/q* sum_m r_m^{q*}

    For q <= 2 it is the lp norm of the weights with p = q / (2 - q): q = 1 is sparse, q = 2
    the uniform sum. For q > 2 components are made more equal than the uniform sum makes them. Omega is
    then a maximum over the weights, in place of a minimum,

        Omega(n) = 1/2 max_{d>0} ( sum_m n_m^2 / d_m + h(d) ),   rho = q / (q - 2)

        constraint   h(d) = 0 if ||1/d||_rho <= 1, else -inf     penalty   h(d) = -1/rho sum_m d_m^(-rho)

    and the dual, with Omega*(r) = 1/2 min_d ( sum_m d_m r_m^2 - h(d) ), is maximised jointly over alpha
    and theta = 1/d ~ r_m^(2/(rho+1)). Both forms have the same models, at different C
    (`equivalent_cost`). Kloft et al. (2011), sections 3 and 4.3 and Proposition 5, whose update (33) can
    diverge and is not used; Tomioka & Suzuki (2011), Table 1.

    The penalty has a unit, that of the targets: with large q it is nearly zero where n_m < 1 and steep
    beyond, and norms of 1e-3 to the power 16 are lost to rounding (a warning then says that the gap stays
    open). The constraint has no unit.

    Parameters
    ----------
    q : float, default=2.0
        From 1 to infinity; the penalty needs a finite one.
    form : {"constraint", "penalty"}, default="constraint"

    Examples
    --------
    >>> import numpy as np
    >>> BlockNorm(q=np.inf).penalty(np.array([3.0, 1.0]))
    4.5
    >>> BlockNorm(q=4, form="penalty").penalty(np.array([2.0, 0.0]))
    4.0
    """

    name = "block"

    def __init__(self, q: float = 2.0, form: str = "constraint") -> None:
        self.q = q
        self.form = form

    @property
    def degree(self) -> float:
        """That of the lp norm, p = q / (2 - q): negative for q > 2."""
        q = self._order()
        return np.inf if q == 2.0 else -1.0 if np.isinf(q) else q / (2.0 - q)

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Only q = 1 gives weights of exactly zero."""
        return self._order() == 1.0

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """The constraint q = 1 is the simplex."""
        return self.sparse and not self.penalised

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """The penalty q = 1 is the sum of norms."""
        return self.sparse and self.penalised

    @property
    def ascends(self) -> bool:  # type: ignore[override]
        """Whether weights come from a maximum, q > 2, not from a minimum."""
        return self._order() > 2.0

    def size(self, weights: FloatArray) -> float:
        """||d||_p; for q > 2, 1 / ||1/d||_rho, which is at least 1 under the constraint."""
        if self.ascends:
            return 1.0 / power_norm(1.0 / np.maximum(weights, 1e-300), -self.degree)
        return power_norm(weights, self.degree)

    def price(self, weights: FloatArray) -> float:
        if self.ascends and not self.penalised:
            return -indicator(1.0 - self.size(weights))
        return super().price(weights)

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of the lp norm."""
        return LpNorm(self.degree, self.form).price_slopes(weights)

    def least(self, norms: FloatArray) -> float:
        return power_norm(norms, self._order()) ** 2

    def most(self, dual_norms: FloatArray) -> float:
        return power_norm(dual_norms, conjugate_order(self._order())) ** 2

    def unit_weights(self, norms: FloatArray) -> FloatArray:
        if self.ascends:
            raise ValueError("BlockNorm with q > 2 has no weights of given norms; use `weights_from_dual`.")
        return LpNorm(self.degree).unit_weights(norms)

    def log_slopes(self, norms: FloatArray) -> FloatArray:
        """Those of the lp norm, q <= 2."""
        return LpNorm(self.degree, self.form).log_slopes(norms)

    def weights_from_dual(self, dual_norms: FloatArray) -> FloatArray:
        """1 / theta with theta_m ~ r_m^(2/(rho+1)), kept away from zero; q <= 2: those of the lp norm."""
        if not self.ascends:
            return LpNorm(self.degree, self.form).weights_from_dual(dual_norms)
        top, rho = dual_norms.max(initial=0.0), -self.degree
        share = dual_norms / top if top > 0.0 else np.ones(dual_norms.shape)
        raised = np.maximum(share, 1e-6) ** (2.0 / (rho + 1.0))
        unit = np.asarray(power_norm(raised, rho) / raised)
        # the least of B t + t^-rho / rho
        return self.most(dual_norms) ** (-1.0 / (rho + 1.0)) * unit if self.penalised and top > 0.0 else unit

    def initial_weights(self, n_kernels: int) -> FloatArray:
        equal = np.ones(n_kernels)
        return self.weights_from_dual(equal) if self.ascends else self.weights(equal)

    def largest_norm(self, scales: FloatArray, order: float) -> float:
        """That of the lp norm, q <= 2."""
        return LpNorm(self.degree).largest_norm(scales, order)

    def size_of_weights(self, norms: FloatArray, mu: float = 1.0, degree: float | None = None) -> float:
        """||n||_q^(2-q), at mu = 1."""
        if self.ascends and degree is not None:
            raise ValueError(f"degree={degree!r}: BlockNorm with q > 2 bounds no norm of the weights.")
        if np.isinf(self._order()):
            raise ValueError("BlockNorm: q=inf has no penalty form; use a finite q.")
        return super().size_of_weights(norms, mu, degree)

    def _order(self) -> float:
        if not (isinstance(self.q, Real) and self.q >= 1):
            raise ValueError(f"BlockNorm: q={self.q!r} must be at least 1.")
        if checked_form(self) == "penalty" and np.isinf(self.q):
            raise ValueError("BlockNorm: q=inf has no penalty form; use a finite q.")
        return float(self.q)


class Uniform(TwoForms):
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
    form = "constraint"
    degree = np.inf  # the limit of the lp penalty is the constraint

    def size(self, weights: FloatArray) -> float:
        return float(weights.max(initial=0.0))

    def least(self, norms: FloatArray) -> float:
        return float(norms @ norms)

    def most(self, dual_norms: FloatArray) -> float:
        return float(dual_norms @ dual_norms)

    def unit_weights(self, norms: FloatArray) -> FloatArray:
        return np.ones(norms.shape)


class ElasticNet(Regularizer):
    """Omega(n) = a sum_m n_m + (1 - a)/2 sum_m n_m^2,  a = `l1_ratio`.

        price      h(d) = sum_m a^2 d_m / (1 - (1-a) d_m),  d_m < 1 / (1-a)
        weights    d_m = n_m / (a + (1-a) n_m)
        conjugate  1/(2 (1-a)) sum_m (r_m - a)_+^2;  a = 1: 0 if all r_m <= 1, else +inf

    a = 0 is the uniform sum, a = 1 the block 1-norm (group lasso); between them kernels are
    selected, and the selected ones share the weight. Tomioka & Suzuki (2010), section 3 and Table 1.

    form="constraint" bounds that price, h(d) <= a in these letters, and is the sum of two squared norms,
    with S = sum_m n_m

        Omega(n) = a/2 S^2 + (1-a)/2 sum_m n_m^2      price      0 if sum_m a d_m / (1 - (1-a) d_m) <= 1
        weights    d_m = n_m / (a S + (1-a) n_m)      conjugate  1/2 sum_m r_m n_m,
                                                                 n_m = (r_m - a S)_+ / (1-a)

    Its weights are d_m = z_m / (a + (1-a) z_m) of shares z on the simplex, `bend`, in which the problem is
    convex too. It has the models of the penalty at another C and another l1_ratio (`in_form`,
    `equivalent_cost`).

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
    form : {"constraint", "penalty"}, default="penalty"

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l1_ratio=0.5).weights(np.array([1.0, 0.0]))
    array([1., 0.])
    >>> ElasticNet(l1_ratio=0.5).in_form("constraint", norms=np.array([2.0, 1.0]))
    ElasticNet(form='constraint', l1_ratio=0.25)
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5, form: str = "penalty") -> None:
        self.l1_ratio = l1_ratio
        self.form = form

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Any share of the sum of norms selects."""
        return self._ratio() > 0.0

    @property
    def tied(self) -> bool:  # type: ignore[override]
        """A constraint that selects has shares on the simplex, which at l1_ratio = 1 are the weights."""
        return self._bounded and self._ratio() > 0.0

    @property
    def bent(self) -> bool:  # type: ignore[override]
        return self.tied and self._ratio() < 1.0

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        """The penalty at l1_ratio = 1."""
        return self._ratio() == 1.0 and not self._bounded

    @property
    def max_weight(self) -> float:  # type: ignore[override]
        """The price is infinite from 1 / (1 - l1_ratio) on."""
        return 1.0 if self._bounded else float(np.inf) if self.homogeneous else 1.0 / (1.0 - self._ratio())

    def price(self, weights: FloatArray) -> float:
        a = self._ratio()
        if a == 0.0:
            return indicator(float(weights.max(initial=0.0)) - 1.0)
        room = 1.0 - (1.0 - a) * weights
        if (room <= 0).any():
            return np.inf
        spent = float((a * weights / room).sum())
        return indicator(spent - 1.0) if self._bounded else a * spent

    def multiple(self, weights: FloatArray) -> float | None:
        a, top = self._ratio(), float(weights.max(initial=0.0))
        if a == 0.0 or top == 0.0:
            return None
        if not self._bounded:
            return 1.0 if np.isfinite(self.price(weights)) else None
        if a == 1.0:
            return 1.0 / float(weights.sum())
        shares = weights / top
        edge = (1.0 - 1e-12) / (1.0 - a)  # where the price becomes infinite

        def left(c: float) -> float:
            return 1.0 - float((a * c * shares / (1.0 - (1.0 - a) * c * shares)).sum())

        return float(brentq(left, 0.0, edge, xtol=1e-15, rtol=1e-14)) / top if left(edge) < 0.0 else None

    def price_slopes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h' = a^2 / (1 - (1-a) d)^2 and h'' = 2 a^2 (1-a) / (1 - (1-a) d)^3; of the constraint zero."""
        a = 0.0 if self._bounded else self._ratio()
        room = np.maximum(1.0 - (1.0 - a) * weights, 1e-12)
        return a**2 / room**2, 2.0 * a**2 * (1.0 - a) / room**3

    def bend(self, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """d = z / (a + (1-a) z) of the constraint, where z is on the simplex; d' and d''."""
        a = self._ratio()
        level = a + (1.0 - a) * shares
        return shares / level, a / level**2, -2.0 * a * (1.0 - a) / level**3

    def shares(self, weights: FloatArray) -> FloatArray:
        """z = a d / (1 - (1-a) d), whose sum the constraint bounds by 1."""
        a = self._ratio()
        return np.asarray(a * weights / np.maximum(1.0 - (1.0 - a) * weights, 1e-12))

    def penalty(self, norms: FloatArray) -> float:
        a, total = self._ratio(), float(norms.sum())
        return a * (0.5 * total**2 if self._bounded else total) + 0.5 * (1.0 - a) * float(norms @ norms)

    def weights(self, norms: FloatArray) -> FloatArray:
        a = self._ratio()
        if a == 0.0:
            return np.ones(norms.shape)
        if self._bounded and not norms.any():
            norms = np.ones(norms.shape)
        level = a * float(norms.sum()) if self._bounded else a
        return np.asarray(norms / (level + (1.0 - a) * norms))

    def conjugate(self, dual_norms: FloatArray) -> float:
        a = self._ratio()
        if a == 1.0:
            top = float(dual_norms.max(initial=0.0))
            return 0.5 * top**2 if self._bounded else indicator(top - 1.0)
        level = a * self._dual_total(dual_norms) if self._bounded else a
        above = np.maximum(dual_norms - level, 0.0)
        if self._bounded:
            return 0.5 * float(dual_norms @ above) / (1.0 - a)
        return 0.5 * float((above**2).sum()) / (1.0 - a)

    def _dual_total(self, dual_norms: FloatArray) -> float:
        """S = sum_m (r_m - a S)_+ / (1-a): over the k largest, S = sum r / (1 - a + k a), most of all k."""
        a, counts = self._ratio(), np.arange(1, len(dual_norms) + 1)
        return float((np.cumsum(-np.sort(-dual_norms)) / (1.0 - a + counts * a)).max(initial=0.0))

    def dual_scale(self, dual_norms: FloatArray) -> float:
        return min(1.0, 1.0 / max(float(dual_norms.max()), 1e-300)) if self.homogeneous else 1.0

    def in_form(self, form: str, norms: FloatArray | None = None) -> ElasticNet:
        """The other form has another `l1_ratio`: a' S / (1 - a') = a / (1 - a), a' of the constraint."""
        a, other = self._ratio(), ElasticNet(self.l1_ratio, form)
        if checked_form(other) == self.form:
            return other
        if norms is None:
            raise ValueError("ElasticNet: the l1_ratio of the other form depends on the model; give norms.")
        total = float(np.sum(norms))
        other.l1_ratio = a * total / (a * total + (1.0 - a)) if self._bounded else a / (a + (1.0 - a) * total)
        return other

    def size_of_weights(self, norms: FloatArray, mu: float = 1.0, degree: float | None = None) -> float:
        """S / (a + (1-a) S), a of the penalty."""
        if mu != 1.0 or degree is not None:
            raise ValueError("ElasticNet: mu and degree are those of a norm of the weights; leave them out.")
        a, total = self.in_form("penalty", norms)._ratio(), float(norms.sum())
        return total / (a + (1.0 - a) * total)

    @property
    def _bounded(self) -> bool:
        return checked_form(self) == "constraint"

    def _ratio(self) -> float:
        if not (isinstance(self.l1_ratio, Real) and 0 <= self.l1_ratio <= 1):
            raise ValueError(f"ElasticNet: l1_ratio={self.l1_ratio!r} must be between 0 and 1.")
        return float(self.l1_ratio)
