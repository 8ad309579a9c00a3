"""The work of a cross-validated search: solve a grid on one fold, and score what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from .._typing import FloatArray, IntArray
from ..gram import Dictionary, FoldSource, GramStore, StackFoldSource
from ..solvers.run import Result
from ._base import BaseMKL, Setup, Task, fit_device
from ._labels import decided
from .path import solve_chain


class Fold(NamedTuple):
    """Held-out decision values (n_test, n_functions) of every point, and norms to guide other folds."""

    values: list[FloatArray]
    norms: list[list[list[FloatArray]]]  # chain, task, point


@dataclass(frozen=True)
class Search:
    """Everything a fold needs: the problems, the grid, and the matrices of all samples."""

    template: BaseMKL
    setup: Setup
    chains: list[list[BaseMKL]]
    matrices: list[FloatArray] | GramStore
    names: list[str]
    normalize: str | None

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every fold
        held = 0 if isinstance(self.matrices, GramStore) else sum(K.nbytes for K in self.matrices)
        return object.__sizeof__(self) + held

    def fold(self, train: IntArray, test: IntArray, guides: Any) -> Fold:
        """Solve the grid on `train` and evaluate it on `test`."""
        weight = self.setup.weight[self.setup.weight > 0]
        dictionary = self._dictionary(train, weight[train])
        tasks = [_task_on(task, train) for task in self.setup.tasks]
        solved = [
            [
                solve_chain(dictionary, task, chain, self.template.C, guides and guides[c][t])
                for t, task in enumerate(tasks)
            ]
            for c, chain in enumerate(self.chains)
        ]
        norms = [
            [[dictionary.all_weights(found.state.certificate.norms) for found in line] for line in lines]
            for lines in solved
        ]
        points = [point for lines in solved for point in zip(*lines, strict=True)]
        return Fold(_held_out(dictionary, tasks, points, test), norms)

    def _dictionary(self, train: IntArray, weight: FloatArray) -> Dictionary:
        """The kernels on the training rows; of a store, as much in memory as there is room for."""
        options: dict[str, Any] = {"check": False, "device": fit_device(self.template)}
        if isinstance(self.matrices, GramStore):
            source = StackFoldSource(self.matrices, self.names, train)
            return Dictionary(source, self.normalize, weight, gram="auto", **options)
        return Dictionary(FoldSource(self.matrices, self.names, train), self.normalize, weight, **options)


def matrices_of(template: BaseMKL, setup: Setup) -> tuple[list[str], list[FloatArray] | GramStore]:
    """Names and matrices of the kernels on the samples of positive weight; those of a store stay there."""
    if not isinstance(setup.table, GramStore):
        return template._matrices(setup)
    used = np.flatnonzero(setup.weight)
    everything = len(used) == len(setup.table)
    return setup.table.names, setup.table if everything else setup.table[used, used]


def _task_on(task: Task, train: IntArray) -> Task:
    """A task restricted to the training rows of a fold."""
    if task.rows is None:
        return Task(task.title, task.problem.part(train))
    where = np.full(int(max(task.rows.max(), train.max())) + 1, -1)
    where[task.rows] = np.arange(len(task.rows))
    inside = np.flatnonzero(where[train] >= 0)
    return Task(task.title, task.problem.part(where[train][inside]), inside)


def _held_out(
    dictionary: Dictionary, tasks: list[Task], points: list[tuple[Result, ...]], test: IntArray
) -> list[FloatArray]:
    """Decision values on the test rows, one array (n_test, n_functions) a point."""
    states = [found.state for point in points for found in point]
    rows = [slice(None) if task.rows is None else task.rows for task in tasks] * len(points)
    alphas = []
    for state, part in zip(states, rows, strict=True):
        alpha = np.zeros((dictionary.gram.n_samples, state.alpha.shape[1]))
        alpha[part] = state.alpha
        alphas.append(alpha)
    weights = dictionary.all_weights(np.array([state.weights for state in states]))
    weights = np.repeat(weights, [alpha.shape[1] for alpha in alphas], axis=0)
    intercept = np.concatenate([state.certificate.intercept for state in states])
    values = dictionary.predictor(weights, np.hstack(alphas), intercept)(test)
    return np.split(values, len(points), axis=1)


class FrozenClassifier(ClassifierMixin, BaseEstimator):
    """Answers with decision values of a fold, for scorers."""

    def __init__(self, classes_: Any, values: Any) -> None:
        self.classes_ = classes_
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> FloatArray:
        return self.values

    def predict(self, X: Any) -> Any:
        return decided(self.classes_, self.values)


class FrozenRegressor(RegressorMixin, BaseEstimator):
    """Answers with predictions of a fold, for scorers."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        return self.values
