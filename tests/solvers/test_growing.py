"""Growing parts of the samples: the same optimum, certified on all samples, from fewer pairs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave.gram import BlockedGram, DenseGram
from kernelweave.losses import EpsInsensitive, Hinge, Logistic
from kernelweave.regularizers import BlockNorm, LpNorm
from kernelweave.solvers import Problem, certificate, growing
from kernelweave.solvers.multiple import choose_solver

N = 700


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    monkeypatch.setattr(growing, "FEWEST", 500)


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(N, 3))
    Ks = [np.exp(-((X[:, None, :] - X[None]) ** 2).sum(-1) / width) for width in (0.5, 2.0, 8.0, 32.0)]
    return X, Ks


def target(X, loss):
    f = X[:, :1] * X[:, 1:2] + X[:, 2:3]
    return np.sign(f) if loss.task == "classification" else f


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [Hinge(), EpsInsensitive(eps=0.1)], ids=repr)
@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=4 / 3), LpNorm(p=2)], ids=repr)
def test_same_objective_as_on_all_samples_at_once(sample, loss, regularizer):
    X, Ks = sample
    problem = Problem(target(X, loss), loss, np.full((N, 1), 2.0))
    solver, streamed = choose_solver("auto", regularizer), BlockedGram(Ks)
    ours = solver.solve(problem, streamed, regularizer, tol=1e-4)
    reference = choose_solver("auto", regularizer).solve(problem, DenseGram(Ks), regularizer, tol=1e-4)
    assert growing.can_grow(problem, streamed, regularizer)
    proof = certificate(problem, DenseGram(Ks), regularizer, ours.state.alpha, ours.state.weights)
    assert proof.gap <= 1e-4
    assert proof.primal == pytest.approx(ours.state.certificate.primal, rel=1e-9)
    assert proof.primal == pytest.approx(reference.state.certificate.primal, rel=2e-4)


def test_samples_far_from_the_margin_never_take_part(sample, monkeypatch):
    X, Ks = sample
    problem = Problem(target(X, Hinge()), Hinge(), np.full((N, 1), 2.0))
    sizes = []
    round_of = growing.Growing._round

    def spy(self, *args):
        sizes.append(len(self.rows))
        return round_of(self, *args)

    monkeypatch.setattr(growing.Growing, "_round", spy)
    regularizer = LpNorm(p=2)
    solution = choose_solver("auto", regularizer).solve(problem, BlockedGram(Ks), regularizer)
    assert sizes == sorted(sizes)
    assert np.count_nonzero(solution.state.alpha) <= sizes[-1] < N


def test_only_sparse_duals_and_convex_penalties_grow(sample):
    X, Ks = sample
    gram, y = BlockedGram(Ks), np.sign(X[:, :1])
    hinge, logistic = (Problem(y, loss, np.ones((N, 1))) for loss in (Hinge(), Logistic()))
    assert growing.can_grow(hinge, gram, BlockNorm(q=1.5))
    assert not growing.can_grow(logistic, gram, LpNorm(p=2))
    assert not growing.can_grow(hinge, DenseGram(Ks), LpNorm(p=2))


def test_a_true_callback_stops(sample):
    X, Ks = sample
    problem = Problem(target(X, Hinge()), Hinge(), np.ones((N, 1)))
    regularizer, seen = LpNorm(p=2), []
    with pytest.warns(UserWarning, match="relative duality gap"):
        solution = choose_solver("auto", regularizer).solve(
            problem, BlockedGram(Ks), regularizer, 1e-12, callback=lambda *state: seen.append(state) or True
        )
    assert len(solution.history["gap"]) == 1
    assert len(solution.state.alpha) == N


def test_parts_that_memory_allows_are_enough(sample, monkeypatch):
    X, Ks = sample
    problem = Problem(target(X, Hinge()), Hinge(), np.full((N, 1), 2.0))
    regularizer, sizes, round_of = LpNorm(p=2), [], growing.Growing._round
    reference = choose_solver("auto", regularizer).solve(problem, DenseGram(Ks), regularizer, tol=1e-4)
    n_support = np.count_nonzero(reference.state.alpha)
    gram = BlockedGram(Ks, memory_limit=int(8 * (1.3 * n_support) ** 2 / 0.4))

    def spy(self, *args):
        sizes.append(len(self.rows))
        return round_of(self, *args)

    monkeypatch.setattr(growing.Growing, "_round", spy)
    ours = choose_solver("auto", regularizer).solve(problem, gram, regularizer, tol=1e-4)
    assert max(sizes) <= gram.most_combined < N
    assert ours.state.certificate.primal == pytest.approx(reference.state.certificate.primal, rel=2e-4)


def test_all_that_violate_may_be_support_vectors_already():
    rounds, gram = growing.Growing(), SimpleNamespace(n_samples=10, most_combined=8)
    rounds.alpha = np.r_[np.ones(6), np.zeros(4)][:, None]
    assert rounds._with(gram, np.array([0, 1, 2]), np.arange(6)).tolist() == list(range(6))
