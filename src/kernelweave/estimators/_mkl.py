"""Multiple kernel learning: the problems of a fit, the kernels they share, training, storing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import is_regressor

from .._backend import resolve_device
from .._linalg import blas_threads_for
from .._registry import Registry
from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..gram import GRAMS, Dictionary, FeatureSource, Gram
from ..gram.lowrank import LowRankGram, resolve_approximation
from ..gram.lowrank.dictionary import LowRankDictionary
from ..gram.lowrank.missing import GapLowRankDictionary
from ..gram.missing import MISSING, with_gaps
from ..kernels.base import positive_integer
from ..losses import LOSSES, Loss
from ..regularizers import REGULARIZERS, LpNorm, PatternNorm, Regularizer
from ..solvers import Problem
from ..solvers.certificate import full_rank_gap
from ..solvers.checkpoint import Keeper
from ..solvers.growing import MANY, Foresight, Known, looked_at, may_grow
from ..solvers.leave_one_out import MOST_FREE, WeightedRows, kept_bytes, left_out_later
from ..solvers.multiple import choose_solver
from ..solvers.run import Result
from ._base import Spec, all_or_nothing, one_or_all
from ._input import check_choice, check_engine, check_positive
from ._kernels import BaseKernels
from ._training import ModelProgress, Training, with_callbacks

#: support vectors for whose weighted sum room is kept, where a solver asks for no more
EXPECTED_SUPPORT = 8000

#: samples of low-rank kernels that are left out one by one: one of more than these changes little
MOST_LEFT_OUT = 5000

#: bytes of matrices that a fit keeps for leave-one-out predictions; those of more are computed at once
MOST_KEPT_BYTES = 1 << 28

#: the kernels of a fit, whole or as factors
AnyDictionary = Dictionary | LowRankDictionary


@dataclass(frozen=True)
class SubProblem:
    """One model to train: its problem, and the training rows it sees (None: all)."""

    title: str
    problem: Problem
    rows: IntArray | None = None

    def part(self, train: IntArray) -> SubProblem:
        """The same on some of the training rows."""
        if self.rows is None:
            return SubProblem(self.title, self.problem.part(train))
        where = np.full(int(max(self.rows.max(), train.max())) + 1, -1)
        where[self.rows] = np.arange(len(self.rows))
        inside = np.flatnonzero(where[train] >= 0)
        return SubProblem(self.title, self.problem.part(where[train][inside]), inside)

    def gram(self, dictionary: AnyDictionary) -> Gram:
        """The kernels on its rows."""
        return dictionary.gram if self.rows is None else dictionary.gram.subset(self.rows)

    def spread(self, alpha: FloatArray, n: int) -> FloatArray:
        """Coefficients of all n training rows: zero for those it does not see."""
        if self.rows is None:
            return alpha
        full = np.zeros((n, alpha.shape[1]))
        full[self.rows] = alpha
        return full


class Setup(NamedTuple):
    """Checked settings and data, and the models to train on them."""

    spec: Spec
    table: Any
    weight: FloatArray  # (n,), zero for samples left out
    problems: list[SubProblem]
    labels: Any = None  # classes of the samples of positive weight


class Model(NamedTuple):
    """A trained model, on all training rows."""

    solution: Result
    alpha: FloatArray  # (n, c)
    margins: Callable[[], FloatArray] | None  # leave-one-out predictions (n_rows, c); None: not asked for
    full_rank_gap: float = np.nan  # of the kernels themselves, where they are approximated


def solve(
    spec: Spec, dictionary: AnyDictionary, problem: Problem, gram: Gram, callback: Any = None, **start: Any
) -> Result:
    """Solve a problem by the solver and the regulariser of a fit."""
    regularizer = live_regularizer(spec, dictionary)
    solver: Any = copy(choose_solver(spec.solver, regularizer))
    result: Result = solver.solve(problem, gram, regularizer, spec.tol, spec.max_iter, callback, **start)
    return result


def live_regularizer(spec: Spec, dictionary: AnyDictionary) -> Regularizer:
    """The regulariser of the kernels with variance; with margins by pattern, that of the patterns."""
    patterns: Any = getattr(dictionary.source, "patterns", None)
    rule = spec.regularizer if patterns is None or patterns.all() else PatternNorm(patterns)
    found: Regularizer = rule.select(dictionary.live, len(dictionary.names))
    if isinstance(found, PatternNorm) and len(found.maximal) == 1:
        result: Regularizer = spec.regularizer.select(
            dictionary.live, len(dictionary.names)
        )  # some have everything
        return result
    return found


def check_margin_rule(regularizer: Any, argument: str) -> None:
    """Raise ValueError where a regulariser, given as an argument, is not for margins by pattern."""
    rule = REGULARIZERS.resolve(regularizer, Regularizer, argument)
    if not (isinstance(rule, LpNorm) and rule.p == 1 and rule.form == "constraint"):
        raise ValueError(
            f"missing='margin' with {argument}={regularizer!r}: margins in the space of each sample's own "
            f"views are those of sums of norms; pass {argument}=LpNorm(p=1)."
        )


class BaseMKL(BaseKernels):
    """Parameters and machinery of the MKL estimators; see the subclasses."""

    #: checks parameters and data and returns the problems to solve; `fit`, `mkl_path` and searches call it as
    #: _setup(X, y, sample_weight)
    _setup: Callable[..., Setup]

    _parts: ClassVar[dict[str, tuple[Registry, type]]] = {
        "regularizer": (REGULARIZERS, Regularizer),
        "loss": (LOSSES, Loss),
    }

    #: whether C may be None
    _optional_cost = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_engine(self.gram, ("auto", *GRAMS))
        check_choice("missing", self.missing, MISSING)
        if self.missing == "margin":
            check_margin_rule(self.regularizer, "regularizer")
        if self.approximation is not None and self.missing == "margin":
            raise ValueError("missing='margin' needs the kernels themselves: pass approximation=None.")
        if self.C is not None or not self._optional_cost:
            check_positive("C", self.C)
        if self.approximation is None:
            return
        resolve_approximation(self.approximation)
        positive_integer(self.rank, "rank")
        if self._precomputed:
            raise ValueError(
                "approximation: precomputed kernels have all their entries already; pass approximation=None."
            )
        device = resolve_device(self.device or getattr(self, "_data_device", None))
        if self.gram not in ("auto", "dask") or device is not None:
            raise ValueError(
                "approximation keeps factors in place of Gram matrices: pass gram='auto' (or 'dask') and "
                "device=None."
            )

    # -- fitting ------------------------------------------------------------------------------

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and functions.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
            With `approximation` also a Dask array or data frame, or a `ParquetTable`. From these, and from
            arrays mapped from disk, kernels take their parameters from at most 100,000 rows.
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        self._fit_problems(self._setup(X, y, sample_weight))
        return self

    def _dictionary(self, setup: Setup, begin: bool = False) -> AnyDictionary:
        """The kernels on the samples of positive weight; and where models `begin`, where looks can tell."""
        spec, weight = setup.spec, setup.weight[setup.weight > 0]
        source = self._source(setup.table, setup.weight)
        if self.approximation is None:
            # on how many samples the solver may ask for the weighted sum of the kernels at once
            sizes = [(one.problem.loss, len(one.problem.y)) for one in setup.problems]
            grow = all(may_grow(loss, spec.regularizer, n) for loss, n in sizes)
            options: dict[str, Any] = {"combined": EXPECTED_SUPPORT if grow else True, "device": spec.device}
            options |= {"sample_weight": weight, "memory_limit": spec.limit, "gram": self.gram}
            if source.given and len(source.names) < MANY and all(one.rows is None for one in setup.problems):
                method = choose_solver(spec.solver, spec.regularizer)
                problems = [one.problem for one in setup.problems]
                options["first"] = looked_at(method, problems)
                if begin and Foresight.is_of(method, problems) and self.checkpoint is None:
                    count = len(source.names)
                    rule = spec.regularizer.select(np.arange(count), count)
                    if type(rule).bound_to is Regularizer.bound_to:  # takes nothing from the matrices
                        options["foresee"] = Foresight(method, problems, rule, spec.tol)
            make = partial(Dictionary, **options)
            result: AnyDictionary = with_gaps(make, source, self.missing, self.normalize, weight)
            return result
        assert isinstance(source, FeatureSource)
        kind: type[LowRankDictionary] = LowRankDictionary
        if self.gram == "dask" or getattr(source.X, "on_workers", False):  # factors are where the rows are
            from ..gram.dask.low_rank import DaskLowRankDictionary

            kind = DaskLowRankDictionary
        if source.gaps is not None and self.missing != "error":
            kind = partial(GapLowRankDictionary, self.missing)  # type: ignore[assignment]
        rule = (self.approximation, self.rank, self.normalize)
        return kind(source, *rule, weight, spec.limit, random_state=self.random_state)

    def _fit_problems(self, setup: Setup, margins: bool = False) -> list[Model]:
        """Compute the Gram matrices once, train every model on them, and store what is common."""
        dictionary, models = self._models(setup, lambda setup: self._dictionary(setup, True), margins)
        self._store(dictionary, models, setup.weight)
        if not np.atleast_2d(self.weights_).any(axis=1).all():
            scaled = is_regressor(self) and setup.problems[0].problem.loss.task == "regression"
            or_scale = ", or bring y to unit scale" if scaled else ""
            warn(f"every kernel has weight 0, so the model is constant: raise C{or_scale}.")
        return models

    def _models(
        self, setup: Setup, dictionary_of: Callable[[Setup], AnyDictionary], margins: bool = False
    ) -> tuple[AnyDictionary, list[Model]]:
        """The kernels, and every model trained on them."""
        spec, problems = setup.spec, [one.problem for one in setup.problems]
        rows = [np.arange(0) if one.rows is None else one.rows for one in setup.problems]
        told = {
            "models": [one.title for one in setup.problems],
            "regularizer": spec.regularizer,
            "loss": problems[0].loss,
            "fit_intercept": bool(problems[0].fit_intercept),
            "targets": (*(problem.y for problem in problems), *rows),
            "C or weights of the samples": tuple(cost for problem in problems for cost in problem.costs),
        }
        training = Training(self, len(problems), told)
        with blas_threads_for(int(np.count_nonzero(setup.weight))):
            dictionary = dictionary_of(setup)
            parts = [(one.title, one) for one in setup.problems]
            live_regularizer(spec, dictionary).bound_to(dictionary.gram)  # what it takes is computed once
            train = partial(self._train, spec, len(parts) if margins else 0)
            together = _see_the_same(setup, dictionary)
            models = training.models(train, dictionary, parts, dictionary.gram, together=together)
        dictionary.gram.guess = None
        training.end(all(model.solution.converged for model in models))
        return dictionary, models

    def _train(
        self,
        spec: Spec,
        margins: int,  # how many models have leave-one-out predictions
        dictionary: AnyDictionary,
        part: SubProblem,
        report: ModelProgress,
        keeper: Keeper,
    ) -> Model:
        gram = part.gram(dictionary)
        solution = solve(spec, dictionary, part.problem, gram, report, keeper=keeper, **_begin(gram))
        report.done(solution)
        view, gram, without = gram, gram.engine, None
        if margins:
            # what is computed again can be so after the fit
            computed = gram.streams or isinstance(gram, LowRankGram)
            later = computed and gram.portable and not dictionary.source.given
            without = margins_later(solution, part.problem, gram if later else view, later)
            if not later and margins * kept_bytes(solution.state.alpha) > MOST_KEPT_BYTES:
                without = partial(np.asarray, without())
        problem, state, n = part.problem, solution.state, dictionary.gram.n_samples
        alpha, gap = part.spread(state.alpha, n), np.nan
        if isinstance(dictionary, LowRankDictionary):
            dual = alpha
            if not problem.loss.separable:  # its dual point is that of the predictions
                dual = part.spread(problem.alpha_of(state.fitted + state.certificate.intercept), n)
            regularizer = live_regularizer(spec, dictionary).bound_to(gram)
            gap = full_rank_gap(problem, regularizer, state, dictionary.missing(dual))
        return Model(replace(solution, matrix=None), alpha, without, gap)

    def _store(self, dictionary: AnyDictionary, models: list[Model], weight: FloatArray) -> None:
        """Set the fitted attributes."""
        states = [model.solution.state for model in models]
        proofs = [state.certificate for state in states]
        weights = dictionary.all_weights(np.array([state.weights for state in states]))
        alpha = np.hstack([model.alpha for model in models])
        intercept = np.concatenate([proof.intercept for proof in proofs])
        if isinstance(dictionary, LowRankDictionary):
            self.approximation_errors_ = dictionary.errors()
            self.full_rank_gap_ = one_or_all(np.array([model.full_rank_gap for model in models]))
            pairs = zip(states, models, strict=True)
            parts = [dictionary.coefficients(s.weights, model.alpha, s.coefficients) for s, model in pairs]
            self.model_ = dictionary.predictor(parts, intercept)
        else:
            columns = [model.alpha.shape[1] for model in models]
            self.model_ = dictionary.predictor(np.repeat(weights, columns, axis=0), alpha, intercept)
        self._store_results(dictionary.names, weights, alpha, weight, [model.solution for model in models])
        self.gram_, self.gram_reason_ = dictionary.gram.name, dictionary.gram_reason
        self.norms_ = one_or_all(dictionary.all_weights(np.array([proof.norms for proof in proofs])))
        self.support_ = np.flatnonzero(np.atleast_2d(self.dual_coef_).any(axis=0))
        self.intercept_ = one_or_all(intercept + self._constants())
        self.objective_ = one_or_all(np.array([proof.primal for proof in proofs]))
        self.dual_gap_ = one_or_all(np.array([proof.gap for proof in proofs]))

    def _told(self, state: Any) -> str:
        return f"objective {state.certificate.primal:.6g}, relative gap {state.certificate.gap:.2g}"

    @property
    def residual_(self) -> Any:
        """Deprecated name of `stationarity_`."""
        value = self.stationarity_
        warnings.warn("`residual_` is deprecated: use `stationarity_`.", FutureWarning, stacklevel=2)
        return value


def _begin(gram: Gram) -> dict[str, Any]:
    """Where a solver begins if its first weighted sum was made when the kernels were checked, or before."""
    guess = gram.engine.guess
    if guess is None:
        return {}
    start = guess.start
    if start is not None:
        start = replace(start, weights=guess.weights, squares=guess.squares)
    matrix = gram.shared(guess.weights, guess.matrix)
    known = Known(guess.norms, guess.weights, matrix, guess.newton, start, guess.n_machines)
    return {"norms": guess.norms, "known": known}


def _see_the_same(setup: Setup, dictionary: AnyDictionary) -> bool:
    """Whether all models see the same matrices; machines on factors make passes of their own."""
    return all(one.rows is None for one in setup.problems) and not isinstance(dictionary, LowRankDictionary)


def left_out(solution: Result, problem: Problem, gram: Gram) -> FloatArray:
    """Predictions of the training samples by models without them, of shape (n, c).

    With low-rank kernels and too many samples, the predictions of the model itself.
    """
    return margins_later(solution, problem, gram, whole=True)()


def margins_later(
    solution: Result, problem: Problem, gram: Gram, later: bool = False, whole: bool = False
) -> Callable[[], FloatArray]:
    """`left_out` when it is called, without the matrices; kernel values are computed `later` too.

    Where some thousands of samples are free to move, some of them stand for all, unless the matrix and its
    inverse are wanted as a `whole`.
    """
    state, low_rank = solution.state, isinstance(gram, LowRankGram)
    f = state.fitted + state.certificate.intercept
    if low_rank and gram.n_samples > MOST_LEFT_OUT:
        return lambda: f
    K: Any = None if low_rank else solution.matrix
    K = gram.at_hand(state.weights) if K is None else K
    if K is None:
        K = gram.combine(state.weights) if whole else WeightedRows(gram, state.weights, later)
    return left_out_later(K, problem, state.alpha, f, None if whole else MOST_FREE)
