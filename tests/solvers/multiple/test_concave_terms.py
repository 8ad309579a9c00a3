"""Majorise-minimise: the objective never rises, small weights are exactly zero and stay so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import LOSSES
from kernelweave.regularizers import REGULARIZERS, SMKL, GroupLassoTerm, LogTerm, MFocussTerm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import MajorizeMinimize

from ...targets import SEPARABLE, targets_of

TERMS = [cls() for cls in REGULARIZERS.values() if not cls.convex] + [
    0.3 * LogTerm(eps=1e-3) + GroupLassoTerm(eta=0.2),
    MFocussTerm(p=0.3, eta=0.5),
]


def sample(name: str, n: int = 50) -> tuple[Problem, DenseGram]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 12))
    Ks = [X[:, [j, j + 1]] @ X[:, [j, j + 1]].T for j in range(0, 12, 2)]
    target = X[:, 0] - X[:, 5] + 0.3 * rng.normal(size=n)
    loss = LOSSES[name]()
    y = targets_of(loss, target)
    C = 1.0 / (0.4 * n) if name == "one_class" else 5.0
    return Problem(y[:, None], loss, np.full((n, 1), C)), DenseGram(Ks)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in SEPARABLE if name != "one_class"])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_objective_never_rises(name, term):
    problem, gram = sample(name)
    solution = MajorizeMinimize().solve(problem, gram, term, tol=1e-3, max_iter=1000)
    primal = np.array(solution.history["primal"])
    assert solution.converged
    assert (np.diff(primal) <= 1e-9 * np.abs(primal[:-1])).all()
    assert solution.state.residual <= 1e-3


def test_dropped_kernels_are_never_evaluated_again():
    problem, gram = sample("squared")
    seen = []
    quad = gram.quad
    gram.quad = lambda alpha, kernels=None: seen.append(set(kernels)) or quad(alpha, kernels)
    solution = MajorizeMinimize().solve(problem, gram, SMKL())
    weights = solution.state.weights
    assert all(later <= earlier for earlier, later in pairwise(seen))
    assert seen[-1] == set(np.flatnonzero(weights)) < set(range(6))
    assert (weights[weights > 0] >= 1e-6 * weights.max()).all()


def test_informative_kernels_survive():
    problem, gram = sample("squared", n=120)
    solution = MajorizeMinimize().solve(problem, gram, SMKL())
    assert set(np.flatnonzero(solution.state.weights)) == {0, 2}
