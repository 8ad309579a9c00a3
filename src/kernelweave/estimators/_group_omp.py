"""What the greedy estimators share: the path they find, parameters, held-out samples, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..gram import KernelSource, KernelStack, Predictor
from ..gram.terms import KernelTerm
from ..solvers.checkpoint import Keeper
from ..solvers.greedy import BestSubset, FactorDictionary, Fit, GreedyTask, GroupOMP, best_subset
from ..solvers.run import Result
from ._base import Spec, one_or_all
from ._input import check_positive, check_settings
from ._kernels import BaseKernels
from ._training import ModelProgress, Training


@dataclass(frozen=True, repr=False, eq=False)
class GreedyPath:
    """The models of a greedy fit, one for every number of kernels.

    Entry k - 1 of everything belongs to the model of k kernels.

    Attributes
    ----------
    kernel_names : list of str
        Of the whole dictionary.
    sets : list of tuple of int
        The kernels of each model in the order in which they came in. Without backward steps each
        adds one kernel to the one before.
    gains : ndarray of shape (n_steps,)
        The gain that the last kernel of each model promised when it came in.
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
        What ended the path: "tol", "n_kernels" or "interrupted".
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

    @property
    def order(self) -> list[int]:
        """Kernels of the longest model, in the order in which they came in."""
        return list(self.sets[-1]) if self.sets else []

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        names = " > ".join(self.kernel_names[m] for m in self.order[:6])
        more = " > ..." if len(self) > 6 else ""
        count = f"{len(self)} of {len(self.kernel_names)} kernels, {self.n_selected} chosen"
        return f"GreedyPath({count}, stopped by {self.stopped}: {names}{more})"

    def frame(self) -> Any:
        """One row per model, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns: dict[str, Any] = {
            "kernel": [self.kernel_names[kernels[-1]] for kernels in self.sets],
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


class GreedySetup(NamedTuple):
    """Checked settings and training data."""

    spec: Spec
    table: Any
    weight: FloatArray  # (n,), zero for samples left out or held out
    targets: FloatArray  # (n, c)
    validation: Validation | None = None
    held: IntArray | None = None  # samples held out


class BaseGroupOMP(BaseKernels):
    """Parameters and machinery of the greedy estimators; see the subclasses."""

    # -- parameters ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_settings(self)
        check_positive("alpha", self.alpha)
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
            return setup._replace(validation=Validation(X, np.asarray(y), None))
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

    def _checked(self, validation: Validation | None) -> Validation | None:
        """Validation samples as the kernels take them."""
        if validation is None:
            return None
        X, y, weight = validation
        if weight is None:
            X, _ = self._validate(X, reset=False)
            weight = np.ones(X.shape[0])
        if X.shape[0] != len(y):
            raise ValueError(f"validation_set: X_val has {X.shape[0]} samples, y_val has {len(y)}.")
        return Validation(self._values(X), y, weight)

    def _held_out_error(self, spec: Spec, values: FloatArray, y: Any, weight: Any) -> float:
        """Weighted error of function values (n, c)."""
        raise NotImplementedError

    # -- fitting ------------------------------------------------------------------------------

    def _setup(self, X: Any, y: Any, sample_weight: Any, validation_set: Any = None) -> GreedySetup:
        """Check parameters and data."""
        raise NotImplementedError

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
        return FactorDictionary(
            source,
            self.normalize,
            task.weight,
            task.fit_intercept,
            task.shift,
            spec.limit,
            self.n_jobs,
            device=spec.device,
        )

    def _rule(self) -> GroupOMP:
        return GroupOMP(self.n_kernels, self.tol, self.backward, self.dictionary_sample, self.random_state)

    def _fit_path(self, setup: GreedySetup) -> None:
        """Run the path, choose a model on it, and store both."""
        with blas_threads_for(len(setup.weight)):
            source, task = self._problem(setup)
            self.kernel_names_ = source.names
            told = {
                "kernels": np.array(source.names),
                "loss": task.loss,
                "alpha": float(task.ridge),
                "targets": task.y,
                "weights of the samples": task.weight,
                "fit_intercept": task.fit_intercept,
                "tol": float(self.tol) if self.backward else None,  # else a path may grow by it
            }
            names = ("backward", "dictionary_sample", "random_state", "normalize")
            training = Training(self, 1, told, names)
            setup = setup._replace(validation=self._checked(setup.validation))
            dictionary = self._dictionary(setup.spec, source, task)
            [found] = training.models(self._train, dictionary, [("path", task)])
            self._store_path(dictionary, found, task, setup)
            fit = found.state.stages[self.path_.n_selected].fit
            self._store_model(dictionary, fit)
            self._calibrate(dictionary, task, fit)
        training.end(found.reason != "interrupted")

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

    def _calibrate(self, dictionary: FactorDictionary, task: GreedyTask, fit: Fit) -> None:
        """What a classifier does for its probabilities."""

    def _store_path(
        self, dictionary: FactorDictionary, found: Result, task: GreedyTask, setup: GreedySetup
    ) -> None:
        fits = [stage.fit for stage in found.state.stages]
        alphas = np.array([task.root * fit.scaled_alpha for fit in fits])
        alphas[0] = 0.0  # the model without kernels is its intercept
        self.gram_ = dictionary.engine
        self.model_ = path_predictor(dictionary, fits, alphas)
        errors = None
        if setup.validation is not None:
            X, y, weight = setup.validation
            models = np.moveaxis(self.model_.staged(X, range(1, self.model_.n_stages)), 1, 0)
            errors = np.array([self._held_out_error(setup.spec, f, y, weight) for f in models])
        dual_coef = np.zeros((len(fits) - 1, len(setup.weight), alphas.shape[2]))
        dual_coef[:, np.flatnonzero(setup.weight)] = alphas[1:]
        self.path_ = GreedyPath(
            kernel_names=dictionary.names,
            sets=[fit.kernels for fit in fits[1:]],
            gains=np.array([stage.gain for stage in found.state.stages[1:]]),
            objective=np.array([fit.objective for fit in fits[1:]]),
            train_error=np.array([fit.error for fit in fits[1:]]),
            validation_error=errors,
            dual_coef=dual_coef,
            intercept=np.array([fit.intercept for fit in fits])[1:],
            n_selected=len(fits) - 1 if errors is None or len(fits) == 1 else int(np.argmin(errors)) + 1,
            stopped=found.reason,
        )
        self.model_.stage = self.path_.n_selected
        self.n_iter_, self.n_resumed_, self.history_ = found.n_iter, found.n_resumed, found.history

    def _store_model(self, dictionary: FactorDictionary, fit: Fit) -> None:
        """Set the attributes of the model chosen."""
        kernels = np.array(fit.kernels, dtype=int)
        self.selected_ = kernels
        self.weights_, self.norms_ = np.zeros((2, len(self.kernel_names_)))
        self.weights_[kernels] = 1.0
        energies = np.maximum(dictionary.quads(fit.scaled_alpha, kernels), 0.0)
        self.norms_[kernels] = np.sqrt(energies)
        dual_coef = self.path_.dual_coef[len(kernels) - 1 : len(kernels)].sum(axis=0)
        self.dual_coef_ = one_or_all(dual_coef.T)
        self.support_ = np.flatnonzero(dual_coef.any(axis=1))
        self.intercept_ = one_or_all(fit.intercept + self._constants())
        self.objective_ = fit.objective
        self.stationarity_ = fit.gap(float(self.alpha) * float(energies.sum()))

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
            GreedySetup samples, as in `fit`; the objective of both sets is that on them.
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
        size = self._size(n_kernels)
        options = dict.fromkeys(("validation_fraction", "n_kernels", "checkpoint"))
        worker = clone(self).set_params(**options)
        setup = worker._setup(X, y, sample_weight)
        with blas_threads_for(len(setup.weight)):
            source, task = worker._problem(setup)
            dictionary = worker._dictionary(setup.spec, source, task)
            start = self.path_.sets[size - 1] if size else None
            return best_subset(dictionary, task, size, start, max_nodes)


def path_predictor(dictionary: FactorDictionary, fits: Sequence[Fit], alphas: FloatArray) -> Predictor:
    """The models of a path as stages; `alphas` has shape (n_stages, n, c)."""
    n_stages, n, c = alphas.shape
    terms = []
    for m in sorted({m for fit in fits for m in fit.kernels}):
        there = np.array([m in fit.kernels for fit in fits], dtype=np.float64)
        rule = dictionary.normalizations[m]
        terms.append(KernelTerm(m, rule, rule.scale_ * np.repeat(there, c)))
    alpha = np.moveaxis(alphas, 1, 0).reshape(n, -1)
    intercepts = np.concatenate([fit.intercept for fit in fits])
    return Predictor.of(dictionary.source, terms, alpha, intercepts, n_stages=n_stages)


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1
