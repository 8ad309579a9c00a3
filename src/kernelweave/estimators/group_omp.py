"""Greedy selection of kernels: MKL-GOMP for regression and classification."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np

from .._typing import FloatArray
from ..losses import Loss
from ..solvers.greedy import FactorDictionary, Fit, GreedyTask, Refit, left_out_margins, refit_for
from ._base import Spec, all_or_nothing, follows_input
from ._group_omp import BaseGroupOMP, GreedySetup, OutputGroups
from ._input import check_weights
from ._labels import (
    ClassLabels,
    RealTargets,
    class_targets,
    decided,
    fit_link,
    link_of,
    of_samples,
    sample_factors,
)
from ._mkl import MOST_KEPT_BYTES
from ._training import with_callbacks


class GroupOMPRegressor(RealTargets, BaseGroupOMP):
    """Regression with few kernels, chosen one after another (MKL-GOMP).

    Group orthogonal matching pursuit over kernels. Among all sets G of at most s kernels, it looks for
    the one with the smallest

        J(G) = min_{f_m, b}  1/l sum_i (y_i - f(x_i))^2 + lambda sum_{m in G} ||f_m||^2,
        f = sum_{m in G} f_m + b

    by adding, at each step, the kernel that promises the largest gain

        I_m = 1/l tr( R' K_m (K_m + lambda l I)^-1 R ),    R = Y - f the current residuals

    and fitting all of them again; J falls by at least the gain. All outputs count together. With an
    intercept K_m is centred. Sparsity (s, or the gain that is not worth a kernel) and smoothness
    (lambda) are separate parameters, and one run gives the models of all sizes. Sindhwani & Lozano
    (2011), with the gain of their 1/l loss.

    Nothing depends on the units of y: with s y in place of y the same kernels are selected, and
    predictions are multiplied by s. The parameter of a loss that has units of y, such as ``Huber(delta)``,
    has to be multiplied too; for "eps_insensitive" also alpha has units, 1 / y.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`. Kernels with a thin factor, such as `Linear` on a few columns, cost
        much less than others.
    n_kernels : int, optional
        Largest number of kernels to select; no limit by default. A number above that of the kernels means
        all of them, with a warning.
    output_groups : sequence of length n_outputs, optional
        A label for each output. Outputs with the same label select kernels together, by their residuals
        alone, so each group has a set of its own: `n_kernels` and `tol` hold for each group. By default
        all outputs are one group; with as many labels as outputs, the fits are independent. Groups share
        neither kernels nor coefficients, so a kernel of one group leaves the residuals of the others as they
        are, and the order in which pairs of kernel and group are added does not matter (multivariate group
        OMP, Lozano & Sindhwani 2010).
    alpha : float, default=0.01
        The ridge lambda. `MKLRegressor` with C = 1 / (alpha l) and the same kernels at weights 1 is
        the same model.
    tol : float, default=1e-3
        The path ends when no kernel gains a larger share than this of J without kernels; for the squared
        loss, of the variance of y. If no kernel does at the start, the model is its intercept.
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive" or "huber". V replaces (y - f)^2 / 2, R is minus its gradient,
        and the refits are single-kernel fits.
    validation_fraction : float, optional
        Share of the samples held out to choose the number of kernels; `fit` also takes such samples.
    backward : bool, default=False
        Whether kernels that became useless are dropped: J then rises by a smaller share than `tol`, or
        by less than half of what the last kernel gained.
    dictionary_sample : int or float, optional
        Number or share of the remaining kernels scored at each step, drawn at random; all by default.
    normalize : {"variance", "dimension", "spherical", "trace", "center"}, Normalization or None, \
default="variance"
    missing : {"error", "mask", "complete"}, default="error"
        What to do with views that samples lack, as in `MKLClassifier`.
    fit_intercept : bool, default=True
    memory_limit : int or str, optional
        Bytes the kernels may take, such as "2GB"; those beyond are computed again at every step.
    device : str, optional
        "cuda" (or "cuda:1", ...) to fit and predict on a GPU through torch, "torch:cpu" for the same
        code on the CPU; by default where the data are: NumPy, or the device of a tensor or CuPy array.
    n_jobs : int, optional
        Threads that compute the kernels.
    random_state : int or RandomState, optional
        Seed of `validation_fraction` and `dictionary_sample`.
    checkpoint : str or path-like, optional
        As in `MKLClassifier`; the kernels selected are kept. A fit that resumes fits the models of the
        path again but looks at no kernel that was not selected, and `n_kernels` and `tol` may make the
        path longer or shorter than before.
    verbose : int, default=0
        1 prints a line at the end of the path, 2 one line per kernel.

    Attributes
    ----------
    path_ : GreedyPath
        The models of all sizes: `sets`, `order`, `gains`, `objective`, `train_error`,
        `validation_error`, `dual_coef`, `intercept`, `n_selected`, `stopped`, `groups`, and `frame()`.
    selected_ : ndarray of int, or list of them
        Kernels of the model chosen, in the order in which they were added; one array per group of outputs.
    weights_ : ndarray of shape (M,) or (n_groups, M)
        1 for selected kernels, 0 for the others.
    norms_ : ndarray of shape (M,) or (n_groups, M)
        RKHS norms of the components: how much each kernel contributes.
    model_ : Predictor
        The functions learned, as in `MKLClassifier`; ``model_.staged(X)`` are the values of the models of
        0, 1, 2, ... kernels, shape (n, 1 + len(path_), n_outputs).
    dual_coef_ : ndarray of shape (n,) or (n_outputs, n)
    intercept_ : float or ndarray
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Where every kernel selected is linear, as in `MKLClassifier`.
    support_ : ndarray of int
    objective_ : float, or ndarray of shape (n_groups,)
        J of the model chosen.
    stationarity_ : float, or ndarray of shape (n_groups,)
        Relative duality gap of the model chosen, among all functions of its kernels: rounding for the
        squared loss, at most 1e-6 for the others. It does not prove that these kernels are the best ones;
        see `best_subset`.
    n_iter_, n_resumed_ : int, or ndarray of shape (n_groups,)
        Number of kernels added, and how many of them were read from the checkpoint.
    history_ : dict, or list of dict
        "gain", "share" (the gain relative to J without kernels, which `tol` bounds), "objective", "error"
        and "n_kernels" after every step.
    gram_ : str
        "factors", or "recomputed" where the memory limit did not allow to keep all of them.
    kernel_names_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = kw.GroupOMPRegressor(per_feature(Linear()), n_kernels=3).fit(X, y)
    >>> [reg.kernel_names_[m] for m in reg.selected_]
    ['x2', 'x8', 'x3']
    >>> reg.predict(X[:2], n_kernels=1).round()
    array([210., 104.])
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        n_kernels: int | None = None,
        output_groups: Any = None,
        alpha: float = 1e-2,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
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
        self.output_groups = output_groups
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
        """Select kernels and learn the regression function.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        validation_set : tuple (X_val, y_val), optional
            Samples whose mean loss chooses the number of kernels.
        """
        self._fit_path(self._setup(X, y, sample_weight, validation_set))
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any, validation_set: Any = None) -> GreedySetup:
        spec = Spec.of(self)
        table, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, table)
        self._flat = y.ndim == 1
        targets = y.reshape(len(weight), -1).astype(np.float64)
        groups = self._named_groups(targets.shape[1])
        return self._split(GreedySetup(spec, table, weight, targets, groups), y, validation_set)

    def _held_out_error(self, spec: Spec, values: FloatArray, y: Any, weight: Any) -> float:
        losses = 2.0 * spec.loss.value(np.asarray(y, float).reshape(len(values), -1), values)
        return float(weight @ losses.sum(axis=1) / weight.sum())

    @follows_input
    def predict(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Predictions for new samples, shape (n,) or (n, n_outputs) as the training targets.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        n_kernels : int, optional
            Predict with the model of that size on the path; by default with the one chosen.
        """
        return self._shaped(self._decision(X, n_kernels))

    def staged_predict(self, X: Any) -> Iterator[FloatArray]:
        """Predictions by the models of 1, 2, ... kernels."""
        yield from map(self._shaped, self._staged_decision(X))


class GroupOMPClassifier(ClassLabels, BaseGroupOMP):
    """Classification with few kernels, chosen one after another (MKL-GOMP).

    `GroupOMPRegressor` on labels -1 and +1; more than two classes are one joint problem with one column
    of targets per class, so that all classes share the kernels, selected by the residuals of all of
    them together. The class of the largest value is predicted. Several labels per sample share the kernels
    in the same way.

    Parameters
    ----------
    kernels, n_kernels, alpha, tol, backward, dictionary_sample, normalize, missing, fit_intercept, \
memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `GroupOMPRegressor`.
    loss : str or Loss, default="squared"
        "squared", "hinge", "squared_hinge", "logistic", "huber" or "eps_insensitive".
    validation_fraction : float, optional
        Share of the samples held out, each class in proportion, to choose the number of kernels.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class.
    output_groups : sequence of length n_classes, optional
        A label for each of more than two classes, in the order of `classes_`: the functions of classes of one
        label select kernels together, as in `GroupOMPRegressor`.

    Attributes
    ----------
    classes_ : ndarray
    model_, path_, selected_, weights_, norms_, dual_coef_, intercept_, coef_, support_, objective_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, kernel_names_, n_features_in_, feature_names_in_
        As in `GroupOMPRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.GroupOMPClassifier(per_feature(RBF()), n_kernels=2).fit(X, y)
    >>> [clf.kernel_names_[m] for m in clf.selected_]
    ['x3', 'x2']
    >>> clf.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        n_kernels: int | None = None,
        output_groups: Any = None,
        alpha: float = 1e-2,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
        validation_fraction: float | None = None,
        backward: bool = False,
        dictionary_sample: int | float | None = None,
        class_weight: dict[Any, float] | str | None = None,
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
        self.output_groups = output_groups
        self.alpha = alpha
        self.tol = tol
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.backward = backward
        self.dictionary_sample = dictionary_sample
        self.class_weight = class_weight
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
        """Select kernels and learn the classifier.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : array-like of shape (n,), or (n, n_labels)
            Class labels of any type; or, where samples may have several, a matrix of 0 and 1 with one column
            per label.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        validation_set : tuple (X_val, y_val), optional
            Samples whose share of wrong labels chooses the number of kernels.
        """
        self._fit_path(self._setup(X, y, sample_weight, validation_set))
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any, validation_set: Any = None) -> GreedySetup:
        spec = Spec.of(self)
        table, y, weight, labels = self._labelled(X, y, sample_weight)
        used, weight = weight > 0, weight.copy()
        weight[used] *= of_samples(sample_factors(self.class_weight, self.classes_, labels, weight[used]))
        found = class_targets(labels, len(self.classes_))
        targets = np.zeros((len(weight), found.shape[1]))
        targets[used] = found
        groups, strata = self._named_groups(targets.shape[1]), None if self._has_labels else y
        return self._split(GreedySetup(spec, table, weight, targets, groups), y, validation_set, strata)

    def _held_out_error(self, spec: Spec, values: FloatArray, y: Any, weight: Any) -> float:
        wrong = np.reshape(self._labels(values) != y, (len(values), -1)).any(axis=1)
        return float(weight @ wrong / weight.sum())

    def _calibrate(
        self, dictionary: FactorDictionary, task: GreedyTask, groups: OutputGroups, fits: list[Fit]
    ) -> None:
        """The map from decision values to probabilities, from leave-one-out margins."""
        refits: list[Refit] = []
        if not hasattr(task.loss, "probability"):
            pairs = zip(groups.tasks(task), fits, strict=True)
            refits = [refit_for(dictionary, own).with_kernels(fit.kernels).closed() for own, fit in pairs]
        margins = partial(_margins, groups, refits)
        if 8 * len(task.y) ** 2 * len(refits) > MOST_KEPT_BYTES:
            margins = partial(np.asarray, margins())
        labels = decided(np.arange(len(self.classes_)), self._class_values(task.y), self._has_labels)
        self.model_.link = link_of(task.loss, fit_link, [margins], labels, task.weight)

    @follows_input
    def decision_function(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Signed distance to the decision boundary: (n,) for two classes, (n, n_classes) for more.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        n_kernels : int, optional
            Size of the model on the path; by default the one chosen.
        """
        return self._class_values(self._decision(X, n_kernels))

    @follows_input
    def predict(self, X: Any, n_kernels: int | None = None) -> Any:
        """Class labels of new samples, by the model chosen or that of `n_kernels` kernels."""
        return self._labels(self._decision(X, n_kernels))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Class labels by the models of 1, 2, ... kernels."""
        yield from map(self._labels, self._staged_decision(X))


def _margins(groups: OutputGroups, refits: list[Refit]) -> FloatArray:
    """Leave-one-out predictions of all outputs, from a refit of every group."""
    return groups.join([left_out_margins(refit, refit.fit()) for refit in refits])
