"""Targets: how labels become problems, and how values become labels, probabilities and numbers again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax, ndtr, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets

from .._typing import FloatArray, IntArray
from .._words import listed
from ..gram import Predictor
from ..gram.predictor import Later
from ..kernels import as_views
from ..kernels.columns import column_names
from ..losses import LOSSES, Loss
from ..solvers import Problem
from ._base import follows_input
from ._input import check_weights, per_sample
from ._mkl import SubProblem


def encode_labels(y: Any, weight: FloatArray, names: Sequence[str] | None = None) -> tuple[Any, IntArray]:
    """The classes among the samples of positive weight, sorted, and the class of each such sample.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, n_labels)
    weight : ndarray of shape (n,)
        Sample weights, not negative.
    names : sequence of str, optional
        Those of the columns of y.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        With several labels per sample, their names, or numbers from 0.
    labels : ndarray of int, one for each sample of positive weight
        Positions in `classes`; with several labels per sample, a row of 0 and 1.

    Examples
    --------
    >>> encode_labels(np.array(["b", "a", "c", "b"]), np.array([1.0, 2.0, 0.0, 1.0]))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    >>> encode_labels(np.array([[0, 1], [1, 1], [1, 0]]), np.array([1.0, 1.0, 0.0]), ["old", "new"])[0]
    Traceback (most recent call last):
    ValueError: y has the label 'new' in all samples of positive weight: leave its column out of y.
    """
    check_classification_targets(y)
    if np.ndim(y) == 2:
        return _encode_indicators(y, weight, names)
    classes, labels = np.unique(y[weight > 0], return_inverse=True)
    if len(classes) < 2:
        where = "" if (weight > 0).all() else " among the samples of positive weight"
        raise ValueError(f"y has 1 class ({classes.tolist()[0]!r}){where}; a classifier needs at least two.")
    return classes, labels


def _encode_indicators(y: Any, weight: FloatArray, names: Sequence[str] | None) -> tuple[Any, IntArray]:
    """Names and 0/1 columns of several labels per sample."""
    odd = np.setdiff1d(np.unique(y), [0, 1])
    if len(odd):
        raise ValueError(
            f"y has {y.shape[1]} columns and holds {odd.tolist()[0]!r}: several labels per sample are a "
            "matrix of 0 and 1, one column per label; one class per sample is one column."
        )
    classes = np.arange(y.shape[1]) if names is None else np.array(names)
    labels = y[weight > 0].astype(int)
    for name, share in zip(classes.tolist(), labels.mean(axis=0), strict=True):
        if share in (0.0, 1.0):
            count = "all" if share else "none of the"
            raise ValueError(
                f"y has the label {name!r} in {count} samples of positive weight: leave its column out of y."
            )
    return classes, labels


def sample_factors(class_weight: Any, classes: Any, labels: IntArray, weight: FloatArray) -> FloatArray:
    """The factors of samples by their classes, shape (n,); of several labels (n, n_labels), by 0 and 1."""
    if labels.ndim == 1:
        return class_factors(class_weight, classes, labels, weight)[labels]
    if isinstance(class_weight, dict) and not class_weight.keys() <= {0, 1}:
        raise ValueError(
            f"class_weight={class_weight!r}: with several labels per sample its keys are 0 and 1, for "
            "samples without and with a label, and count for every label alike."
        )
    columns = [sample_factors(class_weight, np.arange(2), column, weight) for column in labels.T]
    return np.column_stack(columns)


def class_factors(class_weight: Any, classes: Any, labels: IntArray, weight: FloatArray) -> FloatArray:
    """The factor of every class, all positive.

    "balanced" is sum_i w_i / (n_classes sum_{i in class} w_i), so that all classes weigh the same and a
    sample of weight w counts as w equal samples; `LogisticRegression` and `LinearSVC` of scikit-learn
    have the same factors (`SVC` counts samples, whatever they weigh).

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    labels : ndarray of int of shape (n,)
    weight : ndarray of shape (n,)
        Positive.

    Examples
    --------
    >>> class_factors("balanced", np.array(["a", "b"]), np.array([0, 1, 1]), np.array([3.0, 1.0, 5.0]))
    array([1.5 , 0.75])
    """
    known = class_weight is None or isinstance(class_weight, dict)
    if not known and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ValueError(f"class_weight={class_weight!r}: expected 'balanced', a dict or None.")
    y = classes[labels]
    factors = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weight)
    if not ((factors > 0) & (factors < np.inf)).all():
        raise ValueError(
            f"class_weight={class_weight!r}: every factor must be a positive number; to leave a "
            "class out, leave out its samples."
        )
    return np.asarray(factors)


def class_targets(labels: IntArray, n_classes: int) -> FloatArray:
    """+1 for the class of a column and -1 for the others; one column, of the second class, for two classes.

    With several labels per sample, +1 where a sample has the label of the column.

    Examples
    --------
    >>> class_targets(np.array([0, 1]), 2)
    array([[-1.],
           [ 1.]])
    """
    if labels.ndim == 2:
        return np.where(labels > 0, 1.0, -1.0)
    positive = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(labels[:, None] == positive, 1.0, -1.0)


def class_problems(
    scheme: str, classes: Any, labels: IntArray, C: FloatArray, loss: Loss, fit_intercept: bool
) -> list[SubProblem]:
    """The problems that make up the classes.

    Parameters
    ----------
    scheme : {"ovr", "ovo", "shared", "joint"}
        One against the rest, a problem for every pair, or one for all, whose loss is a sum over classes or
        takes all of them together; two classes have one anyway.
    classes : ndarray of shape (n_classes,)
    labels : ndarray of int of shape (n,), or (n, n_labels)
    C : ndarray of shape (n,), or (n, n_labels)
        Cost of each sample.
    loss : Loss
    fit_intercept : bool
    """
    names, K = [str(name) for name in classes], len(classes)
    if labels.ndim == 2:
        return _label_problems(scheme, names, labels, C, loss, fit_intercept)
    if scheme == "joint":
        joint_loss = of_all_classes(loss)
        loss = joint_loss if K > 2 else loss
    if scheme == "ovo" and K > 2:
        pairs = []
        for i, j in combinations(range(K), 2):
            rows = np.flatnonzero((labels == i) | (labels == j))
            Y = np.where(labels[rows, None] == j, 1.0, -1.0)
            problem = Problem(Y, loss, C[rows, None], fit_intercept)
            pairs.append(SubProblem(f"{names[j]} vs {names[i]}", problem, rows))
        return pairs
    every = Problem(class_targets(labels, K), loss, C[:, None], fit_intercept)
    if K == 2 or scheme in ("shared", "joint"):
        return [SubProblem("fit" if K == 2 else "all classes", every)]
    return [SubProblem(f"{name} vs rest", every.column(k)) for k, name in enumerate(names)]


def _label_problems(
    scheme: str, names: list[str], labels: IntArray, C: FloatArray, loss: Loss, fit_intercept: bool
) -> list[SubProblem]:
    """The problems of several labels: one each, or one for all."""
    if scheme not in ("ovr", "shared"):
        raise ValueError(
            f"multiclass={scheme!r} is for classes that exclude one another, and y has several labels per "
            "sample: pass 'ovr', or 'shared' for kernel weights shared by the labels."
        )
    Y = class_targets(labels, len(names))
    if scheme == "ovr":
        parts = (Problem(Y[:, [k]], loss, C[:, [k]], fit_intercept, strata=Y) for k in range(len(names)))
        return [SubProblem(name, problem) for name, problem in zip(names, parts, strict=True)]
    return [SubProblem("all labels", Problem(Y, loss, of_samples(C)[:, None], fit_intercept))]


def of_samples(costs: FloatArray) -> FloatArray:
    """Costs of samples and labels as those of samples, which labels that share a model have in common."""
    if costs.ndim == 2 and np.ptp(costs, axis=1).any():
        raise ValueError(
            "class_weight gives the labels of a sample different costs, and labels that share the kernels "
            "have one cost per sample: pass class_weight=None, or use MKLClassifier(multiclass='ovr')."
        )
    return costs if costs.ndim == 1 else costs[:, 0]


def of_all_classes(loss: Any) -> Loss:
    """The loss of the values of all classes together that `loss` is for two.

    Examples
    --------
    >>> from kernelweave.losses import Hinge
    >>> of_all_classes(Hinge())
    MulticlassHinge()
    """
    if hasattr(loss, "multiclass"):
        together: Loss = loss.multiclass()
        return together
    having = ", ".join(repr(name) for name, known in LOSSES.items() if hasattr(known, "multiclass"))
    raise ValueError(
        f"{type(loss).__name__} has no `multiclass`, required by multiclass='joint': use loss={having}, or "
        "multiclass='shared', whose loss is a sum over the classes."
    )


@dataclass(frozen=True)
class Link:
    """From values of functions to probabilities, which are not yet normalised over the classes.

    * "sigmoid": 1 / (1 + exp(-(slope f + shift))), `parameters` the slopes and shifts, shape (2, 1 or J);
    * "softmax": softmax(t f) over the functions, `parameters` t;
    * "normal": Phi(f);
    * "likelihood": that of the loss, which is `parameters`.
    """

    name: str
    parameters: Any = None

    def __call__(self, values: FloatArray) -> FloatArray:
        if self.name == "sigmoid":
            result: FloatArray = expit(self.parameters[0] * values + self.parameters[1])
            return result
        if self.name == "softmax":
            result = softmax(self.parameters * values, axis=1)
            return result
        result = ndtr(values) if self.name == "normal" else self.parameters.probability(values)
        return result


#: what computes leave-one-out predictions of shape (n, c)
Margins = Callable[[], FloatArray]


def link_of(loss: Loss, calibrate: Callable[..., Link], *kept: Any) -> Link | Later:
    """The likelihood of the loss if it has one; else ``calibrate(*kept)`` when it is first asked for.

    Examples
    --------
    >>> from kernelweave.losses import Hinge
    >>> margins = np.array([[2.0], [-2.0], [1.0], [-1.0]])
    >>> link_of(Hinge(), fit_link, [lambda: margins], np.array([1, 0, 1, 0]), np.ones(4))().name
    'sigmoid'
    """
    return Link("likelihood", loss) if hasattr(loss, "probability") else Later(partial(calibrate, *kept))


def fit_link(margins: Sequence[Margins], labels: IntArray, weight: FloatArray) -> Link:
    """The link of classes with a function each, or of two with one, by leave-one-out margins.

    One temperature; several labels have one each.

    Parameters
    ----------
    margins : sequence of callables
        Those of one or more of the functions each, J together.
    labels : ndarray of int of shape (n,), or (n, n_labels)
    weight : ndarray of shape (n,)
    """
    return _calibrated(np.hstack([compute() for compute in margins]), labels, weight)


def _calibrated(margins: FloatArray, labels: IntArray, weight: FloatArray) -> Link:
    if labels.ndim == 2:
        links = [_calibrated(margins[:, [k]], column, weight) for k, column in enumerate(labels.T)]
        return Link("sigmoid", np.hstack([link.parameters for link in links]))
    if margins.shape[1] > 1:
        return Link("softmax", fit_temperature(margins, labels, weight))
    # no shift: the likelier class is the predicted one
    slope = 2.0 * fit_temperature(np.hstack([-margins, margins]), labels, weight)
    return Link("sigmoid", np.array([[slope], [0.0]]))


def fit_pair_link(
    margins: Sequence[Margins], targets: Sequence[FloatArray], weights: Sequence[FloatArray]
) -> Link:
    """The link of pairs of classes, from margins, targets and weights of the samples of each."""
    parts = zip(margins, targets, weights, strict=True)
    found = [fit_sigmoid(compute()[:, 0], y[:, 0], weight) for compute, y, weight in parts]
    return Link("sigmoid", np.array(found).T)


def fit_sigmoid(margins: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Slope and shift of P(y = +1) = 1 / (1 + exp(-(slope * margin + shift))).

    Maximum likelihood with Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), which keep the
    slope finite on separable margins (Platt 2000).

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Held-out decision values.
    y : ndarray of shape (n,)
        -1 or +1.
    weight : ndarray of shape (n,)
        A sample of weight w counts as w equal samples.
    """
    positive, negative = float(weight[y > 0].sum()), float(weight[y < 0].sum())
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    scale = float(np.abs(margins).max()) or 1.0
    design = np.column_stack([margins / scale, np.ones_like(margins)])

    def derivatives(link: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        z = design @ link
        p = expit(z)
        loss = float(weight @ (np.logaddexp(0.0, z) - target * z))
        return loss, design.T @ (weight * (p - target)), (design.T * (weight * p * (1.0 - p))) @ design

    start = np.array([0.0, np.log((positive + 1.0) / (negative + 1.0))])
    slope, shift = _newton(derivatives, start)
    return float(slope / scale), float(shift)


def fit_temperature(margins: FloatArray, labels: IntArray, weight: FloatArray) -> float:
    """Factor t of the class probabilities softmax(t * margins), by maximum likelihood.

    The largest margin keeps the largest probability. Targets are smoothed as Platt's, so that
    t stays finite (Guo et al. 2017).

    Parameters
    ----------
    margins : ndarray of shape (n, n_classes)
        Held-out decision values.
    labels : ndarray of shape (n,)
        Class indices.
    weight : ndarray of shape (n,)
    """
    n_classes = margins.shape[1]
    scale = float(np.abs(margins).max()) or 1.0
    x = margins / scale
    share = 1.0 / (float(weight.sum()) + n_classes)
    target = np.where(labels[:, None] == np.arange(n_classes), 1.0 - (n_classes - 1) * share, share)

    def derivatives(link: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        p = softmax(link[0] * x, axis=1)
        mean = (p * x).sum(axis=1)
        slope = mean - (target * x).sum(axis=1)
        curvature = (p * x**2).sum(axis=1) - mean**2
        loss = -float(weight @ (target * log_softmax(link[0] * x, axis=1)).sum(axis=1))
        return loss, np.array([weight @ slope]), np.array([[weight @ curvature]])

    return float(max(_newton(derivatives, np.zeros(1))[0], 1e-6) / scale)


def _newton(derivatives: Callable[[FloatArray], Any], x: FloatArray) -> FloatArray:
    """Minimise a smooth convex function of few variables, to rounding."""
    for _ in range(100):
        value, gradient, hessian = derivatives(x)
        hessian = hessian + 1e-12 * max(float(np.trace(hessian)), 1e-300) * np.eye(len(x))
        step, t = np.linalg.solve(hessian, gradient), 1.0
        while t > 1e-6 and derivatives(x - t * step)[0] > value:
            t *= 0.5
        x = x - t * step
        if t * float(np.abs(step).max()) <= 1e-12 * max(1.0, float(np.abs(x).max())):
            break
    return x


def decided(classes: Any, scores: FloatArray, multilabel: bool = False) -> Any:
    """Labels from decision values: (n,) for two classes, (n, n_classes) for more.

    With several labels per sample, a matrix of 0 and 1.

    Examples
    --------
    >>> decided(np.array(["a", "b"]), np.array([-1.0, 2.0]))
    array(['a', 'b'], dtype='<U1')
    """
    if multilabel:
        return (scores > 0).astype(int)
    return classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def check_outputs(model: Any, y: Any) -> None:
    """Refuse targets whose columns have other names than those of the fit, or another order."""
    known, names = getattr(model, "output_names_", None), column_names(y)
    if known is not None and names is not None and list(names) != list(known):
        raise ValueError(
            f"y has the columns {listed([repr(name) for name in names])}, and the fit had "
            f"{listed([repr(name) for name in known])}: pass them in that order, y[model.output_names_]."
        )


class LabelsMixin(ClassifierMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Mixin of classifiers of samples with one class, or with several labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        scheme = getattr(self, "multiclass", "shared")
        # labels that share kernels have one cost per sample, so no weights of classes
        alike = getattr(self, "class_weight", None) is None
        tags.classifier_tags.multi_label = scheme == "ovr" or (scheme == "shared" and alike)
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of the predictions; views with IDs are taken in the order of labels with an index."""
        X, given = per_sample(as_views(X, y), {"y": y, "sample_weight": sample_weight})
        return float(super().score(X, **given))


class ClassLabels(LabelsMixin):
    """Mixin of classifiers: labels and probabilities from the values of the functions learned.

    Two classes have one function, more have one each, or one for every pair where `_pairwise` says so.
    Several labels per sample (`multilabel_`) have one each.
    """

    classes_: Any

    multilabel_: bool
    model_: Predictor

    #: values of every function learned, shape (n, n_functions)
    _decision: Callable[..., FloatArray]

    _validate: Callable[..., tuple[Any, Any]]

    _tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")

    _fitted: ClassVar[dict[str, type]] = {"classes_": np.ndarray}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of samples whose class, or all of whose labels, are right.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        y : array-like of shape (n,) or (n, n_labels)
            Named columns have to be in the order of the fit.
        sample_weight : array-like of shape (n,), optional
        """
        check_outputs(self, y)
        return float(super().score(X, y, sample_weight))

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, FloatArray, IntArray]:
        """X and y, checked, sample weights, and the labels of those of positive weight; sets `classes_`."""
        shape = _shape(y)
        several = len(shape) == 2 and shape[1] > 1
        table, y = self._validate(X, y, **({"multi_output": True} if several else {}))
        y = y.toarray() if sparse.issparse(y) else y
        weight = check_weights(sample_weight, table)
        self.classes_, labels = encode_labels(y, weight, getattr(self, "output_names_", None))
        self.multilabel_ = labels.ndim == 2
        return table, y, weight, labels

    @property
    def _has_labels(self) -> bool:
        """Whether samples have several labels, each with a function of its own; older files say nothing."""
        return getattr(self, "multilabel_", False) is True

    def _fits_together(self) -> bool:
        count, functions = len(self.classes_), len(self.model_.intercept)
        pairs = count * (count - 1) // 2
        expected = count
        if not self._has_labels:
            expected = 1 if count == 2 else pairs if getattr(self, "_pairwise", False) else count
        fits = count >= 2 and functions == expected and isinstance(self.model_.link, Link)
        return fits and super()._fits_together()

    def _class_values(self, values: FloatArray) -> FloatArray:
        """Decision values of the classes or labels from those of the functions: (n,), or (n, n_classes)."""
        if self._has_labels:
            return values
        if len(self.classes_) == 2:
            return values[:, 0]
        if getattr(self, "_pairwise", False):
            result: FloatArray = _ovr_decision_function(values > 0, values, len(self.classes_))
            return result
        return values

    def _labels(self, values: FloatArray) -> Any:
        """Labels from the values of the functions."""
        return decided(self.classes_, self._class_values(values), self._has_labels)

    def _probabilities(self, values: FloatArray) -> FloatArray:
        """Class probabilities from the values of the functions."""
        positive: FloatArray = self.model_.link(values)
        if self._has_labels:
            return positive
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - positive[:, 0], positive[:, 0]])
        if getattr(self, "_pairwise", False):
            positive = pairwise_scores(positive, len(self.classes_))
        positive = np.maximum(positive, 1e-300)
        result: FloatArray = positive / positive.sum(axis=1, keepdims=True)
        return result

    @follows_input
    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance to the decision boundary: (n,) for two classes, (n, n_classes) for more.

        With several labels per sample, one column per label.
        """
        return self._class_values(self._decision(X))

    @follows_input
    def predict(self, X: Any) -> Any:
        """Class labels of new samples; with several labels per sample, a matrix of 0 and 1."""
        return self._labels(self._decision(X))

    @follows_input
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, n_classes), columns in the order of `classes_`.

        A loss that is a likelihood gives them itself, normalised over the classes. For the others
        one temperature (Guo et al. 2017) is fitted to leave-one-out margins of the training
        samples, so that the likeliest class is the predicted one; this is done once, when
        probabilities are first asked for, or the model is saved. One-vs-one fits a sigmoid per
        pair (Platt 2000) and sums the pairwise probabilities of each class.

        With several labels per sample there is one column per label: the probability that a sample has it.
        """
        return self._probabilities(self._decision(X))

    @follows_input
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        result: FloatArray = np.log(np.maximum(self.predict_proba(X), 1e-300))
        return result


def _shape(y: Any) -> tuple[int, ...]:
    """That of targets; of ragged ones, which are refused later, none."""
    try:
        return tuple(y.shape if hasattr(y, "shape") else np.asarray(y).shape)
    except ValueError:
        return ()


def pairwise_scores(positive: FloatArray, n_classes: int) -> FloatArray:
    """Sum over pairs of the probability each class has in them; columns are pairs (i, j), i < j."""
    scores = np.zeros((len(positive), n_classes))
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        scores[:, i] += 1.0 - positive[:, column]
        scores[:, j] += positive[:, column]
    return scores


class LossScore(RegressorMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Mixin of regressors that are scored by the measure of their loss where it has one."""

    @property
    def _agreement(self) -> Callable[..., float] | None:
        """The measure of the loss; None where R^2 is used."""
        loss = getattr(self, "loss", None)
        return None if loss is None else getattr(LOSSES.resolve(loss, Loss, "loss"), "agreement", None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions, or ``loss.agreement`` where the loss has such a measure.

        For ``loss="ranking"`` it is the share of the pairs of a query that are in the right order.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets as `fit` takes them; for a ranking with queries, the queries too.
        sample_weight : array-like of shape (n,), optional
        """
        check_outputs(self, y)
        X, given = per_sample(as_views(X, y), {"y": y, "sample_weight": sample_weight})
        sample_weight = given["sample_weight"]
        if self._agreement is None:
            return float(super().score(X, y, sample_weight))
        return self._agreement(y, self.predict(X), sample_weight)


class RealTargets(LossScore):
    """Mixin of regressors: one target or several, which new samples are answered with in the same shape."""

    #: values of every function learned, shape (n, n_functions)
    _decision: Callable[..., FloatArray]

    _fitted: ClassVar[dict[str, type]] = {"_flat": bool}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _targets(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Targets of the samples of positive weight, shape (n, n_outputs)."""
        self._flat = y.ndim == 1
        return y[weight > 0].reshape(np.count_nonzero(weight), -1).astype(np.float64)

    def _shaped(self, values: FloatArray) -> FloatArray:
        """Values (n, n_outputs) in the shape of the targets."""
        return values[:, 0] if self._flat else values

    @follows_input
    def predict(self, X: Any) -> FloatArray:
        """Predictions for new samples, shape (n,) or (n, n_outputs) as the training targets."""
        return self._shaped(self._decision(X))
