"""Empirical Bayes multiple kernel learning: Gaussian processes whose kernel weights maximise the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..gram import Dictionary, Gram, Predictor
from ..gram.terms import KernelTerm, NotLinearError
from ..solvers.checkpoint import Keeper
from ..solvers.multiple.empirical_bayes import (
    EmpiricalBayes,
    Evidence,
    GaussianEvidence,
    HyperPrior,
    LaplaceEvidence,
)
from ..solvers.run import Result
from ._base import Spec, all_or_nothing, follows_input, one_or_all
from ._input import check_choice, check_engine, check_positive, check_weights
from ._kernels import BaseKernels
from ._labels import ClassLabels, Link, RealTargets, class_targets
from ._training import ModelProgress, Training, with_callbacks

#: the evidence of one model, given Gram matrices, targets and sample weights
MakeEvidence = Callable[[Gram, FloatArray, FloatArray], Evidence]

METHODS = ("laplace", "regression")

#: share of its variance that rounding may take from a kernel without a word
MOST_LOST = 1e-5


class Merged(NamedTuple):
    """Training samples, equal ones merged: the first of each kind, and what belongs to it."""

    gram: Gram
    targets: FloatArray
    weight: FloatArray
    first: IntArray
    group: IntArray  # the kind of every sample
    share: FloatArray  # (n, 1), of every sample in the weight of its kind


def merge_equal(gram: Gram, targets: FloatArray, weight: FloatArray) -> Merged:
    """Samples with the same kernel values and targets become one, with the sum of their weights.

    The evidence stays the same, and matrices that equal rows would make singular do not.
    """
    n = len(weight)
    probes = np.random.RandomState(0).standard_normal((n, 2))  # unequal rows almost surely differ on them
    marks = gram.dot(1.0 / np.maximum(gram.inner(np.eye(n)), 1e-300), probes)
    marks = np.round(marks / max(float(np.abs(marks).max()), 1e-300), 10)
    rows = np.column_stack([marks, targets])
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    if len(first) == n:
        return Merged(gram, targets, weight, np.arange(n), np.arange(n), np.ones((n, 1)))
    group = group.ravel()
    total = np.bincount(group, weight).astype(np.float64)
    return Merged(gram.subset(first), targets[first], total, first, group, (weight / total[group])[:, None])


class BaseEmpiricalBayes(BaseKernels):
    """Parameters and machinery of the empirical Bayes estimators; see the subclasses."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_engine(self.gram, ("auto", "dense"))
        HyperPrior(self.hyperprior)
        if self.noise is not None:
            check_positive("noise", self.noise)

    def _fit_evidence(
        self,
        spec: Spec,
        table: Any,
        sample_weight: FloatArray,
        targets: FloatArray,
        models: Sequence[tuple[str, MakeEvidence]],
    ) -> None:
        """Compute the Gram matrices once, train every model on them, and store the models.

        `targets` (n, c) are those of the samples of positive weight, `models` titles and evidences.
        """
        weight, titles = sample_weight[sample_weight > 0], [title for title, _ in models]
        told = {"models": titles, "targets": targets, "weights of the samples": weight}
        training = Training(self, len(models), told, ("fit_intercept", "hyperprior", "noise", "method"))
        with blas_threads_for(len(weight)):
            source = self._source(table, sample_weight)
            self._check_room(spec.limit, len(source.names), len(weight), len(models))
            options: dict[str, Any] = {"device": spec.device, "host_sums": True, "double": True}
            dictionary = Dictionary(source, self.normalize, weight, spec.limit, **options)
            self._warn_of_offsets(dictionary)
            merged = merge_equal(dictionary.gram, targets, weight)
            solutions = training.models(self._train, merged, models, dictionary.gram)
        self._store(dictionary, merged, solutions, sample_weight)
        training.end(all(solution.converged for solution in solutions))

    @staticmethod
    def _warn_of_offsets(dictionary: Dictionary) -> None:
        """Kernels whose values hardly vary about a large constant have lost their digits to it."""
        gram, n = dictionary.gram, dictionary.gram.n_samples
        size = gram.inner(np.eye(n)) / n
        spread = size - gram.quad(np.ones((n, 1))) / n**2
        lost = np.finfo(np.float64).eps * size > MOST_LOST * spread
        if lost.any():
            named = ", ".join(dictionary.names[m] for m in dictionary.live[lost][:5])
            warn(
                "values of these kernels vary so little about a large constant that rounding hides how: "
                f"{named}. Centre and scale X, for example with StandardScaler."
            )

    @staticmethod
    def _check_room(limit: int | None, n_kernels: int, n: int, n_models: int) -> None:
        """Refuse what leaves no room for the factor of every model and the inverse."""
        needed = (n_kernels + 5 + n_models) * n**2 * 8
        if limit is not None and needed > limit:
            raise MemoryError(
                f"{n_kernels} kernels and {n_models} models on {n} samples need {needed / 1e9:.2f} GB, "
                f"memory_limit allows {limit / 1e9:.2f} GB: raise it, or use fewer kernels or samples."
            )

    def _train(self, merged: Merged, make: MakeEvidence, report: ModelProgress, keeper: Keeper) -> Result:
        evidence = make(merged.gram, merged.targets, merged.weight)
        solution = EmpiricalBayes().solve(evidence, self.hyperprior, self.tol, self.max_iter, report, keeper)
        report.done(solution)
        return solution

    def _told(self, state: Any) -> str:
        count = int(np.count_nonzero(state.posterior.weights))
        return f"objective {state.objective:.6g}, relative slope {state.residual:.2g}, {count} kernels"

    def _store(
        self, dictionary: Dictionary, merged: Merged, solutions: list[Result], sample_weight: FloatArray
    ) -> None:
        """Set the fitted attributes."""
        states = [solution.state for solution in solutions]
        weights = dictionary.all_weights(np.array([state.weights for state in states]))
        alpha = np.hstack([state.posterior.alpha for state in states])
        self.model_ = self._predictor(dictionary, merged.first, weights, states)
        spread = alpha[merged.group] * merged.share
        self._store_results(dictionary.names, weights, spread, sample_weight, solutions)
        self.gram_ = dictionary.gram.name
        self.norms_ = one_or_all(dictionary.all_weights(np.array([state.norms for state in states])))
        self.intercept_ = one_or_all(self.model_.intercept + self._constants())
        self.log_marginal_likelihood_ = one_or_all(np.array([state.log_evidence for state in states]))
        self.starts_ = one_or_all([solution.starts for solution in solutions])

    @staticmethod
    def _predictor(
        dictionary: Dictionary, rows: IntArray, weights: FloatArray, states: list[Any]
    ) -> Predictor:
        """Posterior means, from training samples that the `rows` stand for, and what their variances need."""
        posteriors = [state.posterior for state in states]
        found = [posterior.alpha for posterior in posteriors]
        alpha = np.zeros((dictionary.gram.n_samples, sum(one.shape[1] for one in found)))
        alpha[rows] = np.hstack(found)
        weights = np.repeat(weights, [one.shape[1] for one in found], axis=0)
        rules = dictionary.normalizations
        live = np.flatnonzero(weights.any(axis=0)).tolist()
        terms = [KernelTerm(m, rules[m], weights[:, m] * rules[m].scale_) for m in live]
        intercepts = np.concatenate([posterior.intercept for posterior in posteriors])
        needed = [posterior.spread for posterior in posteriors]
        kept = None if len(rows) == len(alpha) else rows
        return Predictor.of(dictionary.source, terms, alpha, intercepts, posterior=needed, rows=kept)

    def _fits_together(self) -> bool:
        return len(self.model_.posterior) > 0 and super()._fits_together()

    @property
    def _noises(self) -> FloatArray:
        """Variance of the noise of every model."""
        return np.array([posterior.noise for posterior in self.model_.posterior])

    def _predictive(self, X: Any, variance: bool) -> tuple[FloatArray, FloatArray]:
        """Means of every function and latent variances of every model, zero when not asked for."""
        check_is_fitted(self)
        if variance and self._precomputed:
            raise ValueError(
                "predictive variances need k(x, x) of new samples, which precomputed test matrices do not "
                "hold: use Precomputed kernels by sample index."
            )
        values = self._inputs(X)
        return self.model_.moments(values) if variance else (self.model_(values), np.zeros(()))


class EmpiricalBayesRegressor(RealTargets, BaseEmpiricalBayes):
    """Gaussian process regression with kernel weights and noise learned by empirical Bayes.

    f is a sum of Gaussian processes with covariances d_m k_m, observed with noise of variance
    sigma^2. With Kbar = sigma^2 I + sum_m d_m K_m, weights and noise minimise

        1/2 y' Kbar^-1 y + 1/2 log|Kbar| + 1/2 h(d)

    the negative log evidence, plus a hyper-prior if there is one (Tomioka & Suzuki 2011, section 3).
    The intercept has a flat prior and is integrated out as well: Kbar^-1 becomes
    P = Kbar^-1 - Kbar^-1 1 1' Kbar^-1 / 1' Kbar^-1 1, and log|Kbar| gains log 1' Kbar^-1 1
    (restricted maximum likelihood); predictions use its posterior mean and variance.

    The problem is not convex: the evidence rises at every step to a stationary point, and most
    weights become exactly zero. Four starts, whose noise is 1/2, 1/21, 1/501 and 1e-5 of the variance of
    y, take a few steps each, and the one with the largest evidence is continued to the end (`starts_`).

    Nothing depends on the units of y: with s y in place of y, weights and noise are multiplied by s^2
    and predictions and their deviations by s, if there is no hyper-prior, which has units.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    noise : float, optional
        A known noise variance sigma^2; learned by default.
    hyperprior : callable or object with `price`, optional
        h: a function of the M weights, or an object with ``price(d)``, such as a regulariser with a
        smooth h, and optionally ``price_gradient(d)``. The prior is exp(-h(d) / 2); one that keeps
        away from zero, such as h = sum_m d_m - 2 log d_m, avoids sparsity. Weights are in squared
        units of y.
    normalize : {"variance", "dimension", "spherical", "trace", "center"}, Normalization or None, \
default="variance"
    multioutput : {"shared", "independent"}, default="shared"
        Several outputs share weights and noise (then they should have similar scales), or have
        their own.
    gram : {"auto", "dense"}, default="auto"
    tol : float, default=1e-3
        Slope of the log evidence in the log weights and the log noise, relative to the effective
        number of parameters, at which the fit has converged.
    max_iter : int, default=200
        Largest number of steps per start.
    fit_intercept : bool, default=True
    memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    weights_ : ndarray of shape (M,) or (n_outputs, M)
        Learned kernel weights, of the normalised kernels.
    noise_ : float or ndarray of shape (n_outputs,)
        Variance sigma^2 of the noise.
    log_marginal_likelihood_ : float or ndarray of shape (n_outputs,)
        Log evidence, without the hyper-prior.
    stationarity_ : float or ndarray of shape (n_outputs,)
        The residual that `tol` bounds.
    kernel_names_ : list of str
    norms_ : ndarray of the shape of `weights_`
        RKHS norms of the components of the posterior mean.
    model_ : Predictor
        The posterior means, as in `MKLClassifier`; ``model_.variance(X)`` are the variances of the latent
        functions, shape (n, n_models).
    dual_coef_ : ndarray of shape (n,) or (n_outputs, n)
    intercept_ : float or ndarray
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of the predictive mean, where every kernel with weight is linear, as in `MKLClassifier`.
    n_iter_, n_resumed_ : int or ndarray
        Steps from the start chosen, and those of them read from the checkpoint.
    history_ : dict or list of dict
        "log_evidence", "stationarity" and "n_kernels" of every iterate from the start chosen.
    starts_ : dict or list of dict
        Of every start: "noise" and "variance" (the prior variance of all kernels together) where it
        began, the "log_evidence" (hyper-prior included) it reached, its "n_iter" steps, and whether it was
        "chosen" and taken to the end.
    gram_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.
    output_names_ : list of str
        Names of the outputs; only where `y` was a data frame.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = kw.EmpiricalBayesRegressor(per_feature(Linear())).fit(X, y)
    >>> int((reg.weights_ > 0).sum())
    7
    >>> mean, std = reg.predict(X[:2], return_std=True)
    >>> std.round()
    array([54., 54.])
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        noise: float | None = None,
        hyperprior: Any = None,
        normalize: str | None = "variance",
        multioutput: str = "shared",
        gram: str = "auto",
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
        self.noise = noise
        self.hyperprior = hyperprior
        self.normalize = normalize
        self.multioutput = multioutput
        self.gram = gram
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
        """Learn kernel weights, noise and regression function.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
            A sample of weight w has noise of variance sigma^2 / w, and counts as w equal samples.
        """
        spec = Spec.of(self)
        check_choice("multioutput", self.multioutput, ("shared", "independent"))
        table, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, table)
        Y = self._targets(y, weight)
        models = [("fit", partial(self._evidence, slice(None)))]
        if self.multioutput == "independent":
            columns = range(Y.shape[1])
            models = [(f"output {k}", partial(self._evidence, slice(k, k + 1))) for k in columns]
        self._fit_evidence(spec, table, weight, Y, models)
        self.noise_ = one_or_all(self._noises)
        return self

    def _evidence(self, columns: slice, gram: Gram, Y: FloatArray, weight: FloatArray) -> Evidence:
        return GaussianEvidence(gram, Y[:, columns], weight, self.fit_intercept, self.noise)

    @follows_input
    def predict(self, X: Any, return_std: bool = False, include_noise: bool = True) -> Any:
        """Predictive means of new samples, and their standard deviations if asked for.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        return_std : bool, default=False
        include_noise : bool, default=True
            Whether the standard deviation is that of a new observation (weight 1) or, with False,
            only that of the latent function and its intercept.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, n_outputs), as the training targets
        std : ndarray of the same shape, only if `return_std`
        """
        means, variances = self._predictive(X, return_std)
        if not return_std:
            return self._shaped(means)
        std = np.broadcast_to(np.sqrt(variances + self._noises * include_noise), means.shape)
        return self._shaped(means), self._shaped(std).copy()


class EmpiricalBayesClassifier(ClassLabels, BaseEmpiricalBayes):
    """Gaussian process classification with kernel weights learned by empirical Bayes.

    f is a sum of Gaussian processes with covariances d_m k_m plus an intercept with a flat prior; the
    weights minimise the negative log evidence + 1/2 h(d), see `EmpiricalBayesRegressor`. Two methods:

    * "laplace": P(y = +1 | f) = 1 / (1 + exp(-f)), the evidence by Laplace's approximation
      (Rasmussen & Williams 2006, section 3.4). With mean mu and variance s^2 of f at x, the
      probability is MacKay's moderated output 1 / (1 + exp(-mu / sqrt(1 + pi s^2 / 8))).
    * "regression": the labels are taken as targets -1 and +1 with Gaussian noise, as in the paper
      (Tomioka & Suzuki 2011, section 3); the probability is that of a positive new target,
      Phi(mu / sqrt(s^2 + sigma^2)).

    More than two classes are separated one against the rest, each with its own weights; the Gram
    matrices are computed once. "laplace" starts from prior variances of 1, 10, 100 and 1000.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`. With "precomputed" matrices there are no variances of new samples,
        hence no probabilities, and the decision values are not moderated.
    method : {"laplace", "regression"}, default="laplace"
    noise : float, optional
        A known noise variance for "regression"; learned by default.
    hyperprior : callable or object with `price`, optional
        As in `EmpiricalBayesRegressor`.
    normalize : {"variance", "dimension", "spherical", "trace", "center"}, Normalization or None, \
default="variance"
    gram, tol, max_iter, fit_intercept
        As in `EmpiricalBayesRegressor`.
    memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    weights_ : ndarray of shape (M,) or (n_classes, M)
    noise_ : float or ndarray of shape (n_classes,)
        Only for "regression".
    log_marginal_likelihood_ : float or ndarray of shape (n_classes,)
        (Approximate) log evidence, without the hyper-prior.
    classes_ : ndarray
    model_, stationarity_, kernel_names_, norms_, dual_coef_, intercept_, n_iter_, n_resumed_, history_, \
starts_, gram_, n_features_in_, feature_names_in_
        As in `EmpiricalBayesRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.EmpiricalBayesClassifier("rbf").fit(X, y)
    >>> clf.score(X, y) > 0.95
    True
    >>> int(clf.predict_proba(X[:1]).argmax())
    0
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        method: str = "laplace",
        noise: float | None = None,
        hyperprior: Any = None,
        normalize: str | None = "variance",
        gram: str = "auto",
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
        self.method = method
        self.noise = noise
        self.hyperprior = hyperprior
        self.normalize = normalize
        self.gram = gram
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
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
        y : array-like of shape (n,), or (n, n_labels)
            Class labels of any type; or, where samples may have several, a matrix of 0 and 1 with one column
            per label.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec = Spec.of(self)
        check_choice("method", self.method, METHODS)
        table, _, weight, labels = self._labelled(X, y, sample_weight)
        targets = class_targets(labels, len(self.classes_))
        positive = self.classes_[-targets.shape[1] :]
        models = [(f"{name} vs rest", partial(self._evidence, k)) for k, name in enumerate(positive)]
        self._fit_evidence(spec, table, weight, targets, models)
        self.model_.link = Link("sigmoid", np.array([[1.0], [0.0]]))
        if self.method == "regression":
            self.model_.link = Link("normal")
            self.noise_ = one_or_all(self._noises)
        return self

    def _decision(self, X: Any) -> FloatArray:
        """Moderated values of f, whose sigmoid (or Phi) is the probability."""
        return self._scores(X, variance=not self._precomputed)

    @follows_input
    def predict(self, X: Any) -> Any:
        """Class labels of new samples."""
        check_is_fitted(self)
        # moderation keeps the sign, so the mean is enough for two classes, and for labels
        by_sign = self._has_labels or len(self.classes_) == 2
        return self._labels(self._scores(X, False) if by_sign else self._decision(X))

    @follows_input
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, n_classes), columns in the order of `classes_`.

        For more than two classes, the probabilities of each against the rest, divided by their sum.
        """
        return self._probabilities(self._scores(X, variance=True))

    def _affine(self) -> tuple[FloatArray, FloatArray]:
        raise NotLinearError("its decision values are divided by the spread of f at each sample")

    def _scores(self, X: Any, variance: bool) -> FloatArray:
        """Means divided by sqrt(1 + pi s^2 / 8), or by sqrt(s^2 + sigma^2); s = 0 without `variance`."""
        means, variances = self._predictive(X, variance)
        if self.method == "laplace":
            result: FloatArray = means / np.sqrt(1.0 + (np.pi / 8.0) * variances)
            return result
        return means / np.sqrt(variances + self._noises)

    def _evidence(self, k: int, gram: Gram, targets: FloatArray, weight: FloatArray) -> Evidence:
        """Column k of the targets against the rest."""
        y = targets[:, k : k + 1]
        if self.method == "laplace":
            return LaplaceEvidence(gram, y[:, 0], weight, self.fit_intercept)
        return GaussianEvidence(gram, y, weight, self.fit_intercept, self.noise)
