"""What the MKL estimators share: validation, the Gram matrices, solving, predictions."""

from __future__ import annotations

import functools
import html
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, check_X_y
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._backend import device_of, follow, resolve_device, to_host
from .._registry import Registry
from .._threads import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import parallel, warn
from ..gram import (
    GRAMS,
    Dictionary,
    FeatureSource,
    Gram,
    KernelSource,
    KernelStack,
    Predictor,
    StackSource,
    parse_memory,
)
from ..gram.dictionary import PSD_FLOPS, check_kernel_matrix
from ..gram.lowrank.dictionary import LowRankDictionary
from ..gram.stack import as_stack
from ..gram.tables import Table, as_lazy, computed
from ..kernels import resolve_kernels
from ..kernels.columns import is_frame, numeric_positions
from ..kernels.compose import NestedKernels
from ..kernels.faults import refuse_dates
from ..kernels.strings import text_column
from ..kernels.subsets import Subsets
from ..losses import LOSSES, Loss
from ..regularizers import REGULARIZERS, Regularizer
from ..solvers import Problem, leave_one_out
from ..solvers.checkpoint import Keeper
from ..solvers.growing import may_grow
from ..solvers.leave_one_out import WeightedRows
from ..solvers.multiple import choose_solver
from ..solvers.run import Result
from ._checkpoint import keeping, mkl_checkpoint
from ._input import (
    WITHIN,
    check_settings,
    check_stack_shape,
    check_table,
    check_targets,
    dates_as_objects,
    explained,
)
from ._linear import LinearCoefficients
from ._low_rank import check_approximation, dictionary_of, gap_of, too_many_to_leave_out
from ._names import model_names, name_outputs
from ._progress import CallbackSupportMixin, Progress

#: what columns of plain numbers can feed
NUMBERS = {"numeric", "any", "index"}


#: support vectors for whose weighted sum room is kept, where a solver asks for no more
EXPECTED_SUPPORT = 8000

#: kernels in the table of a notebook
MOST_ROWS = 50

#: parameters that may be given by name: the registry of that name, and what it holds
PARTS: dict[str, tuple[Registry, type]] = {"regularizer": (REGULARIZERS, Regularizer), "loss": (LOSSES, Loss)}

#: scikit-learn's word for data without targets
NO_TARGET = "no_validation"


@dataclass(frozen=True)
class Task:
    """One model to train: its problem, and the training rows it sees (None: all)."""

    title: str
    problem: Problem
    rows: IntArray | None = None


class Setup(NamedTuple):
    """Checked data and the models to train on them."""

    table: Any
    weight: FloatArray  # (n,), zero for samples left out
    tasks: list[Task]
    labels: Any  # targets of the samples of positive weight


class Model(NamedTuple):
    """A trained model, on all training rows."""

    solution: Result
    alpha: FloatArray  # (n, c)
    margins: FloatArray  # (n_rows, c), leave-one-out predictions; empty when not asked for
    full_rank_gap: float = np.nan  # of the kernels themselves, where they are approximated


class BaseKernels(LinearCoefficients, CallbackSupportMixin, NestedKernels):
    """What every estimator over several kernels has: its kernels, validation, representation."""

    max_iter: int  # parameters are stored by the classes whose constructors name them

    #: what `gram` may be
    _engines: Collection[str] = ("auto", "dense")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, such as ``C=1``, ``regularizer__p=1`` or ``kernels__0__gamma=0.1``.

        A part given by its name, such as ``regularizer="lp"``, becomes an object when one of its parameters
        is set.
        """
        for name, (parts, kind) in PARTS.items():
            given = params.get(name, getattr(self, name, None))
            if isinstance(given, str) and any(key.startswith(f"{name}__") for key in params):
                params[name] = parts.resolve(given, kind)
        return super().set_params(**params)

    # -- validation ---------------------------------------------------------------------------

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags

    def _check_parameters(self) -> None:
        check_settings(self)
        check_positive("tol", self.tol)
        resolve_device(self.device)
        if not (isinstance(self.max_iter, Integral) and self.max_iter > 0):
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer.")
        if self.gram not in self._engines:
            known = ", ".join(repr(name) for name in self._engines)
            raise ValueError(f"gram={self.gram!r} is not a Gram engine: pass one of {known}.")

    def _validate(self, X: Any, y: Any = NO_TARGET, reset: bool = True, **y_options: Any) -> tuple[Any, Any]:
        """The data as a table (DataFrame, array, sparse matrix or stack), and y; shapes are checked."""
        if y is not NO_TARGET:
            name_outputs(self, y, bool(y_options.get("multi_output")))
            check_targets(y, bool(y_options.get("y_numeric")), type(self).__name__)
        if self._precomputed:
            return self._validate_stack(X, y, reset, **y_options)
        check_table(X)
        X = text_column(as_lazy(X, mapped=getattr(self, "approximation", None) is not None))
        if isinstance(X, Table):
            return self._validate_table(X, y, reset, **y_options)
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        options["ensure_min_samples"] = 2 if reset else 1
        with explained(X):
            valid = validate_data(self, dates_as_objects(X), y, reset=reset, **options, **y_options)
        if y is not NO_TARGET:
            valid, y = valid
        return (X if is_frame(X) else valid), y

    def _validate_stack(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        stack = as_stack(X)
        if reset:
            check_stack_shape(stack.shape)
            self.n_features_in_ = stack.shape[1]
        elif stack.shape[1:] != (self.n_features_in_, len(self.kernel_names_)):
            check_stack_shape(stack.shape, self.n_features_in_, len(self.kernel_names_))
            raise ValueError(
                f"X has shape {stack.shape}: precomputed test kernels must have shape (n_test, "
                f"{self.n_features_in_}, {len(self.kernel_names_)}), test rows by training columns."
            )
        if y is not NO_TARGET:
            with explained(X):
                _, y = check_X_y(np.zeros((len(stack), 1)), y, ensure_min_samples=2, **y_options)
        return stack, y

    def _validate_table(self, table: Table, y: Any, reset: bool, **y_options: Any) -> tuple[Table, Any]:
        """Columns and targets of a table; its numbers are checked when they are read."""
        if reset and getattr(self, "approximation", None) is None:
            raise ValueError(
                f"X is read in pieces ({type(table).__name__}), and the kernels need all pairs of its rows: "
                "pass approximation='nystroem' to an MKL estimator, or X as an array."
            )
        validate_data(self, table.head, skip_check_array=True, reset=reset)
        if y is not NO_TARGET:
            with explained(table):
                _, y = check_X_y(np.zeros((len(table), 1)), y, ensure_min_samples=2, **y_options)
        return table, y

    def _values(self, table: Any) -> Any:
        """What kernels compute on: numbers when all of them take numbers, else the user's container."""
        if isinstance(table, Table) or not self._numeric:
            return table
        refuse_dates(table)
        with explained(table):
            return check_array(table, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")

    def _source(self, table: Any, sample_weight: FloatArray, held: IntArray | None = None) -> KernelSource:
        """The kernels on the samples of positive weight; all but those `held` out may set their widths."""
        used = np.flatnonzero(sample_weight)
        rows = _take(table, used)
        self._numeric = False
        if self._precomputed:
            return StackSource(rows, used)
        kernels = resolve_kernels(self.kernels, rows)
        takes = {"numeric"} if isinstance(kernels, Subsets) else {kernel.accepts for _, kernel in kernels}
        # index kernels look their column up by name on every call, so they keep the DataFrame,
        # and columns that no kernel reads may hold anything; a function of anything takes text as it is
        plain = not is_frame(table) and ("any" not in takes or table.dtype.kind in "biuf")
        self._numeric = takes <= NUMBERS and plain
        self._numeric |= takes <= {"numeric"} and len(numeric_positions(table)) == table.shape[1]
        seen = used
        if isinstance(kernels, Subsets) or any(kernel.counts_all_rows for _, kernel in kernels):
            seen = np.setdiff1d(np.arange(len(sample_weight)), () if held is None else held)
        if isinstance(rows, Table):
            return self._table_source(kernels, _take(table, seen), sample_weight[seen], rows)
        return FeatureSource(kernels, _take(table, seen), sample_weight[seen], self._values(rows))

    def _table_source(
        self, kernels: Any, table: Table, sample_weight: FloatArray, rows: Table
    ) -> FeatureSource:
        """Kernels on the `rows` of a table, their parameters taken from some of all."""
        if not self._numeric:
            raise ValueError("X is read in pieces, as numbers: kernels on text need it in memory.")
        some, chosen = table.sample()
        weight = sample_weight[chosen]
        if not weight.any():  # too few have weight to be among them
            some, chosen = rows.sample()
            weight = sample_weight[sample_weight > 0][chosen]
        source = FeatureSource(kernels, some, weight, some.values)
        source.X, source.n_samples, source._batch = rows, len(rows), None
        return source

    # -- prediction ---------------------------------------------------------------------------

    #: the functions learned
    model_: Predictor

    #: fitted attributes that predictions read, and their types; those of base classes too
    _fitted: ClassVar[dict[str, type]] = {
        "model_": Predictor,
        "kernel_names_": list,
        "weights_": np.ndarray,
        "n_features_in_": int,
        "_numeric": bool,
    }

    def _fits_together(self) -> bool:
        """Whether what a file says of a fit is consistent."""
        return len(self.model_.source.names) == len(self.kernel_names_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _inputs(self, X: Any) -> Any:
        """New samples, checked, as `model_` takes them."""
        check_is_fitted(self)
        return self._values(self._validate(X, reset=False)[0])

    def _decision(self, X: Any) -> FloatArray:
        """Values of every function learned, shape (n, n_functions)."""
        values = self._inputs(X)
        return self.model_(values)

    # -- representation -----------------------------------------------------------------------

    def weights_frame(self) -> Any:
        """Models, kernels, weights and component norms as a pandas DataFrame (needs pandas).

        A model is named by what it learns: a class, a pair such as "b vs a", "all classes" where they share
        the weights, or the name or number of an output.
        """
        import pandas as pd

        check_is_fitted(self)
        weights, norms = np.atleast_2d(self.weights_), np.atleast_2d(self.norms_)
        return pd.DataFrame(
            {
                "model": [name for name in model_names(self) for _ in self.kernel_names_],
                "kernel": self.kernel_names_ * len(weights),
                "weight": weights.ravel(),
                "norm": norms.ravel(),
            }
        )

    def _html_repr(self) -> str:
        page = super()._html_repr()
        if not hasattr(self, "weights_"):
            return page
        return page + weights_table(self.kernel_names_, np.atleast_2d(self.weights_), model_names(self))


class BaseMKL(BaseKernels):
    """Parameters and machinery of the MKL estimators; see the subclasses."""

    @property
    def _engines(self) -> Collection[str]:  # type: ignore[override]
        return ("auto", *GRAMS)

    #: whether C may be None
    _optional_cost = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.C is not None or not self._optional_cost:
            check_positive("C", self.C)
        if self.approximation is not None:
            check_approximation(self, on_device=fit_device(self) is not None)

    def _resolve_loss(self, tasks: tuple[str, ...]) -> Loss:
        loss = LOSSES.resolve(self.loss, Loss, "loss")
        if loss.task not in tasks:
            fitting = ", ".join(
                repr(name) for name, cls in LOSSES.items() if getattr(cls, "task", "") in tasks
            )
            raise ValueError(f"loss={self.loss!r} is not for {type(self).__name__}: use one of {fitting}.")
        loss.check()
        return loss

    # -- fitting ------------------------------------------------------------------------------

    def _dictionary(self, setup: Setup) -> Dictionary | LowRankDictionary:
        """The kernels on the samples of positive weight."""
        used = np.flatnonzero(setup.weight)
        source = self._source(setup.table, setup.weight)
        limit = parse_memory(self.memory_limit)
        if self.approximation is not None:
            constants = (self.approximation, self.rank, self.normalize, setup.weight[used], limit)
            assert isinstance(source, FeatureSource)
            return dictionary_of(self.gram, source)(source, *constants, random_state=self.random_state)
        options: dict[str, Any] = {"gram": self.gram, "combined": self._combines(setup)}
        return Dictionary(
            source, self.normalize, setup.weight[used], limit, device=fit_device(self), **options
        )

    def _combines(self, setup: Setup) -> bool | int:
        """Samples on which a solver may ask for the weighted sum of the kernels at once: all, or so many."""
        regularizer = REGULARIZERS.resolve(self.regularizer, Regularizer, "regularizer")
        problems = [task.problem for task in setup.tasks]
        grow = all(may_grow(problem.loss, regularizer, len(problem.y)) for problem in problems)
        return EXPECTED_SUPPORT if grow else True

    def _matrices(self, setup: Setup) -> tuple[list[str], list[FloatArray]]:
        """Names and checked, not normalised matrices of the kernels on the samples of positive weight."""
        source = self._source(setup.table, setup.weight)
        flops = PSD_FLOPS / len(source.names)
        matrices = dict(source.train_all())
        for m, name in enumerate(source.names):
            check_kernel_matrix(matrices[m], f"kernel {name!r}", flops)
        return source.names, [matrices[m] for m in range(len(source.names))]

    def _fit_tasks(self, setup: Setup, margins: bool = False) -> list[Model]:
        """Compute the Gram matrices once, train every task on them, and store what is common."""
        used = np.flatnonzero(setup.weight)
        progress = Progress(self, len(setup.tasks), int(self.verbose))
        regularizer = REGULARIZERS.resolve(self.regularizer, Regularizer, "regularizer")
        checkpoint = mkl_checkpoint(self, regularizer, setup.tasks)
        with blas_threads_for(len(used)):
            dictionary = self._dictionary(setup)
            with keeping(checkpoint, dictionary.gram) as keepers:
                models = parallel(
                    self.n_jobs,
                    (
                        delayed(self._train)(dictionary, task, progress, index, margins, keepers(index))
                        for index, task in enumerate(setup.tasks)
                    ),
                    keepers.require,
                )
                keepers.finish(all(model.solution.converged for model in models))
        self._store(dictionary, models, used, len(setup.weight))
        progress.done()
        if not np.atleast_2d(self.weights_).any(axis=1).all():
            warn("every kernel has weight 0, so the model is constant: raise C, or bring y to unit scale.")
        return models

    def _live_regularizer(self, dictionary: Dictionary | LowRankDictionary) -> Regularizer:
        regularizer = REGULARIZERS.resolve(self.regularizer, Regularizer, "regularizer")
        return regularizer.select(dictionary.live, len(dictionary.names))

    def _train(
        self,
        dictionary: Dictionary | LowRankDictionary,
        task: Task,
        progress: Progress,
        index: int,
        margins: bool,
        keeper: Keeper,
    ) -> Model:
        regularizer = self._live_regularizer(dictionary)
        gram = dictionary.gram if task.rows is None else dictionary.gram.subset(task.rows)
        solver = clone(choose_solver(self.solver, regularizer))
        report = progress.model(index, task.title)
        solution = solver.solve(
            task.problem, gram, regularizer, self.tol, self.max_iter, report, keeper=keeper
        )
        progress.model_done(report, task.title, solution.n_iter, solution.state)
        left_out = _margins(solution, task.problem, gram) if margins else np.empty((0, 0))
        alpha = solution.state.alpha
        if task.rows is not None:
            alpha = np.zeros((dictionary.gram.n_samples, alpha.shape[1]))
            alpha[task.rows] = solution.state.alpha
        gap = gap_of(dictionary, task.problem, regularizer.bound_to(gram), solution.state, alpha)
        return Model(replace(solution, matrix=None), alpha, left_out, gap)

    def _store(
        self, dictionary: Dictionary | LowRankDictionary, models: list[Model], used: IntArray, n_samples: int
    ) -> None:
        """Set the fitted attributes; everything is computed before anything is set."""
        proofs = [model.solution.state.certificate for model in models]
        weights = dictionary.all_weights(np.array([model.solution.state.weights for model in models]))
        columns = [model.alpha.shape[1] for model in models]
        alpha = np.hstack([model.alpha for model in models])
        dual_coef = np.zeros((n_samples, alpha.shape[1]))
        dual_coef[used] = alpha
        intercept = np.concatenate([proof.intercept for proof in proofs])
        if isinstance(dictionary, LowRankDictionary):
            self.approximation_errors_ = dictionary.errors()
            self.full_rank_gap_ = _one_or_all(np.array([model.full_rank_gap for model in models]))
            self.model_ = dictionary.predictor([_factors(dictionary, model) for model in models], intercept)
        else:
            self.model_ = dictionary.predictor(np.repeat(weights, columns, axis=0), alpha, intercept)
        self.kernel_names_ = dictionary.names
        self.gram_ = dictionary.gram.name
        self.gram_reason_ = dictionary.gram_reason
        self.weights_ = _one_or_all(weights)
        self.norms_ = _one_or_all(dictionary.all_weights(np.array([proof.norms for proof in proofs])))
        self.dual_coef_ = _one_or_all(dual_coef.T)
        self.support_ = np.flatnonzero(dual_coef.any(axis=1))
        self.intercept_ = _one_or_all(intercept + self._constants())
        self.objective_ = _one_or_all(np.array([proof.primal for proof in proofs]))
        self.dual_gap_ = _one_or_all(np.array([proof.gap for proof in proofs]))
        self.stationarity_ = _one_or_all(np.array([model.solution.state.residual for model in models]))
        self.n_iter_ = _one_or_all(np.array([model.solution.n_iter for model in models]))
        self.n_resumed_ = _one_or_all(np.array([model.solution.n_resumed for model in models]))
        self.history_ = _one_or_all([model.solution.history for model in models])

    @property
    def residual_(self) -> Any:
        """Deprecated name of `stationarity_`."""
        value = self.stationarity_
        warnings.warn("`residual_` is deprecated: use `stationarity_`.", FutureWarning, stacklevel=2)
        return value


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit that fails leave the estimator as it was; tensors and CuPy arrays are taken as arrays."""

    @functools.wraps(fit)
    def guarded(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        self._data_device = device_of(X)
        try:
            given = {name: computed(to_host(value)) for name, value in kwargs.items()}
            return fit(self, to_host(X), *(computed(to_host(value)) for value in args), **given)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


def fit_device(estimator: Any) -> Any:
    """The torch device of a fit: that of the parameter, else that of the data; None for NumPy."""
    return resolve_device(estimator.device or getattr(estimator, "_data_device", None))


def follows_input(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Give predictions on tensors or CuPy arrays back as such, on the same device."""

    @functools.wraps(predict)
    def following(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if device_of(X) is None:
            return predict(self, X, *args, **kwargs)
        found = predict(self, to_host(X), *args, **kwargs)
        return tuple(follow(part, X) for part in found) if isinstance(found, tuple) else follow(found, X)

    return following


def weights_table(names: list[str], weights: FloatArray, models: list[Any]) -> str:
    """An HTML table of kernels and weights, the heaviest first and at most `MOST_ROWS` of them."""
    order = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_ROWS]
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{html.escape(names[m])}</th>"
        + "".join(f"<td>{value:.4g}</td>" for value in weights[:, m])
        + "</tr>"
        for m in order
    )
    titles = ["weight"] if len(weights) == 1 else [f"weight, {name}" for name in models]
    heads = "".join(f"<th scope='col'>{html.escape(title)}</th>" for title in titles)
    left_out = len(names) - len(order)
    if left_out:
        rows += f"<tr><td colspan='{1 + len(weights)}'>and {left_out:,} kernels of smaller weight</td></tr>"
    return (
        "<table class='kernelweave-weights'><caption>Kernel weights</caption>"
        f"<thead><tr><th scope='col'>kernel</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def check_positive(name: str, value: Any) -> None:
    """Raise unless the parameter is a positive number whose square is one too."""
    if not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise ValueError(f"{name}={value!r} must be a positive number.")
    if not WITHIN[0] < float(value) < WITHIN[1]:
        raise ValueError(f"{name}={value!r} must lie between {WITHIN[0]:g} and {WITHIN[1]:g}.")


def check_weights(sample_weight: Any, X: Any) -> FloatArray:
    """Sample weights as a non-negative array, ones by default."""
    n = X.shape[0]
    weight = _check_sample_weight(sample_weight, np.zeros((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere: give at least one sample a positive weight.")
    if weight.max() > WITHIN[1]:
        raise ValueError(f"sample_weight has {weight.max():g}: rescale the weights, and C by as much.")
    return weight


def _take(X: Any, rows: IntArray) -> Any:
    """Rows of the data (both sample axes of a stack); the data themselves when all are taken."""
    if len(rows) == X.shape[0]:
        return X
    if isinstance(X, Table):
        return X.take(rows)
    return X[np.ix_(rows, rows)] if isinstance(X, KernelStack) else _safe_indexing(X, rows)


def _factors(dictionary: LowRankDictionary, model: Model) -> list[FloatArray]:
    """Coefficients of a model on the features of the live kernels."""
    state = model.solution.state
    return dictionary.coefficients(state.weights, model.alpha, state.coefficients)


def _margins(solution: Result, problem: Problem, gram: Gram) -> FloatArray:
    state = solution.state
    f = state.fitted + state.certificate.intercept
    if too_many_to_leave_out(gram):
        return f
    matrix = None if gram.name == "low_rank" else solution.matrix
    K = WeightedRows(gram, state.weights) if matrix is None else matrix
    return np.column_stack(
        [leave_one_out(K, problem.column(k), state.alpha[:, k], f[:, k]) for k in range(problem.shape[1])]
    )


def _one_or_all(values: Any) -> Any:
    """The only element of a sequence of one (as a plain number if it is one), or the sequence."""
    if len(values) > 1:
        return values
    return values[0].item() if isinstance(values[0], np.generic) else values[0]
