"""The duality gap of a fitted model, from raw data, in long double; nothing here comes from the package.

    f = sum_m d_m K_m alpha + b,  r_m^2 = alpha' K_m alpha,  n_m = d_m r_m
    P = sum_i C_i V(y_i, f_i) + Omega(n) + (sum alpha) b,  D = -sum_i C_i V*(y_i, -alpha_i / C_i) - Omega*(r)

P is that of the model as it predicts: f are its own predictions, which are compared with those in long
double. D needs alpha in its box and of the right sum: alpha is moved there first, which costs an honest model
no more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

Array = np.ndarray
LONG = np.longdouble


@dataclass(frozen=True)
class Gap:
    """Primal and dual value of a model, and their difference relative to the primal value.

    `error` is the largest error of a prediction, relative to what it is a sum of.
    """

    primal: LONG
    dual: LONG
    relative: float
    error: float


# -- kernels -----------------------------------------------------------------------------------------


def kernel(kind: str, parameters: dict[str, float], X: Array) -> Array:
    """A Gram matrix in long double, from the definition of its kernel."""
    X = np.asarray(X, dtype=LONG)
    if kind == "linear":
        return X @ X.T
    if kind == "polynomial":
        return (LONG(parameters["gamma"]) * (X @ X.T) + LONG(parameters["coef0"])) ** int(
            parameters["degree"]
        )
    differences = X[:, None, :] - X[None, :, :]
    distance = (differences**2 if kind == "rbf" else np.abs(differences)).sum(axis=2)
    return np.exp(-LONG(parameters["gamma"]) * distance)


def normalised(K: Array, rule: str | None, weight: Array) -> Array:
    """The kernel under a normalisation whose constants come from the weighted training samples."""
    share = weight.astype(LONG) / weight.astype(LONG).sum()
    if rule is None:
        return K
    if rule == "trace":
        return K / (share @ K.diagonal())
    if rule == "spherical":
        root = np.sqrt(K.diagonal())
        inverse = np.divide(1, root, out=np.zeros_like(root), where=root > 0)  # x = 0 stays 0
        return K * np.outer(inverse, inverse)
    variance = share @ K.diagonal() - share @ K @ share
    if rule == "center":
        mean = K @ share
        K = K - mean[:, None] - mean[None, :] + share @ mean
    return K / variance


def roundings(K: Array, rule: str | None, weight: Array) -> Array:
    """What entries of the normalised kernel are sums of: rounding in double precision is 1e-16 of this.

    A variance is a difference, known to kappa 1e-16, kappa the mean of the diagonal over the variance.
    """
    share = weight.astype(LONG) / weight.astype(LONG).sum()
    if rule not in ("variance", "center"):
        return np.abs(normalised(K, rule, weight))
    size = share @ K.diagonal()
    variance = size - share @ K @ share
    return np.full_like(K, np.abs(K).max()) / variance * (size / variance)


# -- losses: value, what alpha gives in the dual, box of alpha / C -----------------------------------


def loss_value(loss: str, width: float, y: Array, f: Array) -> Array:
    """V(y, f)."""
    miss = np.abs(y - f)
    if loss == "hinge":
        return np.maximum(0, 1 - y * f)
    if loss == "squared_hinge":
        return np.maximum(0, 1 - y * f) ** 2 / 2
    if loss == "logistic":
        return np.logaddexp(LONG(0), -y * f)
    if loss == "squared":
        return miss**2 / 2
    if loss == "eps_insensitive":
        return np.maximum(0, miss - LONG(width))
    if loss == "huber":
        near = np.minimum(miss, LONG(width))
        return near * (miss - near / 2)
    return np.maximum(0, -f)


def dual_loss(loss: str, width: float, y: Array, a: Array) -> Array:
    """-V*(y, -a) for a = alpha / C inside its box."""
    if loss == "hinge":
        return y * a
    if loss in ("squared_hinge", "squared", "huber"):
        return y * a - a**2 / 2
    if loss == "eps_insensitive":
        return y * a - LONG(width) * np.abs(a)
    if loss == "logistic":
        u = np.clip(y * a, LONG(0), LONG(1))
        return -_xlogx(u) - _xlogx(1 - u)
    return 0 * a


def box(loss: str, width: float, y: Array) -> tuple[Array, Array]:
    """Bounds of a = alpha / C."""
    one, zero, free = np.ones_like(y), np.zeros_like(y), np.full_like(y, np.inf)
    if loss in ("hinge", "logistic"):
        return np.where(y > 0, zero, -one), np.where(y > 0, one, zero)
    if loss == "squared_hinge":
        return np.where(y > 0, zero, -free), np.where(y > 0, free, zero)
    if loss == "squared":
        return -free, free
    if loss == "one_class":
        return zero, one
    limit = LONG(width if loss == "huber" else 1.0)
    return -limit * one, limit * one


def _xlogx(u: Array) -> Array:
    return u * np.log(np.where(u > 0, u, LONG(1)))


def feasible(alpha: Array, lower: Array, upper: Array, total: float | None) -> Array:
    """alpha inside its box, and of the sum that the intercept asks for."""
    alpha = np.clip(alpha, lower, upper)
    for _ in range(0 if total is None else 20):
        missing = total - alpha.sum(axis=0)
        room = np.where(missing > 0, upper - alpha, alpha - lower)
        share = np.where(np.isinf(room).any(axis=0), np.isinf(room), room)
        size = share.sum(axis=0)
        alpha = np.clip(alpha + missing * share / np.where(size > 0, size, 1), lower, upper)
    return alpha


# -- regularisers: Omega(n), Omega*(r), and the largest c <= 1 with Omega*(c r) finite ----------------


def penalty(spec: tuple[str, Any], n: Array) -> LONG:
    """Omega(n)."""
    name, value = spec
    if name == "lp":
        return _norm(n, _block(value)) ** 2 / 2
    if name == "lp_penalty":
        return (1 + 1 / LONG(value)) / 2 * (n ** LONG(_block(value))).sum()
    if name == "block":
        return _norm(n, value) ** 2 / 2
    if name == "elasticnet":
        return LONG(value) * n.sum() + (1 - LONG(value)) / 2 * (n**2).sum()
    if name == "wedge":
        return _wedge(n)
    return _mahalanobis(np.asarray(value, dtype=LONG), n)


def conjugate(spec: tuple[str, Any], r: Array) -> LONG:
    """Omega*(r), where it is finite."""
    name, value = spec
    if name == "lp":
        return _norm(r**2, _dual(value)) / 2
    if name == "lp_penalty":
        return LONG(0) if value == 1 else ((r**2) ** LONG(_dual(value))).sum() / 2 / LONG(_dual(value))
    if name == "block":
        return _norm(r, _dual(value)) ** 2 / 2
    if name == "elasticnet":
        return LONG(0) if value == 1 else (np.maximum(r - LONG(value), 0) ** 2).sum() / 2 / (1 - LONG(value))
    if name == "wedge":
        return LONG(0)
    return _mahalanobis_conjugate(np.asarray(value, dtype=LONG), r**2)


def shrinkage(spec: tuple[str, Any], r: Array) -> LONG:
    """The largest c <= 1 for which Omega*(c r) is finite."""
    if spec in (("lp_penalty", 1), ("elasticnet", 1)):
        most = r.max()
    elif spec[0] == "wedge":
        most = np.sqrt((np.cumsum(r**2) / np.arange(1, len(r) + 1)).max())
    else:
        return LONG(1)
    return min(LONG(1), 1 / most) if most > 0 else LONG(1)


def _block(p: float) -> float:
    return 2.0 if np.isinf(p) else 2 * LONG(p) / (LONG(p) + 1)


def _dual(p: float) -> float:
    return 1.0 if np.isinf(p) else np.inf if p == 1 else LONG(p) / (LONG(p) - 1)


def _norm(x: Array, p: float) -> LONG:
    top = x.max()
    return top if np.isinf(p) or top == 0 else top * ((x / top) ** LONG(p)).sum() ** (1 / LONG(p))


def _wedge(n: Array) -> LONG:
    """1/2 sum n^2 / d + d at d = sqrt(the non-increasing fit of n^2)."""
    d = np.sqrt(_pooled(n**2))
    live = d > 0
    return (n[live] ** 2 / d[live] + d[live]).sum() / 2


def _pooled(x: Array) -> Array:
    """The non-increasing sequence nearest to x: adjacent violators are pooled."""
    blocks: list[list[Any]] = []
    for value in x:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            (v, m), (w, k) = blocks[-2], blocks[-1]
            blocks[-2:] = [[(v * m + w * k) / (m + k), m + k]]
    return np.concatenate([np.full(count, value, dtype=LONG) for value, count in blocks])


def _mahalanobis(E: Array, n: Array) -> LONG:
    """min_d 1/2 (sum n^2 / d) sqrt(d' E^-1 d), which no longer depends on the scale of d."""
    inverse = np.linalg.inv(E.astype(float))
    size = n.max()
    if size == 0:
        return LONG(0)
    floor = np.maximum((n / size).astype(float), 1e-12)

    def value(log_d: Array) -> float:
        d = np.exp(log_d)
        return float(np.log((floor**2 / d).sum()) + 0.5 * np.log(d @ inverse @ d))

    starts = [np.log(floor), np.zeros(len(n))]
    found = [minimize(value, start, method="BFGS", options={"gtol": 1e-11}) for start in starts]
    best = min(found, key=lambda one: one.fun)
    return LONG(np.exp(best.fun)) * size**2 / 2


def _mahalanobis_conjugate(E: Array, s: Array) -> LONG:
    """1/2 min_{t >= s} sqrt(t' E t), by coordinate descent; every t >= s bounds it from above."""
    t = s.copy()
    for _ in range(500):
        for j in range(len(t)):
            t[j] = max(s[j], -(E[j] @ t - E[j, j] * t[j]) / E[j, j])
    return np.sqrt(max(t @ E @ t, LONG(0))) / 2


# -- the certificate ----------------------------------------------------------------------------------


def true_gap(
    Ks: Array,
    sizes: Array,
    y: Array,
    C: Array,
    loss: str,
    width: float,
    regularizer: tuple[str, Any],
    weights: Array,
    alpha: Array,
    intercept: Array,
    predictions: Array,
    fit_intercept: bool,
) -> Gap:
    """The gap of the model with kernel weights d, dual variables alpha of shape (n, c) and intercepts b."""
    y, C, d = y.astype(LONG), C.astype(LONG)[:, None], weights.astype(LONG)
    given, f = alpha.astype(LONG), predictions.astype(LONG)
    total = 1.0 if loss == "one_class" else 0.0
    low, high = (C * bound for bound in box(loss, width, y))
    components = np.array([K @ given for K in Ks])  # (M, n, c)
    norms = d * np.sqrt(np.maximum((given * components).sum(axis=(1, 2)), 0))
    primal = (C * loss_value(loss, width, y, f)).sum() + penalty(regularizer, norms)
    primal += total * LONG(intercept.sum())
    inside = feasible(given, low, high, total if fit_intercept else None)
    r = np.sqrt(np.maximum(np.array([(inside * (K @ inside)).sum() for K in Ks]), 0))
    scale = shrinkage(regularizer, r)
    dual = (C * dual_loss(loss, width, y, scale * inside / C)).sum() - conjugate(regularizer, scale * r)
    terms = np.tensordot(d, np.array([size @ np.abs(given) for size in sizes]), axes=1) + np.abs(intercept)
    # the optimum of the one-class loss may vanish, and is known no better then than the terms that cancel
    floor = max(abs(primal), total * LONG(1e-12) * (np.abs(given) * terms).sum(), np.finfo(LONG).tiny)
    # what centring subtracts is a constant, which may be counted with the intercept
    off = f - np.tensordot(d, components, axes=1)
    error = (np.abs(off - np.median(off)) / np.where(terms > 0, terms, 1)).max()
    return Gap(primal, dual, float((primal - dual) / floor), float(error))
