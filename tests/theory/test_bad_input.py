"""Bad input gets one error that names the argument and what would do."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.kernels import Linear, per_feature
from kernelweave.regularizers import SMKL, BlockNorm, ElasticNet, LpNorm, Mahalanobis, Wedge
from kernelweave.theory import (
    conversion_factor,
    empirical_complexity,
    greedy_complexity,
    greedy_risk_bound,
    lp_complexity,
    lp_risk_bound,
    norm_complexity,
    pairwise_alignment,
    radius_margin_bound,
    recovery_coefficient,
    suggest,
    target_alignment,
)

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 3)), RNG.standard_normal(20)
K = per_feature(Linear())
BROKEN = np.where(np.arange(20) == 3, np.nan, Y)

CASES = {
    "one sample": (lambda: pairwise_alignment(K, X[:1]), "X has 1 samples"),
    "not symmetric": (lambda: pairwise_alignment("precomputed", [np.triu(np.ones((3, 3)))]), "not symmetric"),
    "not psd": (
        lambda: pairwise_alignment("precomputed", [np.diag([1.0, -1.0])]),
        "not positive semidefinite",
    ),
    "not square": (lambda: pairwise_alignment("precomputed", [np.ones((3, 2))]), "must be square"),
    "no matrices": (lambda: pairwise_alignment("precomputed", []), "no matrices"),
    "nan in X": (lambda: pairwise_alignment(K, np.full((5, 2), np.nan)), "NaN"),
    "flat kernels": (lambda: pairwise_alignment(Linear(), np.ones((5, 2))), "none of them varies"),
    "short y": (lambda: target_alignment(K, X, Y[:5]), r"y has shape \(5,\)"),
    "constant y": (lambda: target_alignment(K, X, np.ones(20)), "y is constant"),
    "one class": (lambda: suggest(K, X, ["a"] * 20), "y is constant"),
    "nan in y": (lambda: target_alignment(K, X, BROKEN, task="regression"), "y has NaN"),
    "nan in y, auto": (lambda: target_alignment(K, X, BROKEN), "y has NaN"),
    "text as numbers": (
        lambda: target_alignment(K, X, ["a"] * 10 + ["b"] * 10, task="regression"),
        "numbers",
    ),
    "class columns": (lambda: suggest(K, X, X, task="classification"), "class labels are one column"),
    "task": (lambda: suggest(K, X, Y, task="ranking"), "task='ranking'"),
    "few samples": (lambda: suggest(K, X[:5], Y[:5]), "at least 8"),
    "max_samples": (lambda: suggest(K, X, Y, max_samples=0), "max_samples=0"),
    "p": (lambda: lp_complexity(K, X, p=0.5), "p=0.5"),
    "p nan": (lambda: empirical_complexity(K, X, p=np.nan), "p=nan"),
    "radius": (lambda: lp_complexity(K, X, radius=-1.0), "radius=-1.0"),
    "not a constraint": (lambda: norm_complexity(K, X, Wedge()), 'form="constraint"'),
    "not a norm": (lambda: empirical_complexity(K, X, regularizer=SMKL()), "bounds no norm"),
    "no regularizer": (lambda: norm_complexity(K, X, 2.0), "must be a regularizer"),
    "costs": (lambda: norm_complexity(K, X, LpNorm(2, costs=np.ones(2))), "2 entries for 3 kernels"),
    "from a penalty": (lambda: conversion_factor(3, Wedge(), 2.0), "q=.*form=.constraint"),
    "to a penalty": (lambda: conversion_factor(3, 1.0, ElasticNet()), "p=.*form=.constraint"),
    "to alignment": (lambda: conversion_factor(3, 1.0, Mahalanobis()), "give the matrix E"),
    "to other costs": (lambda: conversion_factor(3, 1.0, LpNorm(2, costs=np.ones(2))), "2 entries for 3"),
    "from no norm": (lambda: conversion_factor(3, BlockNorm(4), 2.0), "bounds no norm of the weights"),
    "neither": (lambda: empirical_complexity(K, X), "either p"),
    "both": (lambda: empirical_complexity(K, X, p=1, n_kernels=1), "either p"),
    "draws": (lambda: empirical_complexity(K, X, p=1, n_draws=0), "n_draws=0"),
    "too many": (lambda: greedy_complexity(K, X, n_kernels=4), "n_kernels=4 must be an integer from 1 to 3"),
    "diag_bound": (lambda: greedy_complexity(K, X, n_kernels=1, diag_bound=0.0), "diag_bound=0.0"),
    "delta": (lambda: greedy_risk_bound(K, X, Y, 1, delta=1.0), "delta=1.0"),
    "outputs": (lambda: greedy_risk_bound(K, X, X, 1), "one output"),
    "losses": (lambda: lp_risk_bound(np.zeros(3), K, X), "losses of shape"),
    "margin": (lambda: radius_margin_bound(Y, K, X, margin=0.0), "margin=0.0"),
    "conversion": (lambda: conversion_factor(5, q=3.0, p=2.0), "q=3 must not exceed p=2"),
    "n_kernels": (lambda: conversion_factor(0, q=1.0, p=2.0), "n_kernels=0"),
    "alpha": (lambda: recovery_coefficient(K, X, [0], alpha=0.0), "alpha=0.0"),
    "unknown": (lambda: recovery_coefficient(K, X, ["x"]), "no kernel 'x'"),
    "position": (lambda: recovery_coefficient(K, X, [7]), "positions from 0 to 2"),
    "nothing good": (lambda: recovery_coefficient(K, X, []), "some, and not all"),
    "all good": (lambda: recovery_coefficient(K, X, [0, 1, 2]), "some, and not all"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_clear_error(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()
