"""What the greedy estimators share: the path they find, parameters, held-out samples, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .._gaps import is_missing
from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..gram import KernelSource, KernelStack, Predictor
from ..gram.missing import MISSING, with_gaps
from ..kernels import as_views
from ..solvers.checkpoint import Keeper
from ..solvers.greedy import BestSubset, FactorDictionary, Fit, GreedyPoint, GreedyTask, GroupOMP, best_subset
from ..solvers.run import Result
from ._base import Spec, one_or_all
from ._input import check_choice, check_positive, check_settings
from ._kernels import BaseKernels
from ._training import ModelProgress, Training


@dataclass(frozen=True, repr=False, eq=False)
class GreedyPath:
    """The models of a greedy fit, one for every number of kernels.

    Entry k - 1 of everything belongs to the model of k kernels; where outputs form groups, to that of at
    most k kernels in each group.

    Attributes
    ----------
    kernel_names : list of str
        Of the whole dictionary.
    sets : list of tuple of int
        The kernels of each model in the order in which they came in. Without backward steps each
        adds one kernel to the one before. Of groups of outputs, the kernels of any group.
    gains : ndarray of shape (n_steps,)
        The gain that the last kernel of each model promised when it came in; summed over groups.
    objective, train_error : ndarray of shape (n_steps,)
        J = 2/l sum_i w_i V(y_i, f(x_i)) + lambda ||f||^2, and its first term, for the squared loss
        the mean squared error summed over outputs.
    validation_error : ndarray of shape (n_steps,), or None
        On the held-out samples: share of wrong labels, or mean loss.
    dual_coef : ndarray of shape (n_steps, n, n_outputs)
    intercept : ndarray of shape (n_steps, n_outputs)
    n_selected : int
        The number of kernels of the model chosen.
    stopped : str
        What ended the path, the longest one of groups: "tol", "n_kernels" or "interrupted".
    groups : list of GreedyPath
        The path of every group of outputs, where `output_groups` makes several.
    """

    kernel_names: list[str]
    sets: list[tuple[int, ...]]
    gains: FloatArray
    objective: FloatArray
    train_error: FloatArray
    validation_error: FloatArray | None
    dual_coef: FloatArray
    intercept: FloatArray
    n_selected: int
    stopped: str
    groups: list[GreedyPath] = field(default_factory=list)

    @property
    def entered(self) -> list[str]:
        """The kernel that came in last into each model; where outputs form groups, those of all groups."""
        paths = self.groups or [self]
        last = [[path.sets[k][-1] for path in paths if k < len(path)] for k in range(len(self))]
        return [", ".join(self.kernel_names[m] for m in dict.fromkeys(some)) for some in last]

    @property
    def order(self) -> list[int]:
        """Kernels of the longest model, in the order in which they came in."""
        return list(self.sets[-1]) if self.sets else []

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        names = " > ".join((self.entered if self.groups else [self.kernel_names[m] for m in self.order])[:6])
        more = " > ..." if len(self) > 6 else ""
        each = f" for each of {len(self.groups)} groups" if self.groups else ""
        count = f"{len(self)} of {len(self.kernel_names)} kernels{each}, {self.n_selected} chosen"
        return f"GreedyPath({count}, stopped by {self.stopped}: {names}{more})"

    def frame(self) -> Any:
        """One row per model, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns: dict[str, Any] = {
            "kernel": self.entered,
            "gain": self.gains,
            "objective": self.objective,
            "train_error": self.train_error,
        }
        if self.validation_error is not None:
            columns["validation_error"] = self.validation_error
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(self) + 1, name="n_kernels"))

    def weights(self) -> IntArray:
        """Which kernels each model uses, ones and zeros of shape (n_steps, M)."""
        out = np.zeros((len(self), len(self.kernel_names)), dtype=int)
        for row, kernels in zip(out, self.sets, strict=True):
            row[list(kernels)] = 1
        return out


class Validation(NamedTuple):
    """Samples that choose the number of kernels; `weight` is None for samples not yet checked."""

    X: Any
    y: Any
    weight: FloatArray | None


class OutputGroups(NamedTuple):
    """Outputs that select kernels together: the names of the groups, and the columns of each."""

    names: list[Any]
    columns: list[IntArray]

    @classmethod
    def of(cls, labels: Any, n_outputs: int) -> OutputGroups:
        """The groups of one label for each output, in the order of their first outputs; None: one group.

        Examples
        --------
        >>> OutputGroups.of(["a", "b", "a"], 3)
        OutputGroups(names=['a', 'b'], columns=[array([0, 2]), array([1])])
        """
        if labels is None:
            return cls([], [np.arange(n_outputs)])
        given = np.asarray(labels).tolist()
        if not isinstance(given, list) or len(given) != n_outputs:
            raise ValueError(
                f"output_groups={labels!r} must have one label for each of the {n_outputs} outputs, the same "
                "for those that select kernels together; or None."
            )
        own = np.array([label for label in labels if label is not None], dtype=object)
        if is_missing(own).any():
            raise ValueError(
                f"output_groups={labels!r} has missing labels (NaN, NaT or pandas.NA), which equal no other "
                "label: give each of these outputs the label of its group."
            )
        names = list(dict.fromkeys(given))
        return cls(names, [np.flatnonzero([label == name for label in given]) for name in names])

    def tasks(self, task: GreedyTask) -> list[GreedyTask]:
        """The task of every group."""
        return [replace(task, y=task.y[:, columns]) for columns in self.columns]

    def join(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Arrays (..., size of the group) of every group as one (..., c), outputs in their own order."""
        out = np.empty((*parts[0].shape[:-1], sum(map(len, self.columns))))
        for columns, part in zip(self.columns, parts, strict=True):
            out[..., columns] = part
        return out


class GreedySetup(NamedTuple):
    """Checked settings and training data."""

    spec: Spec
    table: Any
    weight: FloatArray  # (n,), zero for samples left out or held out
    targets: FloatArray  # (n, c)
    groups: OutputGroups
    validation: Validation | None = None
    held: IntArray | None = None  # samples held out


class BaseGroupOMP(BaseKernels):
    """Parameters and machinery of the greedy estimators; see the subclasses."""

    group_names_: list[str]  # only where outputs form groups

    # -- parameters ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_settings(self)
        check_positive("alpha", self.alpha)
        check_choice("missing", self.missing, [how for how in MISSING if how != "margin"])
        if not (isinstance(self.tol, Real) and 0 <= float(self.tol) < np.inf):
            raise ValueError(f"tol={self.tol!r} must be a number that is not negative.")
        if self.n_kernels is not None and not _is_count(self.n_kernels):
            raise ValueError(
                f"n_kernels={self.n_kernels!r} must be a positive integer, or None for no limit."
            )
        if self.validation_fraction is not None and not _is_share(self.validation_fraction):
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must be a number between 0 and 1, or None."
            )
        sample = self.dictionary_sample
        if sample is not None and not (_is_count(sample) or _is_share(sample) or sample == 1.0):
            raise ValueError(
                f"dictionary_sample={sample!r} must be a number of kernels, a share between 0 and 1, or None."
            )

    # -- held-out samples ---------------------------------------------------------------------

    def _split(self, setup: GreedySetup, y: Any, validation_set: Any, strata: Any = None) -> GreedySetup:
        """Give the training data their validation samples: those passed, or some held out."""
        if self.validation_fraction is not None and validation_set is not None:
            raise ValueError(
                "validation_set and validation_fraction are both given: pass only one of them, the samples "
                "themselves or the share to hold out."
            )
        if validation_set is not None:
            if not (isinstance(validation_set, list | tuple) and len(validation_set) == 2):
                raise ValueError("validation_set must be a pair (X_val, y_val).")
            X, y = validation_set
            return setup._replace(validation=Validation(as_views(X, y), np.asarray(y), None))
        if self.validation_fraction is None:
            return setup
        used = np.flatnonzero(setup.weight)
        options = {"test_size": float(self.validation_fraction), "random_state": self.random_state}
        groups = None if strata is None else strata[used]
        held = np.sort(train_test_split(used, stratify=groups, **options)[1])
        weight = setup.weight.copy()
        weight[held] = 0.0
        table = setup.table
        rows = table[held] if isinstance(table, KernelStack) else _safe_indexing(table, held)
        validation = Validation(rows, y[held], setup.weight[held])
        return setup._replace(weight=weight, validation=validation, held=held)

    def _checked(self, validation: Validation | None, source: KernelSource) -> Validation | None:
        """Validation samples as the kernels take them."""
        if validation is None:
            return None
        X, y, weight = validation
        if weight is None:
            X, _ = self._validate(X, reset=False)
            weight = np.ones(X.shape[0])
        if X.shape[0] != len(y):
            raise ValueError(f"validation_set: X_val has {X.shape[0]} samples, y_val has {len(y)}.")
        like = None if self.missing == "error" else getattr(source, "X", None)
        return Validation(self._values(X, like), y, weight)

    def _held_out_error(self, spec: Spec, values: FloatArray, y: Any, weight: Any) -> float:
        """Weighted error of function values (n, c)."""
        raise NotImplementedError

    # -- fitting ------------------------------------------------------------------------------

    def _setup(self, X: Any, y: Any, sample_weight: Any, validation_set: Any = None) -> GreedySetup:
        """Check parameters and data."""
        raise NotImplementedError

    def _named_groups(self, n_outputs: int) -> OutputGroups:
        """The groups of outputs, whose names `weights_frame` gives to their weights."""
        groups = OutputGroups.of(self.output_groups, n_outputs)
        if hasattr(self, "group_names_"):
            del self.group_names_
        if groups.names:
            self.group_names_ = [str(name) for name in groups.names]
        return groups

    def _problem(self, setup: GreedySetup) -> tuple[KernelSource, GreedyTask]:
        """The kernels on the samples of positive weight, and what to minimise there."""
        used = setup.weight > 0
        source = self._source(setup.table, setup.weight, setup.held)
        n, wanted, drawn = len(source.names), self.n_kernels, self.dictionary_sample
        if wanted is not None and int(wanted) > n:
            warn(f"n_kernels={wanted} is more than the {n} kernels given: all of them may be taken.")
        if _is_count(drawn) and int(drawn) > n:
            raise ValueError(f"dictionary_sample={drawn} exceeds the {n} kernels given; lower it.")
        targets, weight, ridge = setup.targets[used], setup.weight[used], float(self.alpha)
        return source, GreedyTask(targets, weight, setup.spec.loss, ridge, bool(self.fit_intercept))

    def _dictionary(self, spec: Spec, source: KernelSource, task: GreedyTask) -> FactorDictionary:
        make = partial(
            FactorDictionary,
            sample_weight=task.weight,
            centred=task.fit_intercept,
            shift=task.shift,
            memory_limit=spec.limit,
            n_jobs=self.n_jobs,
            device=spec.device,
        )
        found: FactorDictionary = with_gaps(make, source, self.missing, self.normalize, task.weight)
        return found

    def _rule(self) -> GroupOMP:
        return GroupOMP(self.n_kernels, self.tol, self.backward, self.dictionary_sample, self.random_state)

    def _fit_path(self, setup: GreedySetup) -> None:
        """Run the path, choose a model on it, and store both."""
        with blas_threads_for(len(setup.weight)):
            source, task = self._problem(setup)
            told = {
                "kernels": np.array(source.names),
                "loss": task.loss,
                "alpha": float(task.ridge),
                "targets": task.y,
                "weights of the samples": task.weight,
                "fit_intercept": task.fit_intercept,
                "tol": float(self.tol) if self.backward else None,  # else a path may grow by it
            }
            names = ("backward", "dictionary_sample", "random_state", "normalize", "missing")
            titles = ["path"]
            if setup.groups.names:
                told["output_groups"] = tuple(setup.groups.columns)
                titles = [f"outputs {name}" for name in setup.groups.names]
            training = Training(self, len(titles), told, names)
            self.kernel_names_ = source.names  # those of the data given, before indicators join them
            setup = setup._replace(validation=self._checked(setup.validation, source))
            dictionary = self._dictionary(setup.spec, source, task)
            self.kernel_names_ = dictionary.names
            parts = enumerate(zip(titles, setup.groups.tasks(task), strict=True))
            found = [  # one after the other: the dictionary has threads of its own
                training.models(self._train, dictionary, [part], stage=f"group {k}" if k else "")[0]
                for k, part in parts
            ]
            stages = self._store_path(dictionary, found, task, setup)
            self._store_model(dictionary, stages[self.path_.n_selected], found)
            self._calibrate(dictionary, task, setup.groups, stages[self.path_.n_selected])
        training.end(all(one.reason != "interrupted" for one in found))

    def _train(
        self, dictionary: FactorDictionary, task: GreedyTask, report: ModelProgress, keeper: Keeper
    ) -> Result:
        found = self._rule().solve(dictionary, task, report, keeper)
        report.done(found)
        return found

    def _told(self, state: Any) -> str:
        if not state.fit.kernels:
            return ""
        count, fit = len(state.fit.kernels), state.fit
        return f"{count} kernels, gain {state.gain:.3g}, objective {fit.objective:.6g}"

    def _calibrate(
        self, dictionary: FactorDictionary, task: GreedyTask, groups: OutputGroups, fits: list[Fit]
    ) -> None:
        """What a classifier does for its probabilities."""

    def _store_path(
        self, dictionary: FactorDictionary, found: list[Result], task: GreedyTask, setup: GreedySetup
    ) -> list[list[Fit]]:
        """Set the path and the models on it; the fits of every number of kernels, one for each group."""
        groups, points = setup.groups, [one.state for one in found]
        stages = stages_of(points)
        self.gram_ = dictionary.engine
        self.model_, alphas = path_predictor(dictionary, stages, groups, task.root)
        errors, n_selected = None, len(stages) - 1
        if setup.validation is not None:
            X, y, weight = setup.validation
            models = np.moveaxis(self.model_.staged(X, range(1, self.model_.n_stages)), 1, 0)
            errors = np.array([self._held_out_error(setup.spec, f, y, weight) for f in models])
            n_selected = int(np.argmin(errors)) + 1 if len(errors) else 0
        dual_coef = np.zeros((len(stages) - 1, len(setup.weight), alphas.shape[2]))
        dual_coef[:, np.flatnonzero(setup.weight)] = alphas[1:]
        intercept = self.model_.intercepts.reshape(len(stages), -1)[1:]
        names, longest = dictionary.names, max(found, key=lambda one: len(one.state.stages))
        whole = _path(names, points, dual_coef, intercept, n_selected, longest.reason, errors)
        if groups.names:
            each = [
                _path(names, [one.state], dual_coef[..., own], intercept[:, own], n_selected, one.reason)
                for one, own in zip(found, groups.columns, strict=True)
            ]
            whole = replace(whole, groups=each)
        self.path_ = whole
        self.model_.stage = n_selected
        return stages

    def _store_model(self, dictionary: FactorDictionary, fits: list[Fit], found: list[Result]) -> None:
        """Set the attributes of the model chosen, of every group of outputs."""
        selected = [np.array(fit.kernels, dtype=int) for fit in fits]
        weights, norms = np.zeros((2, len(fits), len(self.kernel_names_)))
        gaps = np.zeros(len(fits))
        for g, (fit, kernels) in enumerate(zip(fits, selected, strict=True)):
            weights[g, kernels] = 1.0
            energies = np.maximum(dictionary.quads(fit.scaled_alpha, kernels), 0.0)
            norms[g, kernels] = np.sqrt(energies)
            gaps[g] = fit.gap(float(self.alpha) * float(energies.sum()))
        self.selected_, self.weights_, self.norms_ = map(one_or_all, (selected, weights, norms))
        count = self.path_.n_selected
        dual_coef = self.path_.dual_coef[max(count - 1, 0) : count].sum(axis=0)
        self.dual_coef_ = one_or_all(dual_coef.T)
        self.support_ = np.flatnonzero(dual_coef.any(axis=1))
        self.intercept_ = one_or_all(self.model_.intercept + self._constants())
        self.objective_ = one_or_all(np.array([fit.objective for fit in fits]))
        self.stationarity_ = one_or_all(gaps)
        self.n_iter_ = one_or_all(np.array([one.n_iter for one in found]))
        self.n_resumed_ = one_or_all(np.array([one.n_resumed for one in found]))
        self.history_ = one_or_all([one.history for one in found])

    # -- prediction ---------------------------------------------------------------------------

    _fitted: ClassVar[dict[str, type]] = {"path_": GreedyPath}

    def _fits_together(self) -> bool:
        fits = len(self.path_) == self.model_.n_stages - 1 and self.path_.n_selected == self.model_.stage
        return fits and super()._fits_together()

    def _decision(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Values of every function of the model chosen, or of that with `n_kernels` kernels; (n, c)."""
        inputs = self._inputs(X)
        return self.model_.staged(inputs, [self._size(n_kernels)])[:, 0]

    def _size(self, n_kernels: int | None) -> int:
        """Size of a model on the path; that of the model chosen by default."""
        if n_kernels is None:
            return self.path_.n_selected
        if not (_is_count(n_kernels) and int(n_kernels) <= len(self.path_)):
            raise ValueError(
                f"n_kernels={n_kernels!r}: the path has models of 1 to {len(self.path_)} kernels."
            )
        return int(n_kernels)

    def _staged_decision(self, X: Any) -> list[FloatArray]:
        inputs = self._inputs(X)
        return list(np.moveaxis(self.model_.staged(inputs, range(1, len(self.path_) + 1)), 1, 0))

    def best_subset(
        self, X: Any, y: Any, sample_weight: Any = None, n_kernels: int | None = None, max_nodes: int = 10_000
    ) -> BestSubset:
        """How far the kernels selected are from the best set of the same size, proved by branch and bound.

        For small dictionaries: the work can grow exponentially with the number of kernels.

        Parameters
        ----------
        X, y, sample_weight
            Training samples, as in `fit`; both sets are compared by their objective on them.
        n_kernels : int, optional
            Size of the sets, to compare with that model of the path; by default the model chosen.
        max_nodes : int, default=10000
            Nodes of the search tree after which it ends with the bound proved so far.

        Returns
        -------
        result : BestSubset
            With `kernels`, `objective`, `lower_bound`, `gap` and `exact`.
        """
        check_is_fitted(self)
        if self.output_groups is not None:
            raise ValueError(
                "best_subset compares one set of kernels: with output_groups there is one for each group. "
                "Fit the groups apart, each with output_groups=None."
            )
        size = self._size(n_kernels)
        options = dict.fromkeys(("validation_fraction", "n_kernels", "checkpoint"))
        worker = clone(self).set_params(**options)
        setup = worker._setup(X, y, sample_weight)
        with blas_threads_for(len(setup.weight)):
            source, task = worker._problem(setup)
            dictionary = worker._dictionary(setup.spec, source, task)
            start = self.path_.sets[size - 1] if size else None
            return best_subset(dictionary, task, size, start, max_nodes)


def stages_of(paths: Sequence[GreedyPoint]) -> list[list[Fit]]:
    """The fits of every path with 0, 1, 2, ... kernels; a path that has ended stays at its last."""
    fits = [[stage.fit for stage in path.stages] for path in paths]
    return [[own[min(k, len(own) - 1)] for own in fits] for k in range(max(map(len, fits)))]


def _path(
    names: list[str],
    points: Sequence[GreedyPoint],
    dual_coef: FloatArray,
    intercept: FloatArray,
    n_selected: int,
    stopped: str,
    errors: FloatArray | None = None,
) -> GreedyPath:
    """What a user sees of one path, or of those of all groups together."""
    stages = stages_of(points)[1:]
    gains = np.zeros(len(stages))
    for point in points:
        gains[: len(point.stages) - 1] += [stage.gain for stage in point.stages[1:]]
    return GreedyPath(
        kernel_names=names,
        sets=[tuple(dict.fromkeys(m for fit in fits for m in fit.kernels)) for fits in stages],
        gains=gains,
        objective=np.array([sum(fit.objective for fit in fits) for fits in stages]),
        train_error=np.array([sum(fit.error for fit in fits) for fits in stages]),
        validation_error=errors,
        dual_coef=dual_coef[: len(stages)],
        intercept=intercept[: len(stages)],
        n_selected=min(n_selected, len(stages)),
        stopped=stopped,
    )


def path_predictor(
    dictionary: FactorDictionary, stages: Sequence[Sequence[Fit]], groups: OutputGroups, root: FloatArray
) -> tuple[Predictor, FloatArray]:
    """The models of a path as stages, and their alphas (n_stages, n, c).

    Parameters
    ----------
    dictionary : FactorDictionary
    stages : sequence of sequence of Fit
        Of every stage, a fit for each of the `groups`; the first stage has no kernels.
    groups : OutputGroups
    root : ndarray of shape (n, 1)
        Roots of the sample weights.
    """
    # a model without kernels is its intercept
    alphas = np.array(
        [root * groups.join([bool(fit.kernels) * fit.scaled_alpha for fit in fits]) for fits in stages]
    )
    n_stages, n, _ = alphas.shape
    group = groups.join([np.full(len(own), float(g)) for g, own in enumerate(groups.columns)]).astype(int)
    alpha, terms = np.moveaxis(alphas, 1, 0).reshape(n, -1), []
    for m in sorted({m for fits in stages for fit in fits for m in fit.kernels}):
        there = np.array([[m in fit.kernels for fit in fits] for fits in stages], dtype=np.float64)
        rule = dictionary.normalizations[m]
        terms.append(dictionary.source.term(m, rule, rule.scale_ * there[:, group].ravel(), alpha))
    intercepts = np.concatenate([groups.join([fit.intercept for fit in fits]) for fits in stages])
    return Predictor.of(dictionary.source, terms, alpha, intercepts, n_stages=n_stages), alphas


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1
