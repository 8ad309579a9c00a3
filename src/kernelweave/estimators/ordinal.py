"""Classes with an order, with many kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from .._typing import FloatArray
from .._words import listed
from ..kernels import as_views
from ..losses import LOSSES, Loss
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import Spec, all_or_nothing, follows_input
from ._input import check_weights, per_sample
from ._labels import encode_labels
from ._mkl import BaseMKL, Setup, SubProblem
from ._training import with_callbacks


def _has_likelihood(model: Any) -> bool:
    return hasattr(LOSSES.resolve(model.loss, Loss), "probability")


class MKLOrdinalClassifier(ClassifierMixin, BaseMKL):  # type: ignore[misc]  # scikit-learn has no types
    """Multiple kernel learning for classes with an order, such as stages or grades.

    Learns one function f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b, thresholds b_k between the classes,
    and the kernel weights d:

        min_{f_m, b, d >= 0}  C sum_i sum_k v(s_ik (f(x_i) - b_k)) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    with s_ik = +1 where sample i is above threshold k, else -1. The class predicted is the one between whose
    thresholds f lies. A mistake costs more the further it is off, and unlike one function per class, a single
    function cannot call a sample both low and high. Rennie & Srebro (2005), Chu & Keerthi (2007).

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    loss : str or Loss, default="ordinal_hinge"
        "ordinal_hinge", or "ordinal_logistic", which has probabilities.
    order : sequence, optional
        The classes from the lowest to the highest; sorted by default.
    regularizer, C, normalize, missing, solver, gram, approximation, rank, tol, max_iter, memory_limit, \
device, n_jobs, random_state, checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        From the lowest to the highest.
    thresholds_ : ndarray of shape (n_classes - 1,)
        In ascending order; their mean is 0, as f has an intercept.
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, coef_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, patterns_, observed_, n_features_in_, feature_names_in_
        As in `MKLClassifier`; ``model_(X)`` are the values of f.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 2))
    >>> grades = np.array(["low", "middle", "high"])
    >>> y = grades[np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])]
    >>> model = kw.MKLOrdinalClassifier([Linear(), RBF()], order=list(grades)).fit(X, y)
    >>> model.predict(X[:3]).tolist(), model.score(X, y) > 0.7
    (['middle', 'middle', 'low'], True)
    >>> bool(np.all(np.diff(model.thresholds_) > 0))
    True
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "ordinal_hinge",
        order: Sequence[Any] | None = None,
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
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.order = order
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
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    _tasks = ("ordinal",)

    _fitted: ClassVar[dict[str, type]] = {"classes_": np.ndarray, "thresholds_": np.ndarray}

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights, the function and the thresholds.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        setup = self._setup(X, y, sample_weight)
        [model] = self._fit_problems(setup)
        loss, state = setup.spec.loss, model.solution.state
        found = loss.thresholds(setup.labels, state.fitted[:, 0], setup.weight[setup.weight > 0])
        middle = float(found.mean())
        self.thresholds_ = found - middle
        self.model_.intercepts = self.model_.intercepts - middle
        self.intercept_ -= middle
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problem to solve."""
        spec = Spec.of(self)
        table, y = self._validate(X, y)
        weight = check_weights(sample_weight, table)
        classes, labels = encode_labels(y, weight)
        self.classes_, place = self._ordered(classes)
        codes = place[labels].astype(np.float64)
        problem = Problem.weighted(codes[:, None], spec.loss, self.C, weight[weight > 0])
        return Setup(spec, table, weight, [SubProblem("fit", problem)], codes)

    def _ordered(self, classes: Any) -> tuple[Any, Any]:
        """The classes in their order, and the place of each there."""
        if self.order is None:
            return classes, np.arange(len(classes))
        order = np.asarray(self.order)
        unknown = [label for label in classes.tolist() if label not in order.tolist()]
        if unknown or len(set(order.tolist())) < len(order):
            wrong = f"lacks {listed(map(repr, unknown))}" if unknown else "names a class twice"
            raise ValueError(f"order={self.order!r} {wrong}: name every class of y once, from the lowest on.")
        kept = order[np.isin(order, classes)]
        return kept, np.array([kept.tolist().index(label) for label in classes.tolist()])

    @follows_input
    def predict(self, X: Any) -> Any:
        """Class labels of new samples: the median of the probabilities, where the loss has some."""
        f = self._decision(X)
        return self.classes_[(f > self.thresholds_).sum(axis=1)]

    @follows_input
    def decision_function(self, X: Any) -> FloatArray:
        """How far f is inside the thresholds of a class, (n, n_classes); for two classes f itself, (n,).

        min(f - b_(k-1), b_k - f): positive only for the class predicted.
        """
        f = self._decision(X)
        if len(self.classes_) == 2:
            return f[:, 0]
        ends = np.concatenate([[-np.inf], self.thresholds_, [np.inf]])
        result: FloatArray = np.minimum(f - ends[:-1], ends[1:] - f)
        return result

    @available_if(_has_likelihood)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @follows_input
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, n_classes): differences of P(y > class k) = p(f - b_k)."""
        loss: Any = LOSSES.resolve(self.loss, Loss)
        f = self._decision(X)
        above = np.hstack([np.ones_like(f), loss.probability(f - self.thresholds_), np.zeros_like(f)])
        return np.maximum(-np.diff(above, axis=1), 0.0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        """
        X, given = per_sample(as_views(X, y), {"y": y, "sample_weight": sample_weight})
        return float(super().score(X, **given))
