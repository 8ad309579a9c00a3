"""Novelty detection with many kernels."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from .._typing import FloatArray
from ..gram import Predictor
from ..gram.sphere import SphereGram
from ..kernels import auto
from ..losses import Hinge, OneClass
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import Spec, all_or_nothing, follows_input
from ._input import check_choice, check_weights
from ._mkl import AnyDictionary, BaseMKL, Model, Setup, SubProblem
from ._training import with_callbacks


class NoveltyDetection(OutlierMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Mixin of novelty detectors: the region where the function learned, a score less rho, is positive."""

    nu: float
    C: float | None
    model_: Predictor

    #: values of the function learned, shape (n, 1)
    _decision: Callable[..., FloatArray]

    #: C may be None, and nu says what it is
    _optional_cost = True

    _tasks: ClassVar[tuple[str, ...]] = ("one_class",)

    _fitted: ClassVar[dict[str, type]] = {"offset_": float}

    def _costs(self, weight: FloatArray) -> FloatArray:
        """C times the weights of samples of positive weight, shape (n, 1)."""
        used = weight[weight > 0]
        return np.asarray(self._cost(float(used.sum())) * used[:, None])

    @follows_input
    def score_samples(self, X: Any) -> FloatArray:
        """f + rho, or -||phi_d(x) - c||^2 / 2 of a ball: larger is more normal."""
        result: FloatArray = self.decision_function(X) + self.offset_
        return result

    @follows_input
    def decision_function(self, X: Any) -> FloatArray:
        """Values of f: positive inside the learned region, zero on its boundary.

        Support vectors lie on the boundary, where f is zero but for rounding: it is made zero.
        """
        values = self._decision(X)[:, 0]
        return np.where(np.abs(values) <= 1e-9 * abs(self.offset_), 0.0, values)

    @follows_input
    def predict(self, X: Any) -> FloatArray:
        """+1 for samples inside the learned region or on its boundary, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _cost(self, size: float) -> float:
        """C for training samples of total weight `size`."""
        if self.C is None:
            if not (isinstance(self.nu, Real) and 0 < self.nu <= 1):
                raise ValueError(f"nu={self.nu!r} must be in (0, 1].")
            return 1.0 / (self.nu * size)
        if self.C * size < 1.0 - 1e-9:
            raise ValueError(f"C={self.C!r} is too small: it must be at least 1 / n = {1.0 / size:.4g}.")
        return self.C


class MKLOneClass(NoveltyDetection, BaseMKL):
    """Multiple kernel learning for novelty detection.

    Learns the region where most training samples lie, f(x) >= 0. Kloft et al. (2011), section 3.4, in three
    forms:

    form="rho", with f(x) = sum_m f_m(x) - rho. With one kernel it is the one-class SVM (Schoelkopf et al.
    2001), C = 1 / (nu n):

        min_{f_m, rho, d >= 0}  C sum_i max(0, -f(x_i)) - rho + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    form="level", with the level fixed, f(x) = sum_m f_m(x) - 1: the form that the paper prints, by its loss
    V(t) = max(0, 1 - t). Where h is a constraint, it is the form above at C / rho, divided by rho;
    regularisers that grow as rho does ("wedge", an l1 penalty, concave terms) have this form only:

        min_{f_m, d >= 0}  C sum_i max(0, 1 - sum_m f_m(x_i)) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    form="svdd", with f(x) = (R^2 - ||phi_d(x) - c||^2) / 2 and phi_d the features of sum_m d_m k_m: support
    vector domain description (Tax & Duin 1999), the smallest ball around most samples in the combined
    space:

        min_{c, R, d >= 0}  1/2 R^2 - 1/2 sum_m d_m kappa_m
                            + C sum_i max(0, ||phi_d(x_i) - c||^2 - R^2) / 2 + 1/2 h(d)

    where kappa_m = max_i k_m(x_i, x_i). At given weights the second term is a constant; without it the
    smallest ball would be that of d = 0. Balls are judged by how much smaller they are than the one around
    the origin that holds all samples, as the margin rho is. Where k_m(x, x) is constant, as for Gaussian
    kernels or normalize="spherical", it is the same as "rho". Otherwise it depends on distances alone, so
    a small norm does not make a sample an outlier. A kernel can win by leaving out a sample of very large
    norm: where that is not wanted, use kernels of bounded k(x, x), or rows without such samples.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`, except that "auto" has no linear kernel: to it, the most usual sample would be
        the one that is farthest out in the direction of the data.
    loss : str or Loss, default="one_class"
    regularizer : str or Regularizer, default="lp"
        Convex: "lp" (p = 2), "uniform" (all weights 1), "block", "mahalanobis", and for sparse weights
        "elasticnet", "wedge"; concave terms, whose optimum is a local one: "log", "smkl", "mfocuss",
        "group_lasso", "mkl"; or an object such as ``LpNorm(p=1)``.
    form : {"rho", "level", "svdd"}, default="rho"
        What is minimised, see above. "svdd" takes convex regularisers with weights from a minimum, neither
        `approximation` nor `device`, and predicts by kernels whose values k(x, x) on new samples are known:
        `Precomputed` kernels by sample number, but not kernels="precomputed".
    nu : float, default=0.5
        Bound on the share of training samples left outside, in (0, 1]. Not for form="level", where no share
        of samples follows from C.
    C : float, optional
        Cost of leaving a sample outside; overrides `nu` when given. At least 1 / n; any positive number for
        form="level", which needs it.
    solver : str or MKLSolver, default="auto"
        "auto" by the regulariser; "newton", "alternating", "joint_ascent", "majorize_minimize" or
        "newton_norms", each for some regularisers (see `kernelweave.solvers.multiple`); to compare with,
        "interleaved", "silp" or "qcqp"; or an object.
    normalize, gram, approximation, rank, tol, max_iter, memory_limit, device, n_jobs, random_state, \
checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    offset_ : float
        rho, or 1, or -R^2 / 2: decision_function = score_samples - offset_.
    radius_ : float
        R, with form="svdd".
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, coef_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> X = load_iris().data[:50]
    >>> detector = kw.MKLOneClass(nu=0.1).fit(X)
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [9.0, 9.0, 9.0, 9.0]])
    array([ 1, -1])
    >>> ball = kw.MKLOneClass(nu=0.1, form="svdd").fit(X)
    >>> bool((ball.score_samples(X) >= -(ball.radius_**2) / 2).mean() >= 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str = "one_class",
        regularizer: str | Regularizer = "lp",
        form: str = "rho",
        nu: float = 0.5,
        C: float | None = None,
        normalize: str | None = "variance",
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
        self.regularizer = regularizer
        self.form = form
        self.nu = nu
        self.C = C
        self.normalize = normalize
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

    radius_: float  # of one form only

    @property
    def _spec_of_kernels(self) -> Any:
        return (
            auto(linear=False) if isinstance(self.kernels, str) and self.kernels == "auto" else self.kernels
        )

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the region of the training samples.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
            With `approximation` also a Dask array or data frame, or a `ParquetTable`. From these, and from
            arrays mapped from disk, kernels take their parameters from at most 100,000 rows.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec = Spec.of(self)
        if self.normalize == "center":
            nothing = "leaves MKLOneClass nothing to learn (the mean of centred samples is 0)"
            same = "changes nothing for form='svdd' (a ball is the same wherever the origin is)"
            raise ValueError(
                f"normalize='center' {same if self.form == 'svdd' else nothing}: use 'variance', "
                "'spherical', 'trace' or None."
            )
        self._check_form(spec)
        table, _ = self._validate(X)
        weight = check_weights(sample_weight, table)
        costs = self._costs(weight)
        if self.form == "level":
            problem = Problem(np.ones_like(costs), Hinge(), costs, fit_intercept=False)
        else:
            problem = Problem(np.zeros_like(costs), spec.loss, costs)
        self._fit_problems(Setup(spec, table, weight, [SubProblem("fit", problem)]))
        return self

    def _check_form(self, spec: Spec) -> None:
        """Refuse what a form cannot do."""
        check_choice("form", self.form, ("rho", "level", "svdd"))
        if self.form == "level" and not isinstance(spec.loss, OneClass):
            raise ValueError(f"form='level' has a loss of its own: leave out loss={self.loss!r}.")
        if self.form != "svdd":
            return
        if not spec.regularizer.convex or spec.regularizer.ascends:
            raise ValueError(
                f"form='svdd' has no certificate with {spec.regularizer!r}: use 'lp', 'uniform' or "
                "another convex regulariser whose weights come from a minimum, or form='rho'."
            )
        if self.approximation is not None or spec.device is not None:
            raise ValueError(
                "form='svdd' is computed from Gram matrices on the host: pass approximation=None and "
                "device=None, or form='rho'."
            )

    def _dictionary(self, setup: Setup, begin: bool = False) -> AnyDictionary:
        dictionary = super()._dictionary(setup, begin and self.form != "svdd")
        if self.form == "svdd":
            dictionary.gram = SphereGram(dictionary.gram)
        return dictionary

    def _store(self, dictionary: AnyDictionary, models: list[Model], weight: FloatArray) -> None:
        """Set the fitted attributes; the level, or the centre of the ball, moves the intercept.

        With K~ of `SphereGram` and sum_i alpha_i = 1, sum_i alpha_i k~_d(x, x_i) - rho is

            sum_i alpha_i k_d(x, x_i) - k_d(x, x) / 2 + kappa_d - sum_i alpha_i k_d(x_i, x_i) / 2 - rho

        and R^2 = kappa_d + alpha' K~_d alpha - 2 rho.
        """
        super()._store(dictionary, models, weight)
        self.offset_, moved = -float(self.model_.intercept[0]), 0.0
        if hasattr(self, "radius_"):
            del self.radius_
        if self.form == "level":
            self.offset_, moved = 1.0, -1.0
        elif self.form == "svdd":
            gram, state = dictionary.gram, models[0].solution.state
            assert isinstance(gram, SphereGram)
            d, top = state.weights, float(state.weights @ gram.tops)
            moved = top - 0.5 * float(d @ gram.own @ state.alpha[:, 0])
            square = top + float(d @ state.certificate.dual_norms**2) - 2.0 * self.offset_
            self.offset_, self.radius_ = -0.5 * square, float(np.sqrt(max(square, 0.0)))
        self.model_.ball = self.form == "svdd"
        self.model_.intercepts = self.model_.intercepts + moved
        self.intercept_ = float(self.intercept_ + moved)

    def _cost(self, size: float) -> float:
        if self.form != "level":
            return super()._cost(size)
        if self.C is None:
            raise ValueError("form='level' has no nu: pass C, or use form='rho'.")
        return self.C
