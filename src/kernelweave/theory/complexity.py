"""Rademacher complexity of the function classes of MKL, measured on a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..gram import Dictionary, Gram
from ..regularizers import LpNorm, Regularizer
from ._statements import Assumption, Finding, check_count, check_number, dictionary


def empirical_complexity(
    kernels: Any,
    X: Any,
    p: float | None = None,
    n_kernels: int | None = None,
    radius: float = 1.0,
    normalize: str | None = "variance",
    n_draws: int = 200,
    random_state: int = 0,
    regularizer: Regularizer | None = None,
) -> Finding:
    """Empirical Rademacher complexity of a class of functions, by drawing signs.

        E_sigma sup_{f in class} 1/n sum_i sigma_i f(x_i)

    The supremum has a closed form in q_m = sigma' K_m sigma. With `p`, for lp-norm MKL,

        f = sum_m sqrt(d_m) <w_m, phi_m>,  ||w|| <= radius,  ||d||_p <= 1:    radius/n ||q||_{p*}^(1/2)

    and with `n_kernels` = s, for greedy selection,

        f = sum_{m in S} f_m,  sum_m ||f_m||^2 <= radius^2,  |S| <= s:  radius/n (sum of s largest q)^(1/2)

    and with a `regularizer` in the form of a constraint, whose 2 Omega is the square of a block norm,

        f = sum_m f_m,  2 Omega(||f_1||, ..., ||f_M||) <= radius^2:     radius/n (2 Omega*(q^(1/2)))^(1/2)

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    p : float, optional
        Norm of the weights, from 1 to infinity; give this, `n_kernels` or `regularizer`.
    n_kernels : int, optional
    radius : float, default=1.0
    normalize : str or None, default="variance"
        As in the estimators.
    n_draws : int, default=200
    random_state : int, default=0
    regularizer : Regularizer, optional
        In the form of a constraint, with the parameters of all kernels.

    Returns
    -------
    finding : Finding
        `parts["standard_error"]` is the standard error over the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> sparse, dense = (float(empirical_complexity(per_feature(Linear()), X, p=p)) for p in (1, np.inf))
    >>> round(sparse, 2), round(dense, 2)  # the larger p, the larger the class
    (0.21, 0.44)
    """
    if sum(option is not None for option in (p, n_kernels, regularizer)) != 1:
        raise ValueError(
            "give either p, for lp-norm MKL, or n_kernels, for greedy selection, or another regularizer."
        )
    check_number("radius", radius, 0.0)
    check_count("n_draws", n_draws, 1_000_000)
    found = dictionary(kernels, X, normalize)
    quads = sign_quads(found.gram, n_draws, random_state)
    if n_kernels is not None:
        size = min(check_count("n_kernels", n_kernels, len(found.names)), quads.shape[1])
        what, suprema = f"{n_kernels} kernels", np.sqrt(np.sort(quads, axis=1)[:, -size:].sum(axis=1))
    elif regularizer is not None:
        what, suprema = repr(regularizer), suprema_of(class_of(regularizer, found), quads)
    else:
        order = check_number("p", p, 1.0, closed=True)
        what, suprema = f"p={p:g}", suprema_of(LpNorm(order), quads)
    values = radius * suprema / found.gram.n_samples
    spread = float(values.std()) / np.sqrt(n_draws)
    statement = f"empirical Rademacher complexity ({what}), standard error {spread:.2g} over {n_draws} draws"
    return Finding(float(values.mean()), statement, (), {"standard_error": spread})


def class_of(regularizer: Regularizer, found: Dictionary) -> Regularizer:
    """The regulariser of the kernels that vary, whose 2 Omega is the square of a norm of the components."""
    if not isinstance(regularizer, Regularizer):
        raise ValueError(f"regularizer={regularizer!r} must be a regularizer, such as BlockNorm(q=4).")
    rule = regularizer.select(found.live, len(found.names)).bound_to(found.gram)
    return check_constraint("regularizer", rule, len(found.live))


def check_constraint(name: str, rule: Regularizer, n_kernels: int) -> Regularizer:
    """Refuse a regulariser unless Omega(2 n) = 4 Omega(n): otherwise 2 Omega is not the square of a norm."""
    some = np.linspace(1.0, 2.0, n_kernels)
    once, twice = rule.penalty(some), rule.penalty(2.0 * some)
    if not (rule.convex and abs(twice - 4.0 * once) <= 1e-6 * twice):
        raise ValueError(
            f"{name}={rule!r} bounds no norm of the components: give it in the form of a constraint "
            '(form="constraint").'
        )
    return rule


def suprema_of(rule: Regularizer, quads: FloatArray) -> FloatArray:
    """(2 Omega*(q^(1/2)))^(1/2) of every row q: sup sum_m n_m r_m over 2 Omega(n) <= 1, r = q^(1/2)."""
    return np.sqrt([2.0 * rule.conjugate(row) for row in np.sqrt(quads)])


def sign_quads(gram: Gram, n_draws: int, seed: int) -> FloatArray:
    """sigma' K_m sigma for random signs sigma, shape (n_draws, M)."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(gram.n_samples, n_draws))
    units = np.eye(gram.n_kernels)
    return np.column_stack([quad_columns(gram.combine(unit), signs) for unit in units])


def quad_columns(K: FloatArray, A: FloatArray) -> FloatArray:
    """a' K a for every column a of A; rounding below zero is cut off."""
    result: FloatArray = np.maximum(np.einsum("ik,ik->k", A, K @ A), 0.0)
    return result


def largest_diagonal(found: Dictionary, diag_bound: float | None) -> tuple[float, Assumption]:
    """A bound on k_m(x, x) for all m: the given one, or the largest on the samples; and what it assumes."""
    units = np.eye(found.gram.n_kernels)
    seen = max(float(found.gram.diag(unit).max()) for unit in units)
    return bounded("k(x, x)", seen, "diag_bound", diag_bound)


def bounded(what: str, seen: float, argument: str, given: float | None) -> tuple[float, Assumption]:
    """A bound: the given one, or the largest seen on the samples; and what it assumes."""
    if given is None:
        text = f"largest on the samples {seen:.4g}; beyond them it is not known"
        return seen, Assumption(f"{what} bounded", None, text)
    bound = check_number(argument, given, 0.0)
    text = f"largest on the samples {seen:.4g}, bound given {bound:.4g}"
    return bound, Assumption(f"{what} bounded", bool(seen <= bound * (1 + 1e-9)), text)


def outside_the_data(chosen: str) -> tuple[Assumption, Assumption]:
    """What risk bounds assume and no sample can show."""
    return (
        Assumption("class fixed beforehand", None, f"{chosen}: not chosen on these samples"),
        Assumption("independent samples", None, "drawn from one distribution; no intercept in f"),
    )
