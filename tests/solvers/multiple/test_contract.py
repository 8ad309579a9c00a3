"""Every solver over kernel weights, with what it supports, has the properties of `kernelweave.testing`."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from kernelweave.regularizers import REGULARIZERS, BlockNorm, LpNorm
from kernelweave.solvers.multiple import MKL_SOLVERS, Alternating
from kernelweave.testing import check_solver
from kernelweave.testing.solvers import method_cases, methods

RULES = [cls() for cls in REGULARIZERS.values()] + [
    LpNorm(p=1),
    LpNorm(p=1, form="penalty"),
    BlockNorm(q=4.0),
]
CASES = [
    case
    for cls in MKL_SOLVERS.values()
    for case in method_cases(cls(), *(rule for rule in RULES if cls().supports(rule)))
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.solver.name}-{case.regularizer!r}")
@pytest.mark.parametrize("promise", methods.promises, ids=lambda promise: promise.__name__)
def test_contract(case, promise):
    promise(case)


class Boastful(Alternating):
    """Stops early and claims to have converged."""

    def solve(self, problem, gram, regularizer, tol=1e-3, max_iter=200, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = super().solve(problem, gram, regularizer, tol, min(max_iter, 2), **options)
        return replace(result, converged=True)


class Silent(Alternating):
    """Stops early without a warning."""

    def advice(self, run):
        return None


class Partial(Alternating):
    """Forgets a kernel."""

    def next_weights(self, run, state):
        weights = super().next_weights(run, state).copy()
        weights[0] = 0.0
        return weights


@pytest.mark.parametrize(
    ("solver", "title"),
    [
        (Boastful(), "the optimum is certified"),
        (Silent(), "a run cut short says so"),
        (Partial(), "the optimum is certified"),
    ],
    ids=repr,
)
def test_a_mistake_is_found_and_named(solver, title):
    name = rf"^\({type(solver).__name__}\(\), .*\)"
    with pytest.raises(AssertionError, match=f"{name} breaks the contract, {title}: "):
        check_solver(solver, LpNorm(p=1.5))
