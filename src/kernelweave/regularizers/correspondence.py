"""The correspondence of weight regularisers h(d) and block norms g(x), and regularisers of your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import FloatArray
from ._ascent import Concave, Function, Gradient, Peak, differences, peak
from .base import FORMS, Regularizer

SMALLEST = 1e-8  # norms below this share of the largest get its weight, so that a kernel can return
FAR = 1e12  # where functions are looked at for their growth
SLACK = 1e-9  # excess over a bound that counts as rounding

#: why a block norm with q > 2 has no part in the correspondence
MAXIMUM = (
    "Block norms with q > 2 are of this kind: their weights are those of a maximum over d, not of a minimum. "
    "Use BlockNorm(q), which needs no price, or maximum=True for functions of that maximum."
)


class BlockNormOf:
    """g(x) = 1/2 inf_{d>0} (sum_m x_m / d_m + h(d)), found numerically; see `block_norm_of`."""

    def __init__(self, h: Function, gradient: Gradient | None = None, basis: Any = None) -> None:
        self.h = h
        self.h_gradient = gradient if gradient is not None else getattr(h, "gradient", None)
        self.basis = None if basis is None else np.asarray(basis, dtype=np.float64)
        self._last: tuple[bytes, FloatArray] | None = None  # value and gradient ask for the same weights

    def __call__(self, x: FloatArray) -> float:
        """g(x)."""
        self._check(len(x))
        d, live = self.weights(x), np.asarray(x) > 0
        value = 0.5 * float((np.asarray(x)[live] / d[live]).sum()) + 0.5 * float(self.h(d))
        return value if live.any() else 0.5 * float(self.h(np.zeros(len(d))))

    def _check(self, size: int) -> None:
        """Refuse an h that is negative or infinite near zero: no infimum, or one without minimum."""
        T = np.eye(size) if self.basis is None else self.basis
        near = float(self.h(SMALLEST * (T @ np.ones(T.shape[1]))))
        if not -SLACK <= near < np.inf:
            raise ValueError(
                f"h is {near:.3g} near d = 0, where the price of weights has to be zero: no block norm is "
                f"the infimum over its weights. {MAXIMUM}"
            )

    def gradient(self, x: FloatArray) -> FloatArray:
        """dg/dx_m = 1 / (2 d_m)."""
        return np.asarray(0.5 / self.weights(x))

    def weights(self, x: FloatArray) -> FloatArray:
        """The minimising d; x_m = 0 is taken as the smallest that still counts."""
        x = np.asarray(x, dtype=np.float64)
        if self._last is None or self._last[0] != x.tobytes():
            self._last = x.tobytes(), self._minimise(x)
        return self._last[1]

    def _minimise(self, x: FloatArray) -> FloatArray:
        top = float(x.max(initial=0.0))
        x = np.maximum(x, SMALLEST**2 * top) if top > 0.0 else np.ones_like(x)
        T = np.eye(len(x)) if self.basis is None else self.basis

        def value(z: FloatArray) -> float:
            d = T @ z
            return -float((x / d).sum()) - float(self.h(d))

        def slope(z: FloatArray) -> FloatArray:
            d = T @ z
            assert self.h_gradient is not None
            return np.asarray(T.T @ (x / d**2 - self.h_gradient(d)))

        edge = getattr(self.h, "edge", None) if self.basis is None else None
        start = np.sqrt(x) if self.basis is None else np.ones(T.shape[1])
        found = peak(Concave(value, slope if self.h_gradient is not None else None, edge), start)
        return np.asarray(T @ found.point)


class PriceOf:
    """h(d) = sup_{x>=0} (2 g(x) - sum_m x_m / d_m), found numerically; see `price_of`."""

    def __init__(self, g: Function, gradient: Gradient | None = None) -> None:
        self.g = g
        self.g_gradient = gradient if gradient is not None else getattr(g, "gradient", None)
        self._last: tuple[bytes, Peak] | None = None

    def __call__(self, d: FloatArray) -> float:
        """h(d)."""
        check_concave(self.g, np.asarray(d, dtype=np.float64) ** 2)
        return self.supremum(d)

    def supremum(self, d: FloatArray) -> float:
        """sup_{x>=0} (2 g(x) - sum_m x_m / d_m), whether or not g is concave."""
        d = np.asarray(d, dtype=np.float64)
        live = d > 0
        if not live.any():
            return 0.0
        d = np.where(live, d, SMALLEST * d[live].min())
        if self._homogeneous(d):
            return np.inf if self.edge(d)[0] < -SLACK else 0.0
        return max(self._peak(d).value, 0.0)

    def gradient(self, d: FloatArray) -> FloatArray:
        """dh/dd_m = x_m / d_m^2 at the maximising x."""
        if self._homogeneous(d):
            return np.zeros(len(d))
        found = self._peak(np.asarray(d, dtype=np.float64))
        return np.asarray(found.point / d**2 if found.value > 0 else np.zeros(len(d)))

    def edge(self, d: FloatArray) -> tuple[float, FloatArray]:
        """log of the largest t at which h(t d) = 0, and its derivative in log d, when h is a constraint.

        It is the smallest of  sum_m x_m / d_m / (2 g(x))  over directions x.
        """
        if not self._homogeneous(d):
            return np.inf, np.zeros(len(d))
        far = float(d.max())

        def value(x: FloatArray) -> float:
            y = far / x.sum() * x
            g = self.g(y)
            return float(np.log(2.0 * g) - np.log((y / d).sum())) if g > 0 else -np.inf

        def slope(x: FloatArray) -> FloatArray:
            assert self.g_gradient is not None
            y = far / x.sum() * x
            return np.asarray((far * self.g_gradient(y) / self.g(y) - far / d / (y / d).sum()) / x.sum())

        best = rays(value, d, slope if self.g_gradient is not None else None)
        share = best.point / d
        return -best.value, -share / share.sum()

    def _homogeneous(self, d: FloatArray) -> bool:
        """Whether g(t x) = t g(x), so that h is 0 or infinite."""
        points = [d, d**2, np.ones_like(d)]
        return all(abs(self.g(FAR * x) / FAR - self.g(x)) <= 1e-10 * self.g(x) for x in points)

    def _peak(self, d: FloatArray) -> Peak:
        rate = self.g_gradient
        if self._last is None or self._last[0] != d.tobytes():
            slope = None if rate is None else lambda x: 2.0 * rate(x) - 1.0 / d
            F = Concave(lambda x: 2.0 * self.g(x) - float((x / d).sum()), slope)
            self._last = d.tobytes(), peak(F, d**2)
        return self._last[1]


class SupremumOf:
    """g(x) = 1/2 sup_{d>0} (sum_m x_m / d_m + h(d)), found numerically; see `block_norm_of`."""

    def __init__(self, h: Function) -> None:
        self.h = h

    def __call__(self, x: FloatArray) -> float:
        """g(x), over theta = 1 / d."""
        x = np.asarray(x, dtype=np.float64)
        above = float(self.h(np.ones(len(x))))
        if above > SLACK:
            raise ValueError(f"h is {above:.3g} at d = 1: the price of a maximum is not above zero.")
        F = Concave(lambda theta: float(x @ theta) + float(self.h(1.0 / theta)))
        return 0.5 * max(peak(F, np.ones(len(x))).value, 0.0)


class InfimumOf:
    """h(d) = inf_{x>=0} (2 g(x) - sum_m x_m / d_m), found numerically; see `price_of`."""

    def __init__(self, g: Function, gradient: Gradient | None = None) -> None:
        self.g = g
        self.g_gradient = gradient if gradient is not None else getattr(g, "gradient", None)

    def __call__(self, d: FloatArray) -> float:
        """h(d)."""
        d, rate = np.asarray(d, dtype=np.float64), self.g_gradient
        check_convex(self.g, d**2)
        slope = None if rate is None else lambda x: 1.0 / d - 2.0 * rate(x)
        F = Concave(lambda x: float((x / d).sum()) - 2.0 * float(self.g(x)), slope)
        return -max(peak(F, d**2).value, 0.0)


def check_concave(g: Function, x: FloatArray) -> None:
    """Refuse a g that is less at x than on average over points x is the mean of: it is no infimum over d."""
    value, mean = around(g, x)
    if value < mean - SLACK * abs(mean):
        raise ValueError(
            f"g is not concave in x, the squared norms: {value:.6g} at the mean of points where it is "
            f"{mean:.6g} on average, so no price h(d) belongs to it. {MAXIMUM}"
        )


def check_convex(g: Function, x: FloatArray) -> None:
    """Refuse a g that is more at x than on average over points x is the mean of: it is no supremum over d."""
    value, mean = around(lambda x: -g(x), x)
    if value < mean - SLACK * abs(mean):
        raise ValueError(
            f"g is not convex in x, the squared norms: {-value:.6g} at the mean of points where it is "
            f"{-mean:.6g} on average, so it is no maximum over d; leave out maximum=True."
        )


def around(g: Function, x: FloatArray) -> tuple[float, float]:
    """g(x), and the largest mean of g over points that x is the mean of: M x_m e_m, and 0 and 2 x."""
    groups = (len(x) * np.diag(x), np.array([np.zeros_like(x), 2.0 * x]))
    return float(g(x)), max(float(np.mean([g(point) for point in points])) for points in groups)


def check_kind(rule: Regularizer, maximum: bool) -> Regularizer:
    """Refuse a regulariser whose weights are those of a maximum where a minimum is meant, or the reverse."""
    if rule.ascends and not maximum:
        raise ValueError(f"{rule!r} is not an infimum over weights. {MAXIMUM}")
    if maximum and not rule.ascends:
        raise ValueError(f"{rule!r} is an infimum over weights, not a maximum; leave out maximum=True.")
    return rule


def rays(value: Function, start: FloatArray, gradient: Gradient | None = None) -> Peak:
    """The largest value of a function of directions, the same at x and t x."""
    inside = peak(Concave(value, gradient, scale_free=True), start)
    corners = [Peak(value(point), point) for point in start * (np.eye(len(start)) + 1e-12)]
    return max([inside, *corners], key=lambda found: found.value)


def block_norm_of(
    h: Regularizer | Function, gradient: Gradient | None = None, basis: Any = None, maximum: bool = False
) -> Callable[[FloatArray], float]:
    """The block norm g(x), x_m = ||f_m||^2, that belongs to the price h(d) of kernel weights.

        g(x) = 1/2 inf_{d>0} (sum_m x_m / d_m + h(d))

    so that learning with g is learning with h, the weights eliminated: d_m = 1 / (2 dg/dx_m).
    Tomioka & Suzuki (2010), Theorem 1. Closed form for a `Regularizer`; for a function of your
    own by quasi-Newton steps on log d.

    Block norms with q > 2, the last row but one of their Table 1, are no such infimum, and refused; they are

        g(x) = 1/2 sup_{d>0} (sum_m x_m / d_m + h(d)),    h(d) = -1/rho sum_m d_m^(-rho),  rho = q / (q - 2)

    for every x >= 0, and `maximum=True` takes that supremum.

    Parameters
    ----------
    h : Regularizer or callable
        Convex, or such that h(1/y) is convex in y, zero at zero, not decreasing. It may be +inf outside a
        convex domain (a constraint) that holds a part of every ray d > 0. Kinks that belong to single
        weights (d_m <= 1) are found exactly; others cost accuracy.
    gradient : callable, optional
        dh/dd; by default `h.gradient`, else differences.
    basis : array-like of shape (M, K), optional
        For weights confined to a cone, d = basis @ z with z > 0 (ordered weights: a triangle of
        ones); h then has to be finite on the cone.
    maximum : bool, default=False
        Whether g is the supremum; h(1/theta) then is concave in theta > 0, not above zero, and -inf outside a
        convex domain. `gradient` and `basis` have no part in it.

    Returns
    -------
    callable
        g; when it is a numerical infimum, with the methods ``gradient(x)`` and ``weights(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> g = block_norm_of(lambda d: d.sum())
    >>> round(g(np.array([9.0, 4.0])), 6)  # the block 1-norm
    5.0
    >>> g = block_norm_of(lambda d: -(d**-2.0).sum() / 2, maximum=True)
    >>> round(g(np.array([4.0, 1.0])), 6)  # 1/q sum n^q with q = 4
    4.25
    """
    if isinstance(h, Regularizer):
        rule = check_kind(h, maximum)
        return lambda x: rule.penalty(np.sqrt(x))
    return SupremumOf(h) if maximum else BlockNormOf(h, gradient, basis)


def price_of(
    g: Regularizer | Function, gradient: Gradient | None = None, maximum: bool = False
) -> Callable[[FloatArray], float]:
    """The price h(d) of kernel weights that belongs to the block norm g(x), x_m = ||f_m||^2.

        h(d) = sup_{x>=0} (2 g(x) - sum_m x_m / d_m)

    that is -2 g*(1 / (2 d)) with the concave conjugate g*. Tomioka & Suzuki (2010), Theorem 7.
    Closed form for a `Regularizer`, else numerical.

    Block norms with q > 2 are not concave in x but convex: they are the infimum of no price, and refused.
    `maximum=True` gives the price whose supremum they are (see `block_norm_of`),

        h(d) = inf_{x>=0} (2 g(x) - sum_m x_m / d_m)

    Parameters
    ----------
    g : Regularizer or callable
        Concave, zero at zero, not decreasing, finite.
    gradient : callable, optional
        dg/dx; by default `g.gradient`, else differences.
    maximum : bool, default=False
        Whether g is a supremum over the weights: convex, zero at zero, not decreasing, finite.

    Returns
    -------
    callable
        h; +inf where the supremum is, as far as g at 1e12 shows, and -inf where the infimum is. When it is a
        numerical supremum, with the method ``gradient(d)``.

    Examples
    --------
    >>> import numpy as np
    >>> h = price_of(lambda x: np.sqrt(x).sum())
    >>> round(h(np.array([0.5, 2.0])), 6)
    2.5
    >>> from kernelweave.regularizers import BlockNorm
    >>> price_of(BlockNorm(q=4, form="penalty"), maximum=True)(np.array([0.5, 1.0]))
    -2.5
    """
    if isinstance(g, FromBlockNorm):
        return price_of(g.block_norm, g.gradient, maximum)
    if isinstance(g, Regularizer):
        return check_kind(g, maximum).price
    return InfimumOf(g, gradient) if maximum else PriceOf(g, gradient)


def equivalent_cost(
    C: float,
    norms: FloatArray,
    regularizer: Regularizer | str,
    to: str,
    mu: float = 1.0,
    degree: float | None = None,
) -> float:
    """The C at which the other form of a regulariser has the same model.

    A norm N of the weights is a constraint, N(d) <= 1, or a penalty, h(d) = mu N(d)^k / k. At component
    norms n the weights of the penalty are t = N(d) times those of the constraint, and dividing the
    objective by t gives

        C_constraint = t C_penalty,    t = (A(n) / mu)^(1/(k+1)),    A(n) = min_{N(d)<=1} sum_m n_m^2 / d_m

    Kloft et al. (2011), Theorem 1; Proposition 5 for block norms, A = ||n||_q^2 and k = q / (2 - q), also
    for q > 2. The elastic net has another l1_ratio in its other form, ``regularizer.in_form(to, norms)``.
    Regularisers with one form (SMKL, your own functions) are refused.

    Parameters
    ----------
    C : float
        Cost in the form the model was fitted with.
    norms : ndarray of shape (M,)
        Component norms of the model (`norms_`), the same in both forms; not all zero.
    regularizer : Regularizer or str
        In either form; or a name, as estimators take it.
    to : {"constraint", "penalty"}
        The form wanted.
    mu : float, default=1.0
        Strength of the penalty; ``form="penalty"`` has 1.
    degree : float, optional
        k, at least 1; by default that of ``form="penalty"``: p of `LpNorm`, 1 of `Wedge`, 2 of `Mahalanobis`.
        The penalty mu' N(d)^2 of Kloft et al. (2011), (3), is degree=2 with mu = 4 mu'.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.regularizers import LpNorm, Wedge
    >>> n = np.array([3.0, 1.0])
    >>> equivalent_cost(10.0, n, LpNorm(p=1), to="constraint")
    40.0
    >>> equivalent_cost(10.0, n, LpNorm(p=1), to="constraint", mu=4.0)
    20.0
    >>> equivalent_cost(40.0, n, Wedge(), to="penalty")
    10.0
    """
    from . import REGULARIZERS

    rule = REGULARIZERS.resolve(regularizer, Regularizer)
    values = np.asarray(norms, dtype=np.float64)
    if to not in FORMS:
        raise ValueError(f"to={to!r} must be 'constraint' or 'penalty'.")
    if not mu > 0:
        raise ValueError(f"mu={mu!r} must be positive.")
    if degree is not None and not degree >= 1:
        raise ValueError(f"degree={degree!r} must be at least 1.")
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all() or not values.any():
        raise ValueError("norms must be those of one model, numbers from 0 on and not all of them 0.")
    size = rule.size_of_weights(values, mu, degree)
    return float(C * size if to == "constraint" else C / size)


class FromPrice(Regularizer):
    """A regulariser from your own price of the weights, h(d).

        penalty    min_d 1/2 sum_m n_m^2 / d_m + 1/2 h(d)
        weights    the minimising d
        conjugate  max_d 1/2 sum_m d_m r_m^2 - 1/2 h(d)

    all found numerically: for tens of kernels, and fits slower than with the regularisers of the
    library. Tomioka & Suzuki (2010), Theorem 1.

    Parameters
    ----------
    price : callable
        h, as `block_norm_of` takes it: convex, zero at zero, not decreasing, +inf outside a
        convex domain. A plain function (not a lambda) can be pickled.
    gradient : callable, optional
        dh/dd, where h is finite.
    basis : array-like of shape (M, K), optional
        For weights confined to a cone, d = basis @ z, z > 0.

    Examples
    --------
    >>> import numpy as np
    >>> rule = FromPrice(lambda d: (d**2).sum() / 2)  # LpNorm(p=2, form="penalty")
    >>> rule.weights(np.array([8.0, 1.0])).round(4)
    array([4., 1.])
    """

    name = "from_price"

    def __init__(self, price: Function, gradient: Gradient | None = None, basis: Any = None) -> None:
        self.price = price  # type: ignore[method-assign, assignment]
        self.gradient = gradient
        self.basis = basis

    def penalty(self, norms: FloatArray) -> float:
        return self._block_norm()(norms**2)

    def weights(self, norms: FloatArray) -> FloatArray:
        return self._block_norm().weights(norms**2)

    def conjugate(self, dual_norms: FloatArray) -> float:
        T = np.eye(len(dual_norms)) if self.basis is None else np.asarray(self.basis, dtype=np.float64)
        s = T.T @ dual_norms**2
        rate = self.gradient
        slope = None if rate is None else lambda z: s - T.T @ rate(T @ z)
        F = Concave(lambda z: float(s @ z) - float(self.price(T @ z)), slope)
        return 0.5 * max(peak(F, np.ones(len(s))).value, 0.0)

    def dual_scale(self, dual_norms: FloatArray) -> float:
        T = np.eye(len(dual_norms)) if self.basis is None else np.asarray(self.basis, dtype=np.float64)
        return float(growth(lambda z: self.price(T @ z), T.T @ dual_norms**2) ** -0.5)

    def _block_norm(self) -> BlockNormOf:
        return BlockNormOf(self.price, self.gradient, self.basis)


class FromBlockNorm(Regularizer):
    """A regulariser from your own block norm, g(x) with x_m = ||f_m||^2.

        penalty    g(n^2)
        weights    d_m = 1 / (2 dg/dx_m)
        conjugate  max_n sum_m n_m r_m - g(n^2)
        price      h(d) = sup_x 2 g(x) - sum_m x_m / d_m

    the last two found numerically, and the weights too without a `gradient`. Tomioka & Suzuki
    (2010), Theorems 1 and 7.

    Parameters
    ----------
    block_norm : callable
        g: concave, zero at zero, not decreasing.
    gradient : callable, optional
        dg/dx; +inf is allowed where x_m = 0.
    convex : bool, default=True
        Whether g(n^2) is convex in n; then fits are certified. If not, as for logarithms, they
        are solved like those of the concave terms (`SMKL`).

    Examples
    --------
    >>> import numpy as np
    >>> rule = FromBlockNorm(lambda x: np.sqrt(x).sum())  # the block 1-norm
    >>> rule.weights(np.array([3.0, 1.0])).round(6)
    array([3., 1.])
    """

    name = "from_block_norm"

    def __init__(self, block_norm: Function, gradient: Gradient | None = None, convex: bool = True) -> None:
        self.block_norm = block_norm
        self.gradient = gradient
        self.convex = convex

    def price(self, weights: FloatArray) -> float:
        return PriceOf(self.block_norm, self.gradient).supremum(weights)

    def penalty(self, norms: FloatArray) -> float:
        return float(self.block_norm(norms**2))

    def weights(self, norms: FloatArray) -> FloatArray:
        top = float(norms.max(initial=0.0))
        floor = SMALLEST * top if self.convex or self.gradient is None else 0.0  # differences see no less
        x = np.maximum(norms, max(floor, 1e-100)) ** 2 if top > 0.0 else np.ones_like(norms)
        return np.asarray(0.5 / np.maximum(self._slopes(x), 1e-300))

    def _slopes(self, x: FloatArray) -> FloatArray:
        if self.gradient is not None:
            return np.asarray(self.gradient(x), dtype=np.float64)
        return differences(lambda u: float(self.block_norm(np.exp(u))), np.log(x)) / x

    def conjugate(self, dual_norms: FloatArray) -> float:
        rate = self.gradient
        slope = None if rate is None else lambda n: dual_norms - 2.0 * n * rate(n**2)
        F = Concave(lambda n: float(dual_norms @ n) - self.penalty(n), slope)
        return max(peak(F, np.ones(len(dual_norms))).value, 0.0)

    def dual_scale(self, dual_norms: FloatArray) -> float:
        return 1.0 / growth(self.penalty, dual_norms)


def growth(f: Function, slopes: FloatArray) -> float:
    """max(1, sup of slopes'z / f(z) at infinity): more than 1 where slopes'z - f(z) is unbounded."""

    def ratio(z: FloatArray) -> float:
        far = FAR / z.sum() * z
        return float(np.log(max(slopes @ far, 1e-300)) - np.log(max(f(far), 1e-300)))

    if not slopes.any() or not np.isfinite(f(np.full(len(slopes), FAR))):
        return 1.0
    return float(max(1.0, np.exp(rays(ratio, np.ones(len(slopes))).value)))
