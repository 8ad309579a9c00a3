"""Classification with many kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import _ovr_decision_function

from .._typing import FloatArray, IntArray
from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import BaseMKL, Model, Setup, Task, all_or_nothing, check_weights, follows_input
from ._calibration import fit_sigmoid, fit_temperature
from ._labels import class_factors, encode_labels
from ._progress import with_callbacks


@dataclass(frozen=True)
class Link:
    """A function from decision values to probabilities, with its parameters."""

    function: Callable[..., FloatArray]
    parameters: Any = None

    def __call__(self, values: FloatArray) -> FloatArray:
        return self.function(values) if self.parameters is None else self.function(values, self.parameters)


def sigmoid_link(values: FloatArray, slope_shift: FloatArray) -> FloatArray:
    """1 / (1 + exp(-(slope f + shift))), column by column."""
    return expit(slope_shift[0] * values + slope_shift[1])


def softmax_link(values: FloatArray, temperature: float) -> FloatArray:
    """softmax(t f) over the columns."""
    return softmax(temperature * values, axis=1)


def pairwise_scores(positive: FloatArray, n_classes: int) -> FloatArray:
    """Sum over pairs of the probability each class has in them; columns are pairs (i, j), i < j."""
    scores = np.zeros((len(positive), n_classes))
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        scores[:, i] += 1.0 - positive[:, column]
        scores[:, j] += positive[:, column]
    return scores


def _normalised(scores: FloatArray) -> FloatArray:
    scores = np.maximum(scores, 1e-300)
    return scores / scores.sum(axis=1, keepdims=True)


def _part(weight: FloatArray, task: Task) -> FloatArray:
    return weight if task.rows is None else weight[task.rows]


SCHEMES = {"ovr": "one-vs-rest", "ovo": "one-vs-one", "shared": "shared"}


class MKLClassifier(ClassifierMixin, BaseMKL):
    """Multiple kernel learning for classification.

    Learns f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b together with the kernel weights d:

        min_{f_m, b, d >= 0}  C sum_i V(y_i, f(x_i)) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    with any loss V and any weight regulariser h, to a certified duality gap (Kloft et al. 2011;
    Tomioka & Suzuki 2011).

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        Kernels with learned weights: a list of kernels; a dict name -> kernel; (name, kernel,
        columns) triples; a family such as ``kernels.per_feature()``; "auto" for a default
        dictionary; "precomputed" when `X` holds Gram matrices of shape (n, n, M), a
        `KernelStack`, or a list of matrices.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "logistic", or a regression loss on labels -1 and +1: "squared",
        "eps_insensitive", "huber".
    regularizer : str or Regularizer, default="lp"
        Convex: "lp" (p = 2), "uniform" (all weights 1), "block", "mahalanobis", and for sparse weights
        "elasticnet", "wedge"; concave terms, whose optimum is a local one: "log", "smkl", "mfocuss",
        "group_lasso", "mkl"; or an object such as ``LpNorm(p=1)``.
    C : float, default=1.0
        Cost of errors; larger fits the training data more closely.
    normalize : {"variance", "spherical", "trace", "center"} or None, default="variance"
        How kernels are made comparable, with constants of the training samples.
    multiclass : {"ovr", "ovo", "shared"}, default="ovr"
        More than two classes: one model a class, one a pair of classes, or one a class with
        kernel weights shared by all. The Gram matrices are computed once in every case.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" lets all classes weigh the same, samples counted by their weights.
    solver : str or MKLSolver, default="auto"
        "auto" by the regulariser; "newton", "alternating", "joint_ascent", "majorize_minimize" or
        "interleaved", each for some regularisers (see `kernelweave.solvers.multiple`), or an object.
    gram : {"auto", "dense", "packed", "cached", "store", "blocked", "dask"}, default="auto"
        Where the Gram matrices live: all in memory, as triangles, as rows computed when asked for
        and kept in a cache, or nowhere, computed anew block by block. "auto" takes the first of
        these that `memory_limit` allows. "store" reads the matrices of a `GramStore` in its file. "dask"
        spreads the kernels over the workers of the current Dask client, each of which holds its own or
        computes them anew as its memory allows. With `approximation` the rows are spread instead.
    approximation : {"nystroem", "rff"}, Approximation or None, default=None
        Features in place of Gram matrices, for fits whose cost is linear in n: landmarks, or random
        frequencies for Gaussian and Laplacian kernels; an object such as
        ``Nystroem(landmarks="kmeans")``. A kernel with no more than `rank` features of its own (linear,
        polynomial) has these, exactly.
    rank : int, default=100
        Most features a kernel under `approximation`.
    tol : float, default=1e-3
        Relative duality gap at which the fit has converged.
    max_iter : int, default=200
        Most single-kernel machines to train.
    fit_intercept : bool, default=True
    memory_limit : int or str, optional
        Bytes the Gram matrices and their sum may take, such as "2GB"; by default a share of the
        memory that is free.
    device : str, optional
        "cuda" (or "cuda:1", ...) to fit and predict on a GPU through torch, "torch:cpu" for the same
        code on the CPU; by default where the data are: NumPy, or the device of a tensor or CuPy array.
    n_jobs : int, optional
        Threads over the models of a multiclass fit.
    random_state : int or RandomState, optional
        Seed of the landmarks or frequencies of `approximation`; without it nothing is random.
    checkpoint : str or path-like, optional
        A file that the state of the fit is written to, again and again; a fit that finds it there goes
        on from it, and one that had converged returns at once. `tol`, `solver`, `max_iter` (which counts
        all machines) and `gram` may differ from before; a checkpoint of another problem is refused.
    verbose : int, default=0
        1 prints a line a model, 2 a line a machine.

    Attributes
    ----------
    weights_ : ndarray of shape (M,) or (n_models, M)
        Learned kernel weights, of the normalised kernels.
    kernel_names_ : list of str
    norms_ : ndarray of the shape of `weights_`
        RKHS norms ||f_m|| of the components: how much each kernel contributes.
    dual_coef_ : ndarray of shape (n,) or (n_functions, n)
        Signed dual variables alpha of the training samples.
    intercept_ : float or ndarray
    coef_ : ndarray of shape (n_functions, n_features)
        Where every kernel with weight is linear (`Linear` on any columns, sums and multiples of it, and
        `normalize` is not "spherical"): decision values (of one-vs-one, those of the pairs) are
        ``X @ coef_.T + intercept_``. Other models have no such attribute.
    support_ : ndarray of int
        Training samples with a non-zero dual variable.
    classes_ : ndarray
    objective_, dual_gap_ : float or ndarray of shape (n_models,)
        Primal objective, and certified relative duality gap; that is infinite where the regulariser is
        not convex.
    stationarity_ : float or ndarray of shape (n_models,)
        What `tol` bounds: the relative duality gap, or for a regulariser that is not convex the largest
        share by which a weight differs from the one that the component norms ask for (at least the
        duality gap of the machine at these weights); zero at a stationary point.
    n_iter_ : int or ndarray
        Machines trained.
    n_resumed_ : int or ndarray
        Those of `n_iter_` that were trained before and read from the checkpoint.
    history_ : dict or list of dict
        Objective values and gap after every machine.
    gram_, gram_reason_ : str
        The Gram engine used, and why.
    approximation_errors_ : ndarray of shape (M,)
        With `approximation`: the share of the trace of each kernel that its features miss; for random
        frequencies the relative error on some of the samples.
    full_rank_gap_ : float or ndarray of shape (n_models,)
        With `approximation`: a bound on the relative duality gap of the problem with the kernels
        themselves; NaN for random frequencies.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier({"linear": Linear(), "rbf": RBF()}, C=10.0).fit(X, y == 1)
    >>> clf.dual_gap_ <= 1e-3
    True
    >>> round(float((clf.weights_**2).sum()), 6)
    1.0
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "hinge",
        regularizer: str | Regularizer = "lp",
        C: float = 1.0,
        normalize: str | None = "variance",
        multiclass: str = "ovr",
        class_weight: dict[Any, float] | str | None = None,
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
        self.multiclass = multiclass
        self.class_weight = class_weight
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
        """Learn kernel weights and classifier.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, n_features), or kernels
            With `approximation` also a Dask array or data frame, or a `ParquetTable`: of these, and of
            arrays mapped from disk, kernels take their parameters from at most 100,000 rows.
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        setup = self._setup(X, y, sample_weight)
        loss = setup.tasks[0].problem.loss
        models = self._fit_tasks(setup, margins=not hasattr(loss, "probability"))
        self._link = self._fit_link(loss, models, setup)
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problems to solve."""
        self._check_parameters()
        if self.multiclass not in SCHEMES:
            raise ValueError(
                f"multiclass={self.multiclass!r}: expected one of {', '.join(map(repr, SCHEMES))}."
            )
        loss = self._resolve_loss(("classification", "regression"))
        table, y = self._validate(X, y)
        weight = check_weights(sample_weight, table)
        used = weight > 0
        self.classes_, labels = encode_labels(y, weight)
        self._pairwise = self.multiclass == "ovo" and len(self.classes_) > 2
        factors = class_factors(self.class_weight, self.classes_, labels, weight[used])
        C = self.C * weight[used] * factors[labels]
        return Setup(table, weight, self._tasks(labels, C, loss), labels)

    @follows_input
    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance to the decision boundary: (n,) for two classes, (n, n_classes) for more."""
        return self._class_values(self._decision(X))

    def _class_values(self, values: FloatArray) -> FloatArray:
        """Decision values of the classes from those of the functions learned."""
        if len(self.classes_) == 2:
            return values[:, 0]
        if self._pairwise:
            return _ovr_decision_function(values > 0, values, len(self.classes_))
        return values

    @follows_input
    def predict(self, X: Any) -> Any:
        """Class labels of new samples."""
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]

    @follows_input
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, n_classes), columns in the order of `classes_`.

        A loss that is a likelihood gives them itself, normalised over the classes. For the others
        one temperature (Guo et al. 2017) is fitted to leave-one-out margins of the training
        samples, so that the likeliest class is the predicted one. One-vs-one fits a sigmoid a
        pair (Platt 2000) and sums the pairwise probabilities of each class.
        """
        values = self._decision(X)
        if self._pairwise:
            return _normalised(pairwise_scores(self._link(values), len(self.classes_)))
        if len(self.classes_) > 2:
            return _normalised(self._link(values))
        positive = self._link(values)[:, 0]
        return np.column_stack([1.0 - positive, positive])

    @follows_input
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    def _fit_link(self, loss: Loss, models: list[Model], setup: Setup) -> Link:
        """The map from decision values to (unnormalised) probabilities."""
        tasks, labels, weight = setup.tasks, setup.labels, setup.weight[setup.weight > 0]
        if hasattr(loss, "probability"):
            return Link(loss.probability)
        if len(self.classes_) > 2 and not self._pairwise:
            margins = np.hstack([model.margins for model in models])
            return Link(softmax_link, fit_temperature(margins, labels, weight))
        if len(self.classes_) == 2:
            # no shift: the likelier class is the predicted one
            margins = np.hstack([-models[0].margins, models[0].margins])
            slope = 2.0 * fit_temperature(margins, labels, weight)
            return Link(sigmoid_link, np.array([[slope], [0.0]]))
        pairs = zip(models, tasks, strict=True)
        links = [
            fit_sigmoid(model.margins[:, 0], task.problem.y[:, 0], _part(weight, task))
            for model, task in pairs
        ]
        return Link(sigmoid_link, np.array(links).T)

    def _tasks(self, labels: IntArray, C: FloatArray, loss: Loss) -> list[Task]:
        """The binary problems (or the joint one) that make up the classes."""
        names, K = [str(name) for name in self.classes_], len(self.classes_)

        def problem(Y: FloatArray, cost: FloatArray) -> Problem:
            return Problem(np.where(Y, 1.0, -1.0), loss, cost[:, None], self.fit_intercept)

        if K == 2:
            return [Task("fit", problem(labels[:, None] == 1, C))]
        if self.multiclass == "shared":
            return [Task("all classes", problem(labels[:, None] == np.arange(K), C))]
        if self.multiclass == "ovr":
            return [Task(f"{names[k]} vs rest", problem(labels[:, None] == k, C)) for k in range(K)]
        tasks = []
        for i, j in combinations(range(K), 2):
            rows = np.flatnonzero((labels == i) | (labels == j))
            tasks.append(Task(f"{names[j]} vs {names[i]}", problem(labels[rows, None] == j, C[rows]), rows))
        return tasks
