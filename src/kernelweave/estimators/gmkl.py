"""Generalized multiple kernel learning: estimators that learn the parameters of one kernel."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._linalg import blas_threads_for
from .._registry import Registry
from .._typing import BoolArray, FloatArray
from .._warnings import warn
from ..gram import ParametricSource, Predictor
from ..gram.terms import KernelTerm
from ..kernels import resolve_normalization
from ..kernels.columns import is_frame
from ..kernels.faults import refuse_dates
from ..kernels.parametric import PARAMETRIC_KERNELS, ParametricKernel
from ..losses import LOSSES, Loss
from ..solvers import Problem, leave_one_out
from ..solvers.checkpoint import Keeper
from ..solvers.kernel_gradient import PENALTIES, KernelGradient, Penalty, check_gradient
from ..solvers.kernel_gradient.torch_kernel import on_device
from ..solvers.run import Result
from ._base import BaseLearner, Spec, all_or_nothing, one_or_all
from ._input import NO_TARGET, check_choice, check_positive, check_table, check_weights, explained, one_table
from ._labels import ClassLabels, RealTargets, class_problems, fit_link, link_of, sample_factors
from ._training import ModelProgress, Training, with_callbacks
from .one_class import NoveltyDetection

#: a weight below this share of the largest is not counted as selecting its feature
NEGLIGIBLE = 1e-6


class KernelData(NamedTuple):
    """Training samples of positive weight, and the kernel fitted on them."""

    kernel: ParametricKernel
    X: FloatArray
    free: BoolArray  # parameters that the data can inform
    unit: float = 1.0  # what r is multiplied with


class BaseGMKL(SelectorMixin, BaseLearner):  # type: ignore[misc]  # scikit-learn has no types
    """Parameters and machinery of the generalized MKL estimators; see the subclasses."""

    n_features_to_select: int | None

    #: whether C may be None
    _optional_cost = False

    #: what to do about a kernel that is constant
    _when_constant = "increase C, or weaken the regularizer"

    _parts: ClassVar[dict[str, tuple[Registry, type]]] = {
        "regularizer": (PENALTIES, Penalty),
        "loss": (LOSSES, Loss),
    }

    # -- validation ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.C is not None or not self._optional_cost:
            check_positive("C", self.C)

    def _checked_data(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        """The samples as an array of finite floats."""
        X = one_table(X, y)
        check_table(X)
        refuse_dates(X)
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_samples": 2 if reset else 1}
        with explained(X):
            valid = validate_data(self, X, y, reset=reset, **options, **y_options)
        return (valid, y) if y is NO_TARGET else valid

    def _data(self, spec: Spec, X: Any, values: FloatArray, weight: FloatArray) -> KernelData:
        """Fit the kernel on the samples of positive weight, unless there is no room for its matrix."""
        used = np.flatnonzero(weight)
        needed = 3 * len(used) ** 2 * values.itemsize  # K, the one before, and a copy while training
        if spec.limit is not None and needed > spec.limit:
            raise MemoryError(
                f"{len(used)} samples need {needed / 1e9:.2f} GB, memory_limit allows "
                f"{spec.limit / 1e9:.2f} GB: raise it, use fewer samples, or pass X as float32."
            )
        kernel = clone(PARAMETRIC_KERNELS.resolve(self.kernel, ParametricKernel, "kernel"))
        # column names are in the user's table
        kernel.fit(X if is_frame(X) else values, sample_weight=weight)
        free = kernel._sizes() > 0
        if not free.any():
            raise ValueError(
                f"no parameter of {type(kernel).__name__} can be learned: every column it sees is constant."
            )
        if not free.all():
            names = ", ".join(np.array(kernel.names_)[~free][:10])
            warn(f"constant columns get weight 0: {names}.")
        return KernelData(kernel, values[used], free)

    # -- fitting ------------------------------------------------------------------------------

    def _fit_kernel(
        self, spec: Spec, data: KernelData, problems: list[tuple[str, Problem]], weight: FloatArray
    ) -> list[Result]:
        """Learn the parameters of every problem, select features if asked to, and store the models."""
        if self.check_gradient:
            check_gradient(data.kernel, data.X, penalty=spec.regularizer)
        features = data.kernel.feature_map(data.X)
        count = self._n_features(features)
        told = {
            "models": [title for title, _ in problems],
            "kernel": data.kernel,
            "regularizer": spec.regularizer,
            "loss": spec.loss,
            "targets": tuple(problem.y for _, problem in problems),
            "C or weights of the samples": tuple(cost for _, problem in problems for cost in problem.costs),
            "X": (data.X,),
        }
        names = ("constraint", "fit_intercept", "n_features_to_select", "n_init", "random_state")
        training = Training(self, len(problems) * (1 if count is None else 2), told, names)
        train = partial(self._train, spec)
        with blas_threads_for(len(data.X)):
            solutions = training.models(train, data, problems, stage="all")
            importances = np.mean([np.abs(solution.state.d) for solution in solutions], axis=0) @ features
            order = np.argsort(-importances, kind="stable")
            self._mask = importances > NEGLIGIBLE * importances.max(initial=0.0)
            if count is not None:
                kept = ~features.any(axis=1) | features[:, order[:count]].any(axis=1)
                best = data._replace(free=data.free & kept)
                solutions = training.models(train, best, problems, stage="selected")
                self._mask = features[kept].any(axis=0)
        self.ranking_ = np.empty(len(order), dtype=int)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self._features = features
        self._store(data, solutions, weight)
        training.end(all(solution.converged for solution in solutions))
        return solutions

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

    def _train(
        self, spec: Spec, data: KernelData, problem: Problem, report: ModelProgress, keeper: Keeper
    ) -> Result:
        solution = KernelGradient(self.solver, self.n_init, random_state=self.random_state).solve(
            problem,
            on_device(data.kernel, spec.device),
            data.X,
            spec.regularizer,
            self.constraint,
            self.tol,
            self.max_iter,
            report,
            data.free,
            keeper,
            data.unit,
        )
        report.done(solution)
        return solution

    def _told(self, state: Any) -> str:
        active = np.count_nonzero(state.d)
        return f"objective {state.objective:.6g}, residual {state.residual:.2g}, {active} parameters"

    def _store(self, data: KernelData, solutions: list[Result], weight: FloatArray) -> None:
        """Set the fitted attributes."""
        weights = np.array([solution.state.d for solution in solutions])
        # a constant kernel is approached, not reached
        if all((np.abs(solution.state.u) <= 10.0 * self.tol).all() for solution in solutions):
            warn(
                f"every parameter of {type(data.kernel).__name__} was driven to 0, so the model is constant: "
                f"{self._when_constant}.",
            )
        alpha = np.hstack([solution.state.alpha for solution in solutions])
        self.model_ = _predictor(data, solutions)
        self._store_results(list(data.kernel.names_), weights, alpha, weight, solutions)
        self.support_ = np.flatnonzero(np.atleast_2d(self.dual_coef_).any(axis=0))
        self.intercept_ = one_or_all(self.model_.intercept)
        self.objective_ = one_or_all(np.array([solution.state.objective for solution in solutions]))

    # -- selection ----------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """Absolute weight of every feature, the mean over the models; for `SelectFromModel`."""
        check_is_fitted(self)
        if not self._features.any():
            raise AttributeError(_NO_FEATURES)
        result: FloatArray = np.abs(np.atleast_2d(self.weights_)).mean(axis=0) @ self._features
        return result

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        if not self._features.any():
            raise ValueError(_NO_FEATURES)
        result: BoolArray = self._mask
        return result

    # -- prediction ---------------------------------------------------------------------------

    _fitted: ClassVar[dict[str, type]] = {"_mask": np.ndarray, "_features": np.ndarray}

    def _fits_together(self) -> bool:
        """Whether what a file says of a fit is consistent."""
        source, shape = self.model_.source, np.atleast_2d(self.weights_).shape
        return isinstance(source, ParametricSource) and source.parameters.shape == shape

    @property
    def kernel_(self) -> ParametricKernel:
        """The fitted kernel."""
        result: ParametricKernel = self.model_.source.kernel  # type: ignore[attr-defined]
        return result


_NO_FEATURES = (
    "the parameters of this kernel are not weights of features, so it selects none: use ProductRBF, "
    "GroupProductRBF, ProjectedRBF or PowerSum."
)


class GMKLClassifier(ClassLabels, BaseGMKL):
    """Generalized multiple kernel learning for classification, and a feature selector.

    Learns f(x) = sum_i alpha_i k_d(x, x_i) + b together with the parameters d of one kernel:

        min_{w, b, d >= 0}  1/2 w'w + C sum_i V(y_i, f(x_i)) + r(d)

    for any differentiable k_d and r; for kernels that allow it, d may have either sign. The default, a
    product of one Gaussian per feature with an l1 penalty, is nonlinear feature selection: `weights_` has one
    weight per feature, many of them zero.
    The problem is not convex; the objective falls at every step to a stationary point. Standardise
    the data: r(d) depends on the units of the features. Varma & Babu (2009).

    Parameters
    ----------
    kernel : str or ParametricKernel, default="product_rbf"
        "product_rbf", "power_sum", "exp_sum", "projected_rbf", "metric_rbf" (the last two with parameters of
        either sign), or an object such as ``GroupProductRBF(groups)``.
    regularizer : str or Penalty, default="l1"
        r: "l1", "l2", "prior", "power", or an object of `kernelweave.solvers.kernel_gradient` such as
        ``L1(0.1) + L2(mean=1.0)``.
    C : float, default=1.0
        Cost of errors. To select features, the paper takes a large C.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "logistic", or a regression loss on labels -1 and +1: "squared",
        "eps_insensitive", "huber".
    constraint : Box, callable or None, default=None
        Where d may lie: a `Box`, or a function that projects d onto a convex set; by default the domain of
        the kernel, d >= 0 for most.
    n_features_to_select : int, optional
        Learn with all features, rank them by weight, learn again with the best (the paper's
        protocol). By default `transform` keeps the features whose weight is not zero.
    multiclass : {"ovr", "shared"}, default="ovr"
        More than two classes: one model per class with its own parameters, or parameters shared by all.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" lets all classes weigh the same, samples counted by their weights.
    solver : {"auto", "lbfgsb", "spectral"}, default="auto"
        See `KernelGradient`; "lbfgsb" takes only boxes.
    n_init : int, default=1
        Starts; the lowest objective wins.
    check_gradient : bool, default=False
        Compare the gradients of kernel and regulariser with finite differences before fitting, and
        name the components that are wrong.
    tol : float, default=1e-4
        Projected-gradient residual, relative to the objective, at which the fit has converged.
    max_iter : int, default=500
        Largest number of steps per start.
    fit_intercept : bool, default=True
    memory_limit : int or str, optional
        Bytes the kernel matrices may take, such as "2GB"; more is refused. float32 data halve them.
    device : str, optional
        "cuda" (or "cuda:1", ...) to fit and predict on a GPU through torch, "torch:cpu" for the same
        code on the CPU; by default where the data are: NumPy, or the device of a tensor or CuPy array.
    n_jobs : int, optional
        Threads over the models of a multiclass fit.
    random_state : int, RandomState or None, default=None
        Seed of the starts after the first.
    checkpoint : str or path-like, optional
        As in `MKLClassifier`; the parameters of every start are kept, but not the estimate of the curvature,
        so a resumed fit may take a few steps more.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_parameters,) or (n_classes, n_parameters)
        The parameters d.
    kernel_names_ : list of str
        One name per parameter: the feature, group or kernel it belongs to.
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
        solver: str = "auto",
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
        X : array-like, DataFrame or Views of shape (n, n_features), or dict of tables
            float32 stays float32.
        y : array-like of shape (n,), or (n, n_labels)
            Class labels of any type; or, where samples may have several, a matrix of 0 and 1 with one column
            per label.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec, X = Spec.of(self), one_table(X, y)
        check_choice("multiclass", self.multiclass, ("ovr", "shared"))
        values, _, weight, labels = self._labelled(X, y, sample_weight)
        used = weight[weight > 0]
        data = self._data(spec, X, values, weight)
        C = self.C * (used * sample_factors(self.class_weight, self.classes_, labels, used).T).T
        parts = class_problems(self.multiclass, self.classes_, labels, C, spec.loss, self.fit_intercept)
        problems = [(part.title, part.problem) for part in parts]
        solutions = self._fit_kernel(spec, data, problems, weight)
        X = np.array(data.X)  # whatever becomes of the caller's
        margins = [
            partial(_margins, data.kernel, X, solution.state, problem)
            for solution, (_, problem) in zip(solutions, problems, strict=True)
        ]
        self.model_.link = link_of(spec.loss, fit_link, margins, labels, used)
        return self


class GMKLRegressor(RealTargets, BaseGMKL):
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
        "l1", "l2", "prior", "power", "log_det", or an object of `kernelweave.solvers.kernel_gradient`.
    C : float, default=1.0
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive" or "huber"; objects such as ``EpsInsensitive(eps=0.01)``. "ranking" puts
        samples in the order of y (`losses.Ranking`), within queries where these are a second column of y;
        then v = 1, and `score` is the share of pairs in the right order.
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
        solver: str = "auto",
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

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel parameters and regression function.

        Parameters
        ----------
        X : array-like, DataFrame or Views of shape (n, n_features), or dict of tables
            float32 stays float32.
        y : array-like of shape (n,) or (n, n_outputs)
            For a ranking loss: targets, or targets and queries.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec, X = Spec.of(self), one_table(X, y)
        values, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, values)
        used, Y = weight[weight > 0], spec.loss.targets(self._targets(y, weight))
        self._flat = self._flat or Y.ndim == 3
        problem = Problem.weighted(Y, spec.loss, self.C, used, self.fit_intercept)
        data = self._data(spec, X, values, weight)
        if spec.loss.task == "regression":  # an order has no units
            data = data._replace(unit=self._variance(Y, used))
        self._fit_kernel(spec, data, [("fit", problem)], weight)
        return self

    _tasks = ("regression", "ranking")

    def _variance(self, Y: FloatArray, weight: FloatArray) -> float:
        """v of the class docstring; 1 for targets that are constant but for rounding."""
        off = Y - np.average(Y, axis=0, weights=weight) * self.fit_intercept
        variance, size = (float(np.average(part**2, axis=0, weights=weight).mean()) for part in (off, Y))
        return variance if variance > (8.0 * np.finfo(np.float64).eps) ** 2 * size else 1.0


class GMKLOneClass(NoveltyDetection, BaseGMKL):
    """Generalized multiple kernel learning for novelty detection.

    Learns the region where most training samples lie, f(x) = w'phi_d(x) - rho >= 0, together with the
    parameters d of one kernel:

        min_{w, rho, d >= 0}  1/2 w'w + C sum_i max(0, -f(x_i)) - rho + r(d)

    At the optimum of w and rho the objective is r(d) less half of min alpha' K_d alpha over
    0 <= alpha <= C, sum(alpha) = 1. It prefers kernels to which the samples look alike, the constant kernel
    above all, so r has to keep the kernel from becoming too wide: by default the weights stay near those of a
    Gaussian of usual width (`Prior`), and shrink in the directions in which the samples spread most. A
    constraint such as a fixed sum of the weights does it as well. At fixed d it is the one-class SVM
    (Schoelkopf et al. 2001), C = 1 / (nu n). Varma & Babu (2009), section 3.

    Parameters
    ----------
    kernel : str or ParametricKernel, default="product_rbf"
    regularizer : str or Penalty, default="prior"
        "l1", "l2", "prior", "power", "log_det", or an object of `kernelweave.solvers.kernel_gradient`.
    nu : float, default=0.5
        Bound on the share of training samples left outside, in (0, 1].
    C : float, optional
        Cost of leaving a sample outside; overrides `nu` when given. At least 1 / n.
    loss : str or Loss, default="one_class"
    constraint, n_features_to_select, solver, n_init, check_gradient, tol, max_iter, memory_limit, device, \
n_jobs, random_state, checkpoint, verbose
        As in `GMKLClassifier`.

    Attributes
    ----------
    offset_ : float
        rho: decision_function = score_samples - offset_.
    model_, weights_, kernel_names_, kernel_, feature_importances_, ranking_, objective_, stationarity_, \
n_iter_, n_resumed_, history_, dual_coef_, intercept_, support_, n_features_in_, feature_names_in_
        As in `GMKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> X = load_iris().data[:50]
    >>> detector = kw.GMKLOneClass(nu=0.1).fit(X)
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [9.0, 9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: Any = "product_rbf",
        *,
        regularizer: Any = "prior",
        nu: float = 0.5,
        C: float | None = None,
        loss: Any = "one_class",
        constraint: Any = None,
        n_features_to_select: int | None = None,
        solver: str = "auto",
        n_init: int = 1,
        check_gradient: bool = False,
        tol: float = 1e-4,
        max_iter: int = 500,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.regularizer = regularizer
        self.nu = nu
        self.C = C
        self.loss = loss
        self.constraint = constraint
        self.n_features_to_select = n_features_to_select
        self.solver = solver
        self.n_init = n_init
        self.check_gradient = check_gradient
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    _when_constant = "strengthen what holds them near their start, such as Prior, or pass a constraint"

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel parameters and the region of the training samples.

        Parameters
        ----------
        X : array-like, DataFrame or Views of shape (n, n_features), or dict of tables
            float32 stays float32.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec, X = Spec.of(self), one_table(X)
        values, _ = self._validate(X)
        weight = check_weights(sample_weight, values)
        costs = self._costs(weight)
        problem = Problem(np.zeros_like(costs), spec.loss, costs)
        self._fit_kernel(spec, self._data(spec, X, values, weight), [("fit", problem)], weight)
        self.offset_ = -float(self.model_.intercept[0])
        return self


def _predictor(data: KernelData, solutions: list[Result]) -> Predictor:
    """The functions of the models, each with its own parameters of the kernel."""
    states = [solution.state for solution in solutions]
    source = ParametricSource(data.kernel, np.array([state.d for state in states]), data.X)
    models = np.repeat(np.arange(len(states)), [state.alpha.shape[1] for state in states])
    weights = [source.weight(m) * (models == m // len(source.names)) for m in range(source.n_kernels)]
    rule = resolve_normalization(None)
    terms = [KernelTerm(m, rule, own) for m, own in enumerate(weights) if own.any()]
    alpha = np.hstack([state.alpha for state in states])
    return Predictor.of(source, terms, alpha, np.concatenate([state.intercept for state in states]))


def _margins(kernel: ParametricKernel, X: FloatArray, state: Any, problem: Problem) -> FloatArray:
    """Leave-one-out predictions on the training samples, the parameters held."""
    K = kernel(X, d=state.d)
    f: FloatArray = state.fitted + state.intercept
    if np.ptp(K) <= 1e-8 * max(abs(float(K.min())), abs(float(K.max()))):
        return f  # a constant kernel: the intercept alone decides
    margins = leave_one_out(K, problem, state.alpha, f)
    return np.where(np.isfinite(margins), margins, f)
