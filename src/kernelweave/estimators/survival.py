"""Survival analysis with many kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._censored import survival_array
from .._typing import FloatArray, IntArray
from ..kernels import as_views
from ..losses import LOSSES, Loss
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ..solvers.greedy import BestSubset
from ._base import Spec, all_or_nothing, follows_input
from ._group_omp import BaseGroupOMP, GreedySetup
from ._input import check_weights
from ._mkl import BaseMKL, Model, Setup, SubProblem
from ._search import FOLDS, Folds, Grid, Trial
from ._survival import (
    FrozenRisk,
    RiskScore,
    SurvivalTargets,
    _has_baseline,
    as_columns,
    as_events,
    check_events,
    risk_shares,
)
from ._training import with_callbacks
from .auto import BaseMKLAuto, Values
from .cross_validation import BaseMKLCV


class MKLSurvival(SurvivalTargets, BaseMKL):
    """Multiple kernel learning for times to an event, some of them censored.

    Learns a risk f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) together with the kernel weights d:

        min_{f_m, d >= 0}  C L(y, f) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    with the partial likelihood of Cox (1972) as L: the hazard of x at time t is lambda_0(t) exp(f(x)). Other
    losses rank the samples, or predict log times. The duality gap certifies the optimum as for other losses,
    relative to what the model gains over f = 0.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    loss : str or Loss, default="cox"
        "cox", also ``Cox(ties="efron")``; "survival_ranking", a squared hinge of comparable pairs; or
        "censored_eps_insensitive", support vector regression of log times.
    regularizer, C, normalize, missing, solver, gram, approximation, rank, tol, max_iter, fit_intercept, \
memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `MKLRegressor`. Only a loss of log times has an intercept.

    Attributes
    ----------
    unique_times_ : ndarray of shape (n_times,)
        Times of the training samples.
    baseline_hazard_ : ndarray of shape (n_strata, n_times)
        Lambda_0 there, with Cox's loss.
    strata_ : ndarray of shape (n_strata,)
        Only where y had strata.
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, coef_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, patterns_, observed_, n_features_in_, feature_names_in_
        As in `MKLRegressor`.

    Notes
    -----
    y is a structured array of event (bool) and time, as in scikit-survival, a data frame with these two
    columns, or a tuple (event, time). A third field, column or part is the stratum of each sample: only
    samples of one stratum are compared, and each has a baseline of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> time, end = rng.exponential(np.exp(-2.0 * X[:, 0])), rng.exponential(2.0, size=80)
    >>> y = (time <= end, np.minimum(time, end))
    >>> model = kw.MKLSurvival(per_feature(RBF())).fit(X, y)
    >>> model.kernel_names_[int(model.weights_.argmax())], model.score(X, y) > 0.7
    ('x0', True)
    >>> model.predict_survival_function(X[:1])[0]([0.0, 0.5]).round(2)
    array([1.  , 0.74])
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "cox",
        regularizer: str | Regularizer = "lp",
        C: float = 1.0,
        normalize: str | None = "variance",
        missing: str = "error",
        solver: str | MKLSolver = "auto",
        gram: str = "auto",
        approximation: Any = None,
        rank: int = 100,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizer = regularizer
        self.C = C
        self.normalize = normalize
        self.missing = missing
        self.solver = solver
        self.gram = gram
        self.approximation = approximation
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the risk.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : structured array, data frame or tuple
            Event, time and perhaps the stratum of every sample.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        setup = self._setup(X, y, sample_weight)
        [model] = self._fit_problems(setup)
        state = model.solution.state
        f = (state.fitted + state.certificate.intercept)[:, 0]
        used = setup.weight > 0
        self._store_baseline(setup.labels, f, setup.weight[used])
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problem to solve."""
        spec = Spec.of(self)
        table, columns = self._read(X, y)
        weight = check_weights(sample_weight, table)
        used = weight > 0
        Y = columns[used].astype(np.float64)
        check_events(Y)
        problem = Problem.weighted(spec.loss.targets(Y), spec.loss, self.C, weight[used], self.fit_intercept)
        return Setup(spec, table, weight, [SubProblem("fit", problem)], Y)


class GroupOMPSurvival(SurvivalTargets, BaseGroupOMP):
    """Survival analysis with few kernels, chosen one after another (MKL-GOMP).

    As `GroupOMPRegressor`, with the partial likelihood of Cox in place of the squares: among all sets G of
    kernels it looks for one with small

        J(G) = min_{f_m}  2/l L(y, f) + lambda sum_{m in G} ||f_m||^2,    f = sum_{m in G} f_m

    by adding, at each step, the kernel of the largest gain I_m on the residuals R = -L'(f), which are the
    martingale residuals of the samples, and fitting all of them again. I_m is the gain of the squared
    loss; for other losses it ranks the kernels.

    Parameters
    ----------
    kernels, n_kernels, alpha, backward, dictionary_sample, normalize, missing, memory_limit, device, \
n_jobs, random_state, checkpoint, verbose
        As in `GroupOMPRegressor`.
    tol : float, default=1e-3
        The path ends when no kernel gains a larger share of J without kernels.
    loss : str or Loss, default="cox"
        "cox" or "survival_ranking", as in `MKLSurvival`; "censored_eps_insensitive" has an intercept.
    validation_fraction : float, optional
        Share of the samples held out, whose concordance chooses the number of kernels; `fit` also takes such
        samples.
    fit_intercept : bool, default=True
        Whether kernels are centred; only a loss of log times has an intercept.

    Attributes
    ----------
    unique_times_, baseline_hazard_, strata_
        As in `MKLSurvival`.
    model_, path_, selected_, weights_, norms_, dual_coef_, intercept_, coef_, support_, objective_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, kernel_names_, n_features_in_, feature_names_in_
        As in `GroupOMPRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = (rng.random(60) < 0.8, rng.exponential(np.exp(-2.0 * X[:, 3])))
    >>> model = kw.GroupOMPSurvival(per_feature(RBF()), n_kernels=2).fit(X, y)
    >>> model.kernel_names_[model.selected_[0]], model.score(X, y) > 0.7
    ('x3', True)
    """

    output_groups = None

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        n_kernels: int | None = None,
        alpha: float = 1e-2,
        tol: float = 1e-3,
        loss: str | Loss = "cox",
        validation_fraction: float | None = None,
        backward: bool = False,
        dictionary_sample: int | float | None = None,
        normalize: str | None = "variance",
        missing: str = "error",
        fit_intercept: bool = True,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.n_kernels = n_kernels
        self.alpha = alpha
        self.tol = tol
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.backward = backward
        self.dictionary_sample = dictionary_sample
        self.normalize = normalize
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation_set: Any = None) -> Self:
        """Select kernels and learn the risk.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : structured array, data frame or tuple
            Event, time and perhaps the stratum of every sample.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        validation_set : tuple (X_val, y_val), optional
            Samples whose concordance chooses the number of kernels.
        """
        setup = self._setup(X, y, sample_weight, validation_set)
        self._fit_path(setup)
        used, known = setup.weight > 0, survival_array(y)
        f = self._decision(as_views(X, y))[used, 0]
        self._store_baseline(as_columns(known)[0][used], f, setup.weight[used])
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any, validation_set: Any = None) -> GreedySetup:
        spec = Spec.of(self)
        table, columns = self._read(X, y)
        weight = check_weights(sample_weight, table)
        Y = columns.astype(np.float64)
        check_events(Y[weight > 0])
        groups = self._named_groups(1)
        if isinstance(validation_set, list | tuple) and len(validation_set) == 2:
            X_val, y_val = validation_set
            validation_set = as_views(X_val, y_val), survival_array(y_val)
        setup = GreedySetup(spec, table, weight, spec.loss.targets(Y), groups)
        return self._split(setup, survival_array(y), validation_set, Y[:, 1])

    def _held_out_error(self, spec: Spec, values: FloatArray, y: Any, weight: Any) -> float:
        return 1.0 - FrozenRisk(self._risks(values)).score(np.zeros((len(y), 1)), y, weight)

    def best_subset(self, *args: Any, **kwargs: Any) -> BestSubset:
        """As in `GroupOMPRegressor`, of a loss that is a sum over samples: others have no bounds for it."""
        loss = LOSSES.resolve(self.loss, Loss, "loss")
        if not loss.separable:
            raise ValueError(
                f"best_subset needs a loss that is a sum over samples, and {type(loss).__name__} couples "
                "them: compare with MKLSurvival(regularizer=LpNorm(p=1)), whose optimum is certified."
            )
        return super().best_subset(*args, **kwargs)

    @follows_input
    def predict(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Risks of new samples, shape (n,): larger for earlier events.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        n_kernels : int, optional
            Predict with the model of that size on the path; by default with the one chosen.
        """
        return self._risks(self._decision(X, n_kernels))

    def staged_predict(self, X: Any) -> Iterator[FloatArray]:
        """Risks by the models of 1, 2, ... kernels."""
        yield from map(self._risks, self._staged_decision(X))


class SurvivalSearch(RiskScore):
    """Mixin of searches for a model of censored times."""

    cv: Any
    _score: Callable[..., float]
    _answer: Callable[..., Any]
    best_estimator_: MKLSurvival

    def _read_targets(self, y: Any) -> Any:
        return y if hasattr(y, "iloc") else survival_array(y)

    def _labels_of(self, y: Any) -> Any:
        return survival_array(y)

    def _stratified_by(self, y: Any) -> Any:
        """Events are in every fold; censored samples too, where there is one for each."""
        count = int(y["event"].sum())
        if (isinstance(self.cv, int) and 0 < count < self.cv) or (self.cv is None and count == 1):
            raise ValueError(
                f"cv={self.cv} has folds without an event, which nothing can be scored on: y has {count} "
                f"event{'s' * (count > 1)}. {'Pass fewer folds, or fit' if count > 1 else 'Fit'} MKLSurvival."
            )
        few = len(y) - count < (self.cv if isinstance(self.cv, int) else FOLDS)
        return np.where(y["event"] | few, "event", "censored")

    def _frozen(self, template: Any, values: FloatArray) -> Any:
        return FrozenRisk(template._risks(values))

    def _constant_scores(self, scorer: Any, y: Any, weight: FloatArray, folds: Folds) -> FloatArray:
        frozen = [(FrozenRisk(np.zeros(len(test))), test) for _, test in folds.splits]
        options = [folds.score_options(test) for _, test in frozen]
        return np.array(
            [
                self._score(scorer, model, np.zeros((len(test), 1)), y[test], own)
                for (model, test), own in zip(frozen, options, strict=True)
            ]
        )

    @available_if(_has_baseline)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, strata: Any = None
    ) -> Any:
        """Cumulative hazards of the best estimator."""
        return self._answer("predict_cumulative_hazard_function", X, return_array, strata)

    @available_if(_has_baseline)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_survival_function(self, X: Any, return_array: bool = False, strata: Any = None) -> Any:
        """Survival functions of the best estimator."""
        return self._answer("predict_survival_function", X, return_array, strata)

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the training samples."""
        return self.best_estimator_.unique_times_


class MKLSurvivalCV(SurvivalSearch, BaseMKLCV):
    """`MKLSurvival` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid, and every point starts from
    the solution of its neighbour on the path of C, as in `mkl_path`.

    Parameters
    ----------
    kernels, regularizers, Cs, device, n_jobs, verbose
        As in `MKLClassifierCV`.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 folds by default. Where it is a number, the folds have events in proportion.
    scoring : str or callable, optional
        Harrell's concordance by default.
    loss, normalize, missing, tol, max_iter, fit_intercept
        As in `MKLSurvival`.

    Attributes
    ----------
    best_estimator_ : MKLSurvival
        The best pair, fitted on all samples.
    best_params_, best_score_, best_index_, cv_results_, grid_extended_, model_, weights_, kernel_names_, \
dual_gap_, stationarity_, intercept_, coef_, patterns_, observed_, n_features_in_
        As in `MKLClassifierCV`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = (rng.random(60) < 0.8, rng.exponential(np.exp(-2.0 * X[:, 0])))
    >>> search = kw.MKLSurvivalCV(per_feature(RBF()), regularizers=[kw.LpNorm(1)], Cs=[0.1, 1.0], cv=3)
    >>> search.fit(X, y).best_score_ > 0.7
    True
    """

    _searched = MKLSurvival

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "cox",
        regularizers: str | Regularizer | Sequence[str | Regularizer] = "lp",
        Cs: int | Sequence[float] = 10,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizers = regularizers
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose


class MKLAutoSurvival(SurvivalSearch, BaseMKLAuto):
    """Survival analysis that needs no choice: models compete on held-out samples, and are summed.

    As in `MKLAutoRegressor` the uniform sum of the kernels, that of every view, the related views and learned
    weights with p = 2, 4/3 and 1 are tried at several costs. The model is a sum of them, each by its own
    likelihood: with the held-out risks F_j of every candidate at its best cost, of spread s_j, and the folds
    as strata, so that only risks of one model are compared,

        w_j s_j  in proportion to  exp(-L_j),   L_j = min over a >= 0 of L(y, a F_j / s_j)

    with L the partial likelihood of Cox. A few hundred events tell hardly one candidate from another, so that
    which of them scores most is mostly chance; a sum of all that are good depends less on it (Geisser & Eddy
    1979; pseudo-BMA in Yao, Vehtari, Simpson & Gelman 2018, Using Stacking to Average Bayesian Predictive
    Distributions, Bayesian Analysis 13). The sum is again one model (`MKLAutoClassifier`).

    Parameters
    ----------
    kernels, loss, normalize, missing, tol, max_iter, fit_intercept, device
        As in `MKLSurvival`.
    Cs : int or sequence of float, default=(0.003, 0.03, 0.3, 3.0)
        The costs that every candidate is tried with. Of small ones all have the same order of risks, that of
        f = K r with the residuals r of f = 0. A number n means n values from 0.01 to 10 and more beyond them,
        as in `MKLAutoClassifier`.
    cv : int, splitter or iterable, default=None
        As in `MKLSurvivalCV`.
    scoring : str or callable, optional
        Harrell's concordance by default. It chooses costs.
    time_budget, n_jobs, verbose
        As in `MKLAutoClassifier`.

    Attributes
    ----------
    best_estimator_ : MKLSurvival
        The model.
    candidates_, stack_weights_, reason_, best_score_, best_index_, cv_results_, model_, weights_, \
kernel_names_, dual_gap_, stationarity_, intercept_, coef_, patterns_, observed_, n_features_in_
        As in `MKLAutoClassifier`; `best_index_` is that of the stack, unless it has one part.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = (rng.random(60) < 0.8, rng.exponential(np.exp(-2.0 * X[:, 0])))
    >>> model = kw.MKLAutoSurvival(per_feature(RBF()), Cs=[0.1, 1.0], cv=3).fit(X, y)
    >>> model.best_score_ > 0.7, model.predict_survival_function(X[:1]).shape
    (True, (1,))
    """

    _searched = MKLSurvival
    _costs = (0.01, 10.0)
    _variants = False  # the folds of few events would tell no more candidates apart

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "cox",
        Cs: int | Sequence[float] = (0.003, 0.03, 0.3, 3.0),
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        time_budget: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.time_budget = time_budget
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _measure(self) -> str:
        return "concordance" if self.scoring is None else super()._measure

    def _multipliers(
        self, values: Values, y: FloatArray, weight: FloatArray, clusters: Any, tests: list[Any]
    ) -> FloatArray:
        template = self._template()
        risks = [np.concatenate([template._risks(part) for part in one]) for one in values]
        rows, fold = np.concatenate(tests), np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        often = np.bincount(rows, minlength=len(weight))  # samples tested several times count once
        return risk_shares(np.array(risks), as_events(y)[rows], (weight / np.maximum(often, 1))[rows], fold)

    def _choice(self, losses: tuple[FloatArray, IntArray, Any, Any], shares: FloatArray) -> int:
        return len(shares) if np.count_nonzero(shares) > 1 else int(np.argmax(shares))

    def _complete(self, template: Any, setup: Setup, fits: list[list[Model]], shares: FloatArray) -> None:
        states = [model.solution.state for [model] in fits]
        values = [one.fitted + one.certificate.intercept for one in states]
        f = np.tensordot(shares, np.array(values), 1)[:, 0]
        template._store_baseline(setup.labels, f, setup.weight[setup.weight > 0])

    def _warn_of_end(self, row: list[Trial], best: Trial, grid: Grid) -> None:
        """Nothing to tell: at small costs all orders of risks are the same, and the sum has many costs."""
