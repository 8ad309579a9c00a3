"""Many kernels: a few at a time, certified on all of them."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge, Squared
from kernelweave.regularizers import ElasticNet, LpNorm, Wedge
from kernelweave.solvers import Problem, certificate, growing
from kernelweave.solvers.multiple import choose_solver

M = 120


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(70, 12))
    chosen = [rng.choice(12, rng.integers(1, 5), replace=False) for _ in range(M)]
    Ks = [np.exp(-((X[:, None, c] - X[None][:, :, c]) ** 2).mean(-1) / 2) for c in chosen]
    return DenseGram(Ks), np.sign(X[:, :1] * X[:, 1:2] + 0.5 * X[:, 2:3])


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(growing, "MANY", 100)
    monkeypatch.setattr(growing, "FEW", 20)
    monkeypatch.setattr(growing, "JOINING", 10)


def solve(gram, y, loss, regularizer):
    problem = Problem(y, loss, np.full((70, 1), 3.0))
    fresh = gram.subset()
    solution = choose_solver("auto", regularizer).solve(problem, fresh, regularizer, tol=1e-5)
    proof = certificate(problem, gram, regularizer, solution.state.alpha, solution.state.weights)
    assert proof.gap <= 1e-5
    return proof.primal, solution, fresh.n_passes


@pytest.mark.parametrize("loss", [Hinge(), Squared()], ids=repr)
@pytest.mark.parametrize(
    "regularizer",
    [
        LpNorm(p=1),
        LpNorm(p=1, form="penalty"),
        LpNorm(p=1, costs=np.linspace(0.5, 2.0, M)),
        ElasticNet(l1_ratio=0.7),
        LpNorm(p=4 / 3),
        LpNorm(p=2),
    ],
    ids=repr,
)
def test_same_optimum_as_with_all_kernels(sample, few, monkeypatch, loss, regularizer):
    ours, solution, _ = solve(*sample, loss, regularizer)
    monkeypatch.setattr(growing, "MANY", 10**9)
    assert ours == pytest.approx(solve(*sample, loss, regularizer)[0], rel=2e-5)
    assert solution.state.weights.shape == (M,)


def test_fewer_passes_over_the_dictionary(sample, few, monkeypatch):
    _, _, ours = solve(*sample, Hinge(), LpNorm(p=1))
    monkeypatch.setattr(growing, "MANY", 10**9)
    _, _, theirs = solve(*sample, Hinge(), LpNorm(p=1))
    assert ours < theirs


def test_ordered_weights_are_left_to_the_full_solver(sample, few):
    gram, _ = sample
    assert growing.can_select(gram, LpNorm(p=1))
    assert not growing.can_select(gram, Wedge())
    assert not growing.can_select(gram, LpNorm(p=2))
