"""Generalisation bounds of lp-norm MKL and of greedy kernel selection."""

from __future__ import annotations

from math import ceil, e, lgamma, log, sqrt
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..regularizers import LpNorm, Regularizer
from ..regularizers.base import power_norm
from ..regularizers.norms import conjugate_order
from ._statements import Assumption, Finding, check_count, check_number, dictionary, target_matrix
from .complexity import bounded, check_constraint, class_of, largest_diagonal, outside_the_data

#: the constant of Cortes, Mohri & Rostamizadeh (2010) on moments of sigma' K sigma
MOMENTS = 23.0 / 22.0


def conversion_factor(n_kernels: int, q: float | Regularizer, p: float | Regularizer) -> float:
    """By how much complexity can grow from one norm of the weights to another.

        R(H_p) <= sqrt(M^(1/q - 1/p)) R(H_q),   q <= p

    because ||d||_q <= M^(1/q - 1/p) ||d||_p. Theorem 6 of Kloft et al. (2011). For any two norms, H_N the
    class of the weights N(d) <= 1, as in their Remark 7,

        R(H_N') <= sqrt(c) R(H_N),    N(d) <= c for all d with N'(d) <= 1

    The c that is found is the least one from an lp norm to another, with costs or without, from p = 1 or
    p = inf to any norm, from p = 2 to ``Mahalanobis`` without negative entries, and to block norms with
    q > 2; in all other cases it is the least that follows from

        ||d||_q <= ||d||_1^(1/q) ||d||_inf^(1-1/q),    N(d) <= sum_m d_m N(e_m),    N(d) <= ||d||_inf N(1)

    Parameters
    ----------
    n_kernels : int
        M.
    q, p : float or Regularizer
        The norms to convert from and to: orders of lp norms, q <= p, or regularisers in the form of a
        constraint.

    Notes
    -----
    Remark 7 prints R(H_p) <= c R(H_N), and concludes that a bound on R(H_p) gives one on R(H_N); that
    requires the reverse, ``conversion_factor(M, p, N)``. Both hold, with different constants.

    Examples
    --------
    >>> from kernelweave.regularizers import Wedge
    >>> conversion_factor(16, q=1, p=2)
    2.0
    >>> conversion_factor(16, q=1, p=Wedge(form="constraint"))
    1.0
    """
    M = check_count("n_kernels", n_kernels, 2**63)
    low, high = check_norm("q", q, M), check_norm("p", p, M)
    if isinstance(low, Regularizer):
        rule = high if isinstance(high, Regularizer) else LpNorm(high)
        return sqrt(largest_size(rule, low, M))
    if isinstance(high, Regularizer):
        return sqrt(largest_norm(high, np.ones(M), low))
    if low > high:
        raise ValueError(f"q={q:g} must not exceed p={p:g}: the conversion goes to larger classes.")
    result: float = float(M) ** (0.5 * (_inverse(low) - _inverse(high)))
    return result


def check_norm(name: str, norm: Any, n_kernels: int) -> float | Regularizer:
    """The order of an lp norm, or a regulariser of so many kernels in the form of a constraint."""
    if not isinstance(norm, Regularizer):
        return check_number(name, norm, 1.0, closed=True)
    if isinstance(getattr(norm, "E", None), str):
        raise ValueError(f"{name}={norm!r} depends on the training samples; give the matrix E.")
    rule = check_constraint(name, norm.select(np.arange(n_kernels), n_kernels), n_kernels)
    return float(rule.p) if isinstance(rule, LpNorm) and rule.costs is None else rule


def largest_norm(rule: Any, scales: FloatArray, order: float, tops: FloatArray | None = None) -> float:
    """A bound on ||a d||_q, q = `order`, over the weights that a constraint allows; exact for q = 1 and inf.

    The largest sum of a d is B(a) and the largest d_m is B(e_m), where B(s) = 2 Omega* is the largest sum_m
    d_m s_m. A maximum over the weights, as in block norms with q > 2, has a concave B and no set of weights:
    what counts is the largest B(s) / ||s||_{q*}, at s = 1.

    Parameters
    ----------
    rule : Regularizer
        In the form of a constraint.
    scales : ndarray of shape (M,)
        a; all 1 for a maximum.
    order : float
    tops : ndarray of shape (M,), optional
        The largest d_m, where they are known.
    """
    total, share = 2.0 * rule.conjugate(np.sqrt(scales)), _inverse(order)
    if rule.ascends:
        return float(total * len(scales) ** (share - 1.0))
    top = float((scales * (largest_each(rule, len(scales)) if tops is None else tops)).max())
    known = rule.largest_norm(scales, order) if hasattr(rule, "largest_norm") else np.inf
    return float(min(total**share * top ** (1.0 - share), known))


def largest_each(rule: Regularizer, n_kernels: int) -> FloatArray:
    """The largest d_m that a constraint allows, for every m."""
    return np.array([2.0 * rule.conjugate(unit) for unit in np.eye(n_kernels)])


def largest_size(rule: Regularizer, other: Any, n_kernels: int) -> float:
    """A bound on N(d), the norm of `other`, over the weights that the constraint `rule` allows.

    Where weights are allowed, so are all smaller ones: N(1) bounds N(d) for every d <= 1.
    """
    if not hasattr(other, "size") or other.ascends:
        raise ValueError(
            f"q={other!r} bounds no norm of the weights; give LpNorm(p), Mahalanobis(E) or Wedge."
        )
    ones = np.ones(n_kernels)
    units = np.array([other.size(unit) for unit in np.eye(n_kernels)])
    by_units = 2.0 * rule.conjugate(np.sqrt(units)) if np.isfinite(units).all() else np.inf
    return float(min(by_units, largest_norm(rule, ones, np.inf) * other.size(ones)))


def lp_complexity(
    kernels: Any,
    X: Any,
    p: float = 2.0,
    radius: float = 1.0,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
) -> Finding:
    """Bound on the Rademacher complexity of lp-norm MKL.

        R(H_p) <= radius sqrt( c M^(1/p*) R^2 min(e ceil(log M), ceil(p*)) / n )

    for f = sum_m sqrt(d_m) <w_m, phi_m>, ||w|| <= radius, ||d||_p <= 1, k_m(x, x) <= R^2 and c = 23/22;
    the same class is sum_m <w_m, phi_m> with block norm (sum_m ||w_m||^q)^(1/q) <= radius, q = 2p/(p+1).
    Corollary 9 of Kloft et al. (2011).

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    p : float, default=2.0
    radius : float, default=1.0
        For a fitted model the block norm of its `norms_`.
    diag_bound : float, optional
        R^2, if known; by default the largest k(x, x) on the samples.
    normalize : str or None, default="variance"
        As in the estimators.

    Returns
    -------
    finding : Finding

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> lp_complexity(per_feature(RBF()), X, p=2, diag_bound=1.0, normalize=None)
    0.1286: bound on the Rademacher complexity of p=2 MKL, 10 kernels, 400 samples
      [holds] k(x, x) bounded: largest on the samples 1, bound given 1
    """
    order = check_number("p", p, 1.0, closed=True)
    check_number("radius", radius, 0.0)
    found = dictionary(kernels, X, normalize, matrices=False)
    R2, bounded = largest_diagonal(found, diag_bound)
    M, n = found.gram.n_kernels, found.gram.n_samples
    value = radius * sqrt(growth(M, order) * R2 / n)
    statement = f"bound on the Rademacher complexity of p={p:g} MKL, {M} kernels, {n} samples"
    return Finding(value, statement, (bounded,), {"R2": R2, "n_kernels": M, "n_samples": n})


def norm_complexity(
    kernels: Any,
    X: Any,
    regularizer: Regularizer,
    radius: float = 1.0,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
) -> Finding:
    """Bound on the Rademacher complexity of MKL with any norm of the weights or of the components.

        R(H) <= radius sqrt( R^2 / n  min_{q,a} c_q(a) ||1/a||_{q*} c min(e ceil(log M), ceil(q*)) )

    for f = sum_m f_m, 2 Omega(||f_1||, ..., ||f_M||) <= radius^2, k_m(x, x) <= R^2 and c = 23/22, where
    c_q(a) is at least ||a d||_q for all weights d allowed. With a = 1 these are the bounds of all lp norms
    (`lp_complexity`), converted to this one by c_q, `conversion_factor` squared; a_m = 1 / (largest d_m)
    takes account of costs. At q = 1 it is the dual norm of the weights at (1, ..., 1) that counts:

        c_1 = 2 Omega*(1, ..., 1),      R(H) <= radius sqrt( c_1 c e ceil(log M) R^2 / n )

    Remark 7 and section 5 of Kloft et al. (2011), which name block norms, their sums (the elastic net) and
    non-isotropic norms.

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    regularizer : Regularizer
        In the form of a constraint, 2 Omega the square of a norm: ``BlockNorm``, ``Mahalanobis``, ``LpNorm``
        with costs, ``Wedge(form="constraint")``, ``ElasticNet(form="constraint")``, ``FromPrice`` of a
        constraint.
    radius : float, default=1.0
        For a fitted model ``(2 * regularizer.penalty(norms_)) ** 0.5``.
    diag_bound, normalize
        As in `lp_complexity`.

    Returns
    -------
    finding : Finding
        `parts["through"]` is the q of the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, per_feature
    >>> from kernelweave.regularizers import BlockNorm, LpNorm
    >>> X = np.random.default_rng(0).normal(size=(100, 10))
    >>> known = {"diag_bound": 1.0, "normalize": None}
    >>> rules = (LpNorm(p=2), LpNorm(p=2, costs=np.arange(1.0, 11.0)), BlockNorm(q=4))
    >>> [round(float(norm_complexity(per_feature(RBF()), X, rule, **known)), 2) for rule in rules]
    [0.26, 0.16, 0.57]
    """
    check_number("radius", radius, 0.0)
    found = dictionary(kernels, X, normalize)
    rule = class_of(regularizer, found)
    R2, small = largest_diagonal(found, diag_bound)
    M, n = found.gram.n_kernels, found.gram.n_samples
    orders = [1.0, *(dual / (dual - 1.0) for dual in range(2, ceil(e * ceil(log(M))) + 1)), np.inf]
    tops = largest_each(rule, M)
    units = [np.ones(M)] if rule.ascends else [np.ones(M), 1.0 / tops]
    bounds = {order: min(converted(rule, a, order, tops) for a in units) for order in orders}
    best = min(bounds, key=bounds.__getitem__)
    value = radius * sqrt(bounds[best] * R2 / n)
    statement = f"bound on the Rademacher complexity of {regularizer!r}, {M} kernels, {n} samples"
    return Finding(value, statement, (small,), {"R2": R2, "n_kernels": M, "n_samples": n, "through": best})


def lp_risk_bound(
    losses: Any,
    kernels: Any,
    X: Any,
    p: float = 2.0,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    delta: float = 0.05,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
    regularizer: Regularizer | None = None,
) -> Finding:
    """Bound on the probability of error of lp-norm MKL, or of MKL with another norm.

        P(y f(x) <= 0) <= mean loss + 4 L R(H_p) + sqrt(ln(2/delta) / (2n))

    with probability 1 - delta for all f of the class, R(H_p) from `lp_complexity`, and a loss V(y f) in
    [0, 1] of Lipschitz constant L that is at least 1 where y f <= 0. Corollary 10 of Kloft et al. (2011);
    with a `regularizer`, R(H) from `norm_complexity`.

    Parameters
    ----------
    losses : array-like of shape (n,)
        V(y_i f(x_i)) on the training samples.
    kernels, X, p, radius, diag_bound, normalize
        As in `lp_complexity`.
    lipschitz : float, default=1.0
        L.
    delta : float, default=0.05
    regularizer : Regularizer, optional
        In place of p, as in `norm_complexity`.

    Returns
    -------
    finding : Finding
        `parts` holds the three terms. Values above 1 say nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> bound = lp_risk_bound(np.zeros(400), per_feature(RBF()), X, diag_bound=1.0, normalize=None)
    >>> bound.value
    0.582...
    """
    check_number("delta", delta, 0.0, 1.0)
    check_number("lipschitz", lipschitz, 0.0)
    if regularizer is None:
        what, complexity = f"p={p:g}", lp_complexity(kernels, X, p, radius, diag_bound, normalize)
    else:
        complexity = norm_complexity(kernels, X, regularizer, radius, diag_bound, normalize)
        what = repr(regularizer)
    n = complexity.parts["n_samples"]
    values = np.asarray(losses, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(f"losses of shape {values.shape}: {n} finite numbers are needed, one per sample.")
    terms = {
        "empirical_risk": float(values.mean()),
        "complexity": 4.0 * lipschitz * complexity.value,
        "confidence": sqrt(log(2.0 / delta) / (2.0 * n)),
    }
    inside = bool((values >= 0).all() and (values <= 1).all())
    needed = (
        *complexity.assumptions,
        Assumption("loss in [0, 1]", inside, f"from {values.min():.4g} to {values.max():.4g}"),
        *outside_the_data(f"{what}, radius={radius:.4g}"),
    )
    statement = f"bound on the probability of error ({what}), with probability {1 - delta:g}"
    return Finding(sum(terms.values()), statement, needed, {**complexity.parts, **terms})


def radius_margin_bound(
    margins: Any,
    kernels: Any,
    X: Any,
    p: float = 2.0,
    margin: float = 1.0,
    radius: float = 1.0,
    delta: float = 0.05,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
    regularizer: Regularizer | None = None,
) -> Finding:
    """Radius-margin bound of lp-norm MKL, or of MKL with another norm.

        P(y f(x) <= 0) <= mean V + 4 R radius / gamma sqrt(c M^(1/p*) min(...) / n) + sqrt(ln(2/delta) / (2n))

    `lp_risk_bound` of the margin loss V = min(1, [1 - y f / gamma]_+), gamma = `margin`. Corollary 11 of
    Kloft et al. (2011).

    Parameters
    ----------
    margins : array-like of shape (n,)
        y_i f(x_i) on the training samples, y = +-1, f without intercept.
    kernels, X, p, radius, delta, diag_bound, normalize, regularizer
        As in `lp_risk_bound`.
    margin : float, default=1.0
        gamma, fixed beforehand.

    Returns
    -------
    finding : Finding

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> margins = np.full(400, 2.0)
    >>> bound = radius_margin_bound(margins, per_feature(RBF()), X, margin=2, diag_bound=1, normalize=None)
    >>> bound.parts["empirical_risk"], round(bound.value, 3)
    (0.0, 0.325)
    """
    gamma = check_number("margin", margin, 0.0)
    losses = np.clip(1.0 - np.asarray(margins, dtype=np.float64) / gamma, 0.0, 1.0)
    rest = (radius, delta, diag_bound, normalize, regularizer)
    return lp_risk_bound(losses, kernels, X, p, 1.0 / gamma, *rest)


def converted(rule: Regularizer, scales: FloatArray, order: float, tops: FloatArray) -> float:
    """c_q(a) ||1/a||_{q*} c min(e ceil(log M), ceil(q*)): weights a d, kernels K / a, and their lp bound."""
    M, dual = len(scales), conjugate_order(order)
    spread = power_norm(1.0 / scales, dual) / power_norm(np.ones(M), dual)
    return largest_norm(rule, scales, order, tops) * spread * growth(M, order)


def growth(n_kernels: int, p: float) -> float:
    """c M^(1/p*) min(e ceil(log M), ceil(p*)); for M = 1 the logarithm counts as 1."""
    logs = e * max(1, ceil(log(n_kernels)))
    # 1 / (1 - 1/p) of p = 4/3 is 4 plus rounding, which must not become 5
    dual = np.inf if p == 1.0 else ceil(1.0 / (1.0 - _inverse(p)) - 1e-9)
    result: float = MOMENTS * float(n_kernels) ** (1.0 - _inverse(p)) * min(logs, dual)
    return result


def _inverse(p: float) -> float:
    return 0.0 if np.isinf(p) else 1.0 / p


# -- greedy selection (Sindhwani & Lozano 2011, Theorem 1, corrected) ---------------------------------


def greedy_complexity(
    kernels: Any,
    X: Any,
    n_kernels: int,
    radius: float = 1.0,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
) -> Finding:
    """Bound on the Rademacher complexity of sums of at most s of M kernels.

        R(H_{tau,s}) <= sqrt(s kappa tau / n) ( 1 + sqrt(2 log binom(M, s)) )

    for f = sum_{m in S} f_m, |S| <= s, sum_m ||f_m||^2 <= tau = radius^2 and k_m(x, x) <= kappa.

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    n_kernels : int
        s.
    radius : float, default=1.0
        sqrt(tau), a bound on the norm of f.
    diag_bound : float, optional
        kappa, if known; by default the largest k(x, x) on the samples.
    normalize : str or None, default="variance"
        As in the estimators.

    Returns
    -------
    finding : Finding
        `parts["as_printed"]` is the bound of the paper, sqrt(s kappa tau / n).

    Notes
    -----
    Theorem 1 of Sindhwani & Lozano (2011) has the first factor only. That bounds every set S by itself;
    the class is the union over all S, and the supremum over S costs the second factor: for each S
    the norm Z_S = (sigma' K_S sigma)^(1/2) has mean at most tr(K_S)^(1/2), changes by at most
    2 k_S(x_i, x_i)^(1/2) with sigma_i, and so (bounded differences) is sub-Gaussian with variance tr(K_S);
    the largest of binom(M, s) such variables exceeds the means by sqrt(2 tr(K_S) log binom(M, s)) on
    average. Both agree when s = M. With M = 2^n kernels of sign vectors and s = 1 the complexity is
    sqrt(kappa tau), and no factor without M bounds it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> greedy_complexity(per_feature(RBF()), X, n_kernels=2, diag_bound=1.0, normalize=None)
    0.2658: bound on the Rademacher complexity of sums of 2 of 10 kernels, 400 samples
      [holds] k(x, x) bounded: largest on the samples 1, bound given 1
    """
    tau = check_number("radius", radius, 0.0) ** 2
    found = dictionary(kernels, X, normalize, matrices=False)
    s, M = check_count("n_kernels", n_kernels, len(found.names)), len(found.names)
    kappa, small = largest_diagonal(found, diag_bound)
    n = found.gram.n_samples
    printed = sqrt(s * kappa * tau / n)
    value = printed * (1.0 + sqrt(2.0 * log_choices(M, s)))
    statement = f"bound on the Rademacher complexity of sums of {s} of {M} kernels, {n} samples"
    parts = {"as_printed": printed, "kappa": kappa, "n_kernels": M, "n_samples": n}
    return Finding(value, statement, (small,), parts)


def greedy_risk_bound(
    kernels: Any,
    X: Any,
    y: Any,
    n_kernels: int,
    radius: float = 1.0,
    delta: float = 0.05,
    target_bound: float | None = None,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
) -> Finding:
    """Bound on the excess squared error of the best sum of s kernels on the sample.

        E (y - fhat)^2 - E (y - f*)^2 <= 8 L R(H_{tau,s}) + 4 L^2 sqrt(ln(3/delta) / (2n))

    with probability 1 - delta, L = B + sqrt(s kappa tau), |y| <= B, fhat the minimiser over the class of
    the mean squared error on the sample, f* the minimiser of the expected one, R(H_{tau,s}) from
    `greedy_complexity`. Theorem 1 of Sindhwani & Lozano (2011), with the complexity corrected there.

    Parameters
    ----------
    kernels, X, n_kernels, radius, diag_bound, normalize
        As in `greedy_complexity`.
    y : array-like of shape (n,)
        Targets; two classes count as +-1.
    delta : float, default=0.05
    target_bound : float, optional
        B, if known; by default the largest absolute target of the sample.

    Returns
    -------
    finding : Finding
        `parts` holds the two terms and L.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 5))
    >>> known = {"diag_bound": 1.0, "target_bound": 1.0, "normalize": None}
    >>> bound = greedy_risk_bound(per_feature(Linear()), X, X[:, 0], n_kernels=1, **known)
    >>> bound.parts["L"], round(bound.value, 2)
    (2.0, 2.14)
    """
    check_number("delta", delta, 0.0, 1.0)
    complexity = greedy_complexity(kernels, X, n_kernels, radius, diag_bound, normalize)
    n = complexity.parts["n_samples"]
    values = target_matrix(y, n, centered=False)
    if values.shape[1] != 1:
        raise ValueError(f"y has {values.shape[1]} columns or classes: the bound is for one output.")
    B, targets = bounded("|y|", float(np.abs(values).max()), "target_bound", target_bound)
    L = B + sqrt(n_kernels * complexity.parts["kappa"]) * radius
    terms = {
        "complexity": 8.0 * L * complexity.value,
        "confidence": 4.0 * L**2 * sqrt(log(3.0 / delta) / (2.0 * n)),
    }
    needed = (*complexity.assumptions, targets, *outside_the_data(f"s={n_kernels}, radius={radius:.4g}"))
    statement = f"bound on the excess squared error of {n_kernels} kernels, with probability {1 - delta:g}"
    return Finding(sum(terms.values()), statement, needed, {**complexity.parts, **terms, "L": L})


def log_choices(M: int, s: int) -> float:
    """log binom(M, s)."""
    return lgamma(M + 1) - lgamma(s + 1) - lgamma(M - s + 1) if 0 < s < M else 0.0
