"""Every registered regulariser over its parameters has the properties of `kernelweave.testing`."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import (
    REGULARIZERS,
    BlockNorm,
    ElasticNet,
    GroupLassoTerm,
    LogTerm,
    LpNorm,
    Mahalanobis,
    MFocussTerm,
    MKLTerm,
    Regularizer,
    Uniform,
    Wedge,
)
from kernelweave.testing import check_regularizer
from kernelweave.testing.regularizers import ascending, concave, contract

KERNELS = 5
ORDERS = [1.0, 32 / 31, 4 / 3, 2.0, 4.0, np.inf]
COSTS = np.array([0.5, 1.0, 2.0, 4.0, 0.1])


def matrix(seed: int, signs: bool) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(KERNELS, KERNELS))
    A = A if signs else np.abs(A)
    return A @ A.T / KERNELS + 0.1 * np.eye(KERNELS)


CONVEX = [
    *(cls() for cls in REGULARIZERS.values() if cls.convex),
    *(LpNorm(p=p, form=form) for p in ORDERS for form in ("constraint", "penalty")),
    *(ElasticNet(ratio) for ratio in (0.0, 0.1, 0.9, 1.0)),
    *(BlockNorm(q) for q in (1.0, 1.5)),
    *(LpNorm(p=p, costs=COSTS) for p in (1.0, 4 / 3, 2.0, np.inf)),
    *(LpNorm(p=p, form="penalty", costs=COSTS) for p in (1.0, 1.5, 3.0)),
    *(Mahalanobis(matrix(seed, signs=seed > 1)) for seed in range(4)),
    *(ElasticNet(ratio, form="constraint") for ratio in (0.0, 0.3, 0.9, 1.0)),
    *(BlockNorm(q, form="penalty") for q in (1.0, 1.5, 2.0)),
    *(Mahalanobis(matrix(seed, signs=seed > 0), form="penalty") for seed in range(2)),
    Wedge(form="constraint"),
]
CONCAVE = [
    *(cls() for cls in REGULARIZERS.values() if not cls.convex),
    *(MFocussTerm(p=p) for p in (0.2, 1.0)),
    LogTerm(eta=COSTS, eps=0.1),
    MKLTerm(eta=COSTS),
    LogTerm() + 2.0 * GroupLassoTerm(eta=COSTS) + MFocussTerm(),
]
ASCENDING = [
    *(BlockNorm(q) for q in (2.5, 3.0, 4.0, 8.0, 16.0, np.inf)),
    *(BlockNorm(q, form="penalty") for q in (2.5, 4.0, 16.0)),
]

PAIRS = [
    pytest.param(regularizer, promise, id=f"{promise.__name__}-{k} {repr(regularizer)[:40]}")
    for kind, regularizers in ((contract, CONVEX), (concave, CONCAVE), (ascending, ASCENDING))
    for promise in kind.promises
    for k, regularizer in enumerate(regularizers)
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("regularizer", "promise"), PAIRS)
def test_contract(regularizer, promise):
    promise(regularizer, KERNELS)


class WrongWeights(LpNorm):
    """Feasible, but not the best."""

    def weights(self, norms):
        return 0.9 * super().weights(norms)


class WrongConjugate(Uniform):
    """Too small: gaps would be below zero."""

    def conjugate(self, dual_norms):
        return 0.9 * super().conjugate(dual_norms)


class WrongSlopes(ElasticNet):
    """Newton's method would take wrong steps."""

    def price_slopes(self, weights):
        slopes, curvatures = super().price_slopes(weights)
        return 2.0 * slopes, curvatures


class WrongTangent(LogTerm):
    """Steps of a machine could raise the objective."""

    def slopes(self, x):
        return 0.5 * super().slopes(x)


@pytest.mark.parametrize(
    ("regularizer", "title"),
    [
        (WrongWeights(), "penalty is reached at the weights"),
        (WrongConjugate(), "conjugate bounds every feasible gain"),
        (WrongSlopes(), "price slopes are derivatives of the price"),
        (WrongTangent(), "weights are inverse slopes"),
    ],
    ids=repr,
)
def test_a_mistake_is_found_and_named(regularizer, title):
    with pytest.raises(
        AssertionError, match=f"^{type(regularizer).__name__}.* breaks the contract, {title}: "
    ):
        check_regularizer(regularizer)


@pytest.mark.parametrize("name", sorted(REGULARIZERS))
def test_registry_gives_the_default_part(name):
    part = REGULARIZERS.resolve(name, Regularizer)
    assert type(part) is REGULARIZERS[name]
    assert part.name == name


def test_registry_names_the_argument_and_the_choices():
    with pytest.raises(ValueError, match=r"reg='l2' is not a regularizer: pass one of .*'lp'.*'uniform'"):
        REGULARIZERS.resolve("l2", Regularizer, "reg")
    with pytest.raises(ValueError, match=r"regularizer=LpNorm is a class: pass an object, LpNorm\("):
        REGULARIZERS.resolve(LpNorm, Regularizer)
    with pytest.raises(ValueError, match="is not a regularizer"):
        REGULARIZERS.resolve(dict, Regularizer)
