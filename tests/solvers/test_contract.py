"""Methods that are not over kernel weights keep what every run promises."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram, FeatureSource
from kernelweave.kernels import RBF, Linear, ProductRBF
from kernelweave.losses import Hinge, Squared
from kernelweave.solvers import Problem
from kernelweave.solvers.greedy import FactorDictionary, GreedyTask, GroupOMP
from kernelweave.solvers.kernel_gradient import KernelGradient
from kernelweave.solvers.multiple import Alternating
from kernelweave.solvers.multiple.empirical_bayes import EmpiricalBayes, GaussianEvidence
from kernelweave.solvers.run import Result
from kernelweave.testing import check_solver
from kernelweave.testing.solvers import RunCase, method_cases, run_case, runs

X = np.random.default_rng(0).normal(size=(50, 4))
Y = X[:, :1] + 0.5 * np.sin(3 * X[:, 1:2]) + 0.2 * np.random.default_rng(1).normal(size=(50, 1))
Ks = [RBF(gamma=gamma)(X) for gamma in (0.1, 1.0)] + [np.outer(x, x) for x in X.T]


def select(method: GroupOMP, **options: object) -> Result:
    task = GreedyTask(Y, np.ones(50), Squared(), ridge=0.01)
    source = FeatureSource([(f"x{j}", Linear(columns=[j])) for j in range(4)] + [("rbf", RBF())], X)
    return method.solve(FactorDictionary(source, "variance", task.weight, True, task.shift), task, **options)


def descend(method: KernelGradient, **options: object) -> Result:
    return method.solve(Problem(np.sign(Y), Hinge(), np.ones((50, 1))), ProductRBF(), X, **options)


def maximise(method: EmpiricalBayes, **options: object) -> Result:
    return method.solve(GaussianEvidence(DenseGram(Ks), Y, np.ones(50)), **options)


CASES = [
    RunCase(GroupOMP(), select),
    RunCase(GroupOMP(backward=True, sample=2, random_state=0), select),
    RunCase(GroupOMP(n_kernels=2), select),
    RunCase(KernelGradient(), descend),
    RunCase(KernelGradient("spectral", n_init=2, random_state=0), descend),
    RunCase(EmpiricalBayes(), maximise),
    RunCase(EmpiricalBayes("mm", memory=0), maximise),
    run_case(method_cases(Alternating())[0]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.method))
@pytest.mark.parametrize("promise", runs.promises, ids=lambda promise: promise.__name__)
def test_contract(case, promise):
    promise(case)


class Deaf(GroupOMP):
    """Does not pass the callback on."""

    def solve(self, dictionary, task, callback=None, keeper=None):
        result = super().solve(dictionary, task, None, keeper)
        if callback is not None:
            for iteration in range(result.n_iter):
                callback(iteration, result.state)
        return result


def test_a_mistake_is_found_and_named():
    check_solver(GroupOMP(), select)
    with pytest.raises(AssertionError, match=r"Deaf.* breaks the contract, the callback may end a run: "):
        check_solver(Deaf(), select)
    with pytest.raises(AssertionError, match="is no function solve"):
        check_solver(GroupOMP(), Squared())
