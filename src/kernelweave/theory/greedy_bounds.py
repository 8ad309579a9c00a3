"""Generalisation bound of greedy kernel selection (Sindhwani & Lozano 2011, Theorem 1, corrected)."""

from __future__ import annotations

from math import lgamma, log, sqrt
from typing import Any

import numpy as np

from ._inputs import check_count, check_number, dictionary, target_matrix
from ._result import Result
from .complexity import bounded, largest_diagonal, outside_the_data


def greedy_complexity(
    kernels: Any,
    X: Any,
    n_kernels: int,
    radius: float = 1.0,
    diag_bound: float | None = None,
    normalize: str | None = "variance",
) -> Result:
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
    result : Result
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
    return Result(value, statement, (small,), parts)


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
) -> Result:
    """Bound on the excess squared error of the best sum of s kernels on the sample.

        E (y - fhat)^2 - E (y - f*)^2 <= 8 L R(H_{tau,s}) + 4 L^2 sqrt(ln(3/delta) / (2n))

    with probability 1 - delta, L = B + sqrt(s kappa tau), |y| <= B, fhat the minimiser over the class of
    the mean squared error on the sample, f* that of the expected one, R(H_{tau,s}) from
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
    result : Result
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
    needed = (
        *complexity.assumptions,
        targets,
        *outside_the_data(f"s={n_kernels}, radius={radius:.4g}"),
    )
    statement = f"bound on the excess squared error of {n_kernels} kernels, with probability {1 - delta:g}"
    return Result(sum(terms.values()), statement, needed, {**complexity.parts, **terms, "L": L})


def log_choices(M: int, s: int) -> float:
    """log binom(M, s)."""
    return lgamma(M + 1) - lgamma(s + 1) - lgamma(M - s + 1) if 0 < s < M else 0.0
