"""Generalized multiple kernel learning: estimators that learn the parameters of one kernel."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._backend import resolve_device
from .._linalg import blas_threads_for
from .._typing import BoolArray, FloatArray
from .._warnings import parallel, warn
from ..gram import ParametricSource, Predictor, parse_memory
from ..gram.terms import KernelTerm
from ..kernels import resolve_normalization
from ..kernels.columns import is_frame
from ..kernels.faults import refuse_dates
from ..kernels.parametric import PARAMETRIC_KERNELS, ParametricKernel
from ..losses import LOSSES, Loss
from ..solvers import Problem, leave_one_out
from ..solvers._fingerprint import describe, digest
from ..solvers.checkpoint import Keeper
from ..solvers.kernel_gradient import PENALTIES, KernelGradient, Penalty, check_gradient
from ..solvers.kernel_gradient.torch_kernel import on_device
from ..solvers.run import Result
from ._base import (
    _one_or_all,
    all_or_nothing,
    check_positive,
    check_weights,
    fit_device,
    follows_input,
    weights_table,
)
from ._checkpoint import Keepers, keeping, open_checkpoint
from ._input import check_settings, check_table, check_targets, explained
from ._labels import ClassLabels, class_factors, class_tasks, encode_labels, fit_link
from ._names import model_names, name_outputs
from ._progress import CallbackSupportMixin, Progress, with_callbacks

#: a weight below this share of the largest is not counted as selecting its feature
NEGLIGIBLE = 1e-6


class Data(NamedTuple):
    """Training samples of positive weight, and the kernel fitted on them."""

    kernel: ParametricKernel
    X: FloatArray
    free: BoolArray  # parameters that the data can inform
    unit: float = 1.0  # what r is multiplied with


class KernelProgress(Progress):
    """Reports the objective after every step."""

    def say(self, what: str, state: Any) -> None:
        name, active = type(self.estimator).__name__, np.count_nonzero(state.u)
        value = f"objective {state.objective:.6g}, residual {state.residual:.2g}"
        print(f"[{name}] {what.replace('machine', 'step')}: {value}, {active} parameters")


class BaseGMKL(SelectorMixin, CallbackSupportMixin, BaseEstimator):
    """Parameters and machinery of the generalized MKL estimators; see the subclasses."""

    max_iter: int  # parameters are stored by the classes whose constructors name them
    n_features_to_select: int | None

    # -- validation ---------------------------------------------------------------------------

    def _check_parameters(self, tasks: tuple[str, ...]) -> Loss:
        """Refuse parameters that cannot work; the loss."""
        check_settings(self)
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        resolve_device(self.device)
        if not (isinstance(self.max_iter, Integral) and self.max_iter > 0):
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer.")
        loss = LOSSES.resolve(self.loss, Loss, "loss")
        if loss.task not in tasks:
            fitting = ", ".join(
                repr(name) for name, cls in LOSSES.items() if getattr(cls, "task", "") in tasks
            )
            raise ValueError(f"loss={self.loss!r} is not for {type(self).__name__}: use one of {fitting}.")
        loss.check()
        return loss

    def _validate(self, X: Any, y: Any, **y_options: Any) -> tuple[FloatArray, Any]:
        name_outputs(self, y, bool(y_options.get("multi_output")))
        check_targets(y, bool(y_options.get("y_numeric")), type(self).__name__)
        return self._numbers(X, y=y, ensure_min_samples=2, **y_options)

    def _numbers(self, X: Any, **options: Any) -> Any:
        """The samples as an array of finite floats."""
        check_table(X)
        refuse_dates(X)
        with explained(X):
            return validate_data(self, X, dtype=[np.float64, np.float32], **options)

    def _data(self, X: Any, values: FloatArray, weight: FloatArray) -> Data:
        """Fit the kernel on the samples of positive weight."""
        used = np.flatnonzero(weight)
        self._check_memory(len(used), values.itemsize)
        kernel = clone(PARAMETRIC_KERNELS.resolve(self.kernel, ParametricKernel, "kernel"))
        # column names are in the user's table
        kernel.fit(X if is_frame(X) else values, sample_weight=weight)
        free = kernel.initial_ > 0
        if not free.any():
            raise ValueError(
                f"no parameter of {type(kernel).__name__} can be learned: every column it sees is constant."
            )
        if not free.all():
            names = ", ".join(np.array(kernel.names_)[~free][:10])
            warn(f"constant columns get weight 0: {names}.")
        return Data(kernel, values[used], free)

    def _check_memory(self, n: int, itemsize: int) -> None:
        """Refuse more samples than the limit has room for: K, the one before, and a copy while training."""
        limit, needed = parse_memory(self.memory_limit), 3 * n**2 * itemsize
        if limit is not None and needed > limit:
            raise MemoryError(
                f"{n} samples need {needed / 1e9:.2f} GB, memory_limit allows {limit / 1e9:.2f} GB: raise "
                "it, use fewer samples, or pass X as float32."
            )

    # -- fitting ------------------------------------------------------------------------------

    def _fit_problems(self, data: Data, problems: dict[str, Problem], weight: FloatArray) -> list[Result]:
        """Learn the parameters of every problem, select features if asked to, and store the models."""
        penalty = PENALTIES.resolve(self.regularizer, Penalty, "regularizer")
        if self.check_gradient:
            check_gradient(data.kernel, data.X, penalty=penalty)
        features = data.kernel.feature_map(data.X)
        count = self._n_features(features)
        checkpoint = open_checkpoint(self, self._parts(data, problems, penalty))
        with blas_threads_for(len(data.X)), keeping(checkpoint) as keepers:
            solutions = self._solve(data, problems, penalty, data.free, keepers)
            importances = np.mean([solution.state.d for solution in solutions], axis=0) @ features
            order = np.argsort(-importances, kind="stable")
            self._mask = importances > NEGLIGIBLE * importances.max(initial=0.0)
            if count is not None:
                kept = ~features.any(axis=1) | features[:, order[:count]].any(axis=1)
                solutions = self._solve(data, problems, penalty, data.free & kept, keepers, "selected")
                self._mask = features[kept].any(axis=0)
            keepers.finish(all(solution.converged for solution in solutions))
        self.ranking_ = np.empty(len(order), dtype=int)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self._features = features
        self._store(data, solutions, weight)
        return solutions

    def _parts(self, data: Data, problems: dict[str, Problem], penalty: Penalty) -> dict[str, str]:
        """What tells the problem from others."""
        each = list(problems.values())
        names = ("constraint", "fit_intercept", "n_features_to_select", "n_init", "random_state")
        return {
            "estimator": type(self).__name__,
            "models": describe(list(problems)),
            "kernel": describe(data.kernel),
            "regularizer": describe(penalty),
            "loss": describe(each[0].loss),
            "targets": digest(*(problem.y for problem in each)),
            "C or weights of the samples": digest(*(problem.C for problem in each)),
            "X": digest(data.X),
            **{name: describe(getattr(self, name)) for name in names},
        }

    def _n_features(self, features: FloatArray) -> int | None:
        count = self.n_features_to_select
        if count is None:
            return None
        if not (isinstance(count, Integral) and 1 <= count <= features.shape[1]):
            raise ValueError(
                f"n_features_to_select={count!r} must be an integer from 1 to {features.shape[1]}, or None."
            )
        if not features.any():
            raise ValueError(_NO_FEATURES)
        return int(count)

    def _solve(
        self,
        data: Data,
        problems: dict[str, Problem],
        penalty: Penalty,
        free: BoolArray,
        keepers: Keepers,
        stage: str = "all",
    ) -> list[Result]:
        progress = KernelProgress(self, len(problems), int(self.verbose))
        solutions = parallel(
            self.n_jobs,
            (
                delayed(self._train)(
                    data, title, problem, penalty, free, progress, index, keepers(index, stage)
                )
                for index, (title, problem) in enumerate(problems.items())
            ),
            keepers.require,
        )
        progress.done()
        return solutions

    def _train(
        self,
        data: Data,
        title: str,
        problem: Problem,
        penalty: Penalty,
        free: BoolArray,
        progress: Progress,
        index: int,
        keeper: Keeper,
    ) -> Result:
        report: Any = progress.model(index, title)
        solver = KernelGradient(self.solver, self.n_init, random_state=self.random_state)
        solution = solver.solve(
            problem,
            on_device(data.kernel, fit_device(self)),
            data.X,
            penalty,
            self.constraint,
            self.tol,
            self.max_iter,
            report,
            free,
            keeper,
            data.unit,
        )
        progress.model_done(report, title, solution.n_iter, solution.state)
        return solution

    def _store(self, data: Data, solutions: list[Result], weight: FloatArray) -> None:
        """Set the fitted attributes."""
        weights = np.array([solution.state.d for solution in solutions])
        # a constant kernel is approached, not reached
        if all((solution.state.u <= 10.0 * self.tol).all() for solution in solutions):
            warn(
                f"every parameter of {type(data.kernel).__name__} was driven to 0, so the model is constant: "
                "increase C, or weaken the regularizer.",
            )
        alpha = np.hstack([solution.state.alpha for solution in solutions])
        support, used = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(weight)
        dual_coef = np.zeros((len(weight), alpha.shape[1]))
        dual_coef[used] = alpha
        self.model_ = _predictor(data, solutions)
        self.kernel_names_ = list(data.kernel.names_)
        self.weights_ = _one_or_all(weights)
        self.dual_coef_ = _one_or_all(dual_coef.T)
        self.support_ = used[support]
        self.intercept_ = _one_or_all(self.model_.intercept)
        self.objective_ = _one_or_all(np.array([solution.state.objective for solution in solutions]))
        self.stationarity_ = _one_or_all(np.array([solution.state.residual for solution in solutions]))
        self.n_resumed_ = _one_or_all(np.array([solution.n_resumed for solution in solutions]))
        self.n_iter_ = _one_or_all(np.array([solution.n_iter for solution in solutions]))
        self.history_ = _one_or_all([solution.history for solution in solutions])

    # -- selection ----------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """Weight of every feature, the mean over the models; for `SelectFromModel`."""
        check_is_fitted(self)
        if not self._features.any():
            raise AttributeError(_NO_FEATURES)
        return np.atleast_2d(self.weights_).mean(axis=0) @ self._features

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        if not self._features.any():
            raise ValueError(_NO_FEATURES)
        return self._mask

    # -- prediction ---------------------------------------------------------------------------

    #: the functions learned
    model_: Predictor

    #: fitted attributes that predictions read, and their types
    _fitted: ClassVar[dict[str, type]] = {
        "model_": Predictor,
        "kernel_names_": list,
        "weights_": np.ndarray,
        "n_features_in_": int,
        "_mask": np.ndarray,
        "_features": np.ndarray,
    }

    def _fits_together(self) -> bool:
        """Whether what a file says of a fit is consistent."""
        source, shape = self.model_.source, np.atleast_2d(self.weights_).shape
        return isinstance(source, ParametricSource) and source.parameters.shape == shape

    @property
    def kernel_(self) -> ParametricKernel:
        """The fitted kernel."""
        return self.model_.source.kernel  # type: ignore[attr-defined]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _inputs(self, X: Any) -> FloatArray:
        """New samples, checked, as `model_` takes them."""
        check_is_fitted(self)
        return self._numbers(X, reset=False)

    def _decision(self, X: Any) -> FloatArray:
        """Values of every function learned, shape (n, n_functions)."""
        values = self._inputs(X)
        return self.model_(values)

    def weights_frame(self) -> Any:
        """Models, names and values of the parameters d as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        check_is_fitted(self)
        models = [name for name in model_names(self) for _ in self.kernel_names_]
        weights = np.atleast_2d(self.weights_)
        names = self.kernel_names_ * len(weights)
        return pd.DataFrame({"model": models, "kernel": names, "weight": weights.ravel()})

    def _html_repr(self) -> str:
        page = super()._html_repr()
        if not hasattr(self, "weights_"):
            return page
        return page + weights_table(self.kernel_names_, np.atleast_2d(self.weights_), model_names(self))


_NO_FEATURES = (
    "the parameters of this kernel are not weights of features, so it selects none: use ProductRBF, "
    "GroupProductRBF or PowerSum."
)


class GMKLClassifier(ClassLabels, BaseGMKL):
    """Generalized multiple kernel learning for classification, and a feature selector.

    Learns f(x) = sum_i alpha_i k_d(x, x_i) + b together with the parameters d of one kernel:

        min_{w, b, d >= 0}  1/2 w'w + C sum_i V(y_i, f(x_i)) + r(d)

    for any differentiable k_d and r. The default, a product of one Gaussian a feature with an l1
    penalty, is nonlinear feature selection: `weights_` has one weight a feature, many of them zero.
    The problem is not convex; the objective falls at every step to a stationary point. Standardise
    the data: r(d) depends on the units of the features. Varma & Babu (2009).

    Parameters
    ----------
    kernel : str or ParametricKernel, default="product_rbf"
        "product_rbf", "power_sum", "exp_sum", or an object such as ``GroupProductRBF(groups)``.
    regularizer : str or Penalty, default="l1"
        r: "l1", "l2", "power", or an object of `kernelweave.solvers.kernel_gradient` such as
        ``L1(0.1) + L2(mean=1.0)``.
    C : float, default=1.0
        Cost of errors. For selecting features the paper takes it large.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "logistic", or a regression loss on labels -1 and +1: "squared",
        "eps_insensitive", "huber".
    constraint : Box, callable or None, default=None
        Where d may lie: a `Box`, or a function that projects d onto a convex set (then with
        ``solver="spectral"``); d >= 0 by default.
    n_features_to_select : int, optional
        Learn with all features, rank them by weight, learn again with the best (the paper's
        protocol). By default `transform` keeps the features whose weight is not zero.
    multiclass : {"ovr", "shared"}, default="ovr"
        More than two classes: one model per class with its own parameters, or parameters shared by all.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" lets all classes weigh the same, samples counted by their weights.
    solver : {"lbfgsb", "spectral"}, default="lbfgsb"
        See `KernelGradient`.
    n_init : int, default=1
        Starts; the lowest objective wins.
    check_gradient : bool, default=False
        Compare the gradients of kernel and regulariser with finite differences before fitting, and
        name the components that are wrong.
    tol : float, default=1e-4
        Projected-gradient residual, relative to the objective, at which the fit has converged.
    max_iter : int, default=500
        Most steps a start.
    fit_intercept : bool, default=True
    memory_limit : int or str, optional
        Bytes the kernel matrices may take, such as "2GB"; more is refused. float32 data halve them.
    device : str, optional
        "cuda" (or "cuda:1", ...) to fit and predict on a GPU through torch, "torch:cpu" for the same
        code on the CPU; by default where the data are: NumPy, or the device of a tensor or CuPy array.
    n_jobs : int, optional
        Threads over the models of a multiclass fit.
    random_state : int, RandomState or None, default=None
        Of the starts after the first.
    checkpoint : str or path-like, optional
        As in `MKLClassifier`; the parameters of every start are kept. The descent forgets its
        estimate of the curvature, so it may take a few steps more.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_parameters,) or (n_classes, n_parameters)
        The parameters d.
    kernel_names_ : list of str
        One name a parameter: the feature, group or kernel it belongs to.
    kernel_ : ParametricKernel
        The fitted kernel; ``kernel_(X, Z, weights_)`` is a Gram block.
    feature_importances_ : ndarray of shape (n_features,)
    ranking_ : ndarray of shape (n_features,)
        1 for the feature of largest weight in the fit with all features.
    objective_, stationarity_, n_iter_, n_resumed_ : float or ndarray
        T(d), the residual that `tol` bounds, accepted steps, and those of them read from the checkpoint.
    history_ : dict or list of dict
        "objective", "stationarity", "n_active" and "n_machines" of every iterate.
    model_, dual_coef_, intercept_, support_, classes_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import kernelweave as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), kw.GMKLClassifier(n_features_to_select=5)).fit(X, y)
    >>> int(model[-1].get_support().sum()), model.score(X, y) > 0.95
    (5, True)
    """

    def __init__(
        self,
        kernel: Any = "product_rbf",
        *,
        regularizer: Any = "l1",
        C: float = 1.0,
        loss: Any = "hinge",
        constraint: Any = None,
        n_features_to_select: int | None = None,
        multiclass: str = "ovr",
        class_weight: Any = None,
        solver: str = "lbfgsb",
        n_init: int = 1,
        check_gradient: bool = False,
        tol: float = 1e-4,
        max_iter: int = 500,
        fit_intercept: bool = True,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.regularizer = regularizer
        self.C = C
        self.loss = loss
        self.constraint = constraint
        self.n_features_to_select = n_features_to_select
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.solver = solver
        self.n_init = n_init
        self.check_gradient = check_gradient
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
        """Learn kernel parameters and classifier.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            float32 stays float32.
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        loss = self._check_parameters(("classification", "regression"))
        if self.multiclass not in ("ovr", "shared"):
            raise ValueError(f"multiclass={self.multiclass!r}: expected 'ovr' or 'shared'.")
        values, y = self._validate(X, y)
        weight = check_weights(sample_weight, values)
        used = weight > 0
        self.classes_, labels = encode_labels(y, weight)
        factors = class_factors(self.class_weight, self.classes_, labels, weight[used])
        data = self._data(X, values, weight)
        C = self.C * weight[used] * factors[labels]
        tasks = class_tasks(self.multiclass, self.classes_, labels, C, loss, self.fit_intercept)
        solutions = self._fit_problems(data, {task.title: task.problem for task in tasks}, weight)
        margins = None
        if not hasattr(loss, "probability"):
            pairs = zip(solutions, tasks, strict=True)
            margins = np.hstack([_margins(data, solution, task.problem) for solution, task in pairs])
        self.model_.link = fit_link(loss, margins, labels, weight[used])
        return self


class GMKLRegressor(RegressorMixin, BaseGMKL):
    """Generalized multiple kernel learning for regression, and a feature selector.

    Learns f(x) = sum_i alpha_i k_d(x, x_i) + b together with the parameters d of one kernel:

        min_{w, b, d >= 0}  1/2 w'w + C sum_i V(y_i, f(x_i)) + v r(d)

    v is the variance of y (its mean square without an intercept; the mean over several outputs, which
    share the parameters). It measures r in units of the data: the fit is that of y / sqrt(v), undone,
    and with s y in place of y the parameters are the same and predictions are multiplied by s.
    The parameter of a loss that has units of y (``Huber(delta)``, ``EpsInsensitive(eps)``) has to be
    multiplied too; for the latter also C has units, those of y.

    With the squared loss, ``regularizer=LogDet()`` and no intercept it is Gaussian process regression of
    y / sqrt(v) with noise 1 / C and parameters of largest evidence. Varma & Babu (2009), who have v = 1.

    Parameters
    ----------
    kernel : str or ParametricKernel, default="product_rbf"
    regularizer : str or Penalty, default="l1"
        "l1", "l2", "power", "log_det", or an object of `kernelweave.solvers.kernel_gradient`.
    C : float, default=1.0
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive" or "huber"; objects such as ``EpsInsensitive(eps=0.01)``.
    constraint, n_features_to_select, solver, n_init, check_gradient, tol, max_iter, fit_intercept, \
memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `GMKLClassifier`.

    Attributes
    ----------
    model_, weights_, kernel_names_, kernel_, feature_importances_, ranking_, objective_, stationarity_, \
n_iter_, n_resumed_, history_, dual_coef_, intercept_, support_, n_features_in_, feature_names_in_
        As in `GMKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> reg = kw.GMKLRegressor().fit(X, np.sin(X[:, 1]) + X[:, 3] ** 2)
    >>> reg.get_support(indices=True)
    array([1, 3])
    """

    def __init__(
        self,
        kernel: Any = "product_rbf",
        *,
        regularizer: Any = "l1",
        C: float = 1.0,
        loss: Any = "squared",
        constraint: Any = None,
        n_features_to_select: int | None = None,
        solver: str = "lbfgsb",
        n_init: int = 1,
        check_gradient: bool = False,
        tol: float = 1e-4,
        max_iter: int = 500,
        fit_intercept: bool = True,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.regularizer = regularizer
        self.C = C
        self.loss = loss
        self.constraint = constraint
        self.n_features_to_select = n_features_to_select
        self.solver = solver
        self.n_init = n_init
        self.check_gradient = check_gradient
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    _fitted: ClassVar[dict[str, type]] = {"_flat": bool}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel parameters and regression function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            float32 stays float32.
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        loss = self._check_parameters(("regression",))
        values, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, values)
        used = weight > 0
        Y = y[used].reshape(int(used.sum()), -1).astype(np.float64)
        problem = Problem(Y, loss, self.C * weight[used][:, None], self.fit_intercept)
        data = self._data(X, values, weight)._replace(unit=self._variance(Y, weight[used]))
        self._fit_problems(data, {"fit": problem}, weight)
        self._flat = y.ndim == 1
        return self

    def _variance(self, Y: FloatArray, weight: FloatArray) -> float:
        """v of the class docstring; 1 for targets that are constant but for rounding."""
        off = Y - np.average(Y, axis=0, weights=weight) * self.fit_intercept
        variance, size = (float(np.average(part**2, axis=0, weights=weight).mean()) for part in (off, Y))
        return variance if variance > (8.0 * np.finfo(np.float64).eps) ** 2 * size else 1.0

    @follows_input
    def predict(self, X: Any) -> FloatArray:
        """Predictions for new samples, shape (n,) or (n, n_outputs) as the training targets."""
        values = self._decision(X)
        return values[:, 0] if self._flat else values


def _predictor(data: Data, solutions: list[Result]) -> Predictor:
    """The functions of the models, each with its own parameters of the kernel."""
    states = [solution.state for solution in solutions]
    source = ParametricSource(data.kernel, np.array([state.d for state in states]), data.X)
    models = np.repeat(np.arange(len(states)), [state.alpha.shape[1] for state in states])
    weights = [source.weight(m) * (models == m // len(source.names)) for m in range(source.n_kernels)]
    rule = resolve_normalization(None)
    terms = [KernelTerm(m, rule, own) for m, own in enumerate(weights) if own.any()]
    alpha = np.hstack([state.alpha for state in states])
    return Predictor.of(source, terms, alpha, np.concatenate([state.intercept for state in states]))


def _margins(data: Data, solution: Result, problem: Problem) -> FloatArray:
    """Leave-one-out predictions on the training samples, the parameters held."""
    state = solution.state
    K, f = data.kernel(data.X, d=state.d), state.fitted + state.intercept
    if np.ptp(K) <= 1e-8 * max(abs(float(K.min())), abs(float(K.max()))):
        return f  # a constant kernel: the intercept alone decides
    columns = range(problem.shape[1])
    margins = np.column_stack(
        [leave_one_out(K, problem.column(k), state.alpha[:, k], f[:, k]) for k in columns]
    )
    return np.where(np.isfinite(margins), margins, f)
