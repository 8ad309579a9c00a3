"""Classification with many kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers.base import MKLSolver
from ._base import Spec, all_or_nothing
from ._input import check_choice
from ._labels import ClassLabels, class_problems, fit_link, fit_pair_link, link_of, sample_factors
from ._mkl import BaseMKL, Setup
from ._training import with_callbacks

SCHEMES = ("ovr", "ovo", "shared", "joint")


class MKLClassifier(ClassLabels, BaseMKL):
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
        `KernelStack`, or a list of matrices. Where X has several tables (`Views`), the keys of a dict are
        names of views, the third entry of a triple is the name of a view, and any other kernel is made once
        per view.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "logistic", or a regression loss on labels -1 and +1: "squared",
        "eps_insensitive", "huber".
    regularizer : str or Regularizer, default="lp"
        Convex: "lp" (p = 2), "uniform" (all weights 1), "block", "mahalanobis", and for sparse weights
        "elasticnet", "wedge"; concave terms, whose optimum is a local one: "log", "smkl", "mfocuss",
        "group_lasso", "mkl"; or an object such as ``LpNorm(p=1)``.
    C : float, default=1.0
        Cost of errors; larger fits the training data more closely.
    normalize : {"variance", "dimension", "spherical", "trace", "center"}, Normalization or None, \
default="variance"
        How kernels are made comparable, with constants taken from the training samples. "variance": the same
        variance in feature space. "dimension": the same effective dimension, for linear kernels beside
        narrow Gaussian ones (see `kernelweave.kernels.Dimension`). "spherical": k(x, x) = 1. "trace": mean
        diagonal 1. "center": mean 0 in feature space.
    missing : {"error", "mask", "margin", "complete"}, default="error"
        What to do, in `fit` and in predictions, with samples that lack a view: for `Views`, and for
        precomputed matrices with rows of NaN. "error": refuse them. "mask": let the missing component be 0,
        which is the mean, and add an indicator of each view with gaps as one more kernel (no indicators with
        `approximation`). "margin": the same without indicators, with margins in the space of each sample's
        own views; for ``regularizer=LpNorm(p=1)``. "complete": fill the view in from the sample's other
        views (conditional mean embeddings). All but "error" centre every kernel on the samples that have it,
        at the scale that `normalize` gives it there. Where no training sample lacks a view, the fit is the
        same as with "error", and new samples may still lack views.
    multiclass : {"ovr", "ovo", "shared", "joint"}, default="ovr"
        What to do with more than two classes. "ovr": one model per class. "ovo": one model per pair of
        classes. "shared": one model per class, with the same kernel weights for all. "joint": one model of
        all classes (Zien & Ong 2007), also with shared weights, whose loss max_k (f_k + [k != y]) - f_y
        compares the classes with one another; it needs the hinge loss and no `approximation`. The Gram
        matrices are computed once in every case. With several labels per sample there is one model per label
        ("ovr"), or one per label with shared weights ("shared").
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" lets all classes weigh the same, samples counted by their weights.
    solver : str or MKLSolver, default="auto"
        "auto" by the regulariser; "newton", "alternating", "joint_ascent", "majorize_minimize" or
        "newton_norms", each for some regularisers (see `kernelweave.solvers.multiple`); to compare with,
        "interleaved", "silp" or "qcqp"; or an object.
    gram : {"auto", "dense", "packed", "cached", "store", "blocked", "dask"}, default="auto"
        Where the Gram matrices live. "dense": all in memory. "packed": in memory as triangles. "cached": rows
        are computed when asked for and kept in a cache. "blocked": nowhere; they are computed again, block by
        block, whenever they are needed. "auto" takes the first of these that `memory_limit` allows. "store"
        reads the matrices of a `GramStore` from its file. "dask" spreads the kernels over the workers of the
        current Dask client; each worker keeps its kernels or computes them again, as its memory allows. With
        `approximation` the rows are spread instead.
    approximation : {"nystroem", "rff"}, Approximation or None, default=None
        Features in place of Gram matrices, for fits whose cost is linear in n. "nystroem": features from
        landmarks. "rff": random frequencies, for Gaussian and Laplacian kernels. Or an object such as
        ``Nystroem(landmarks="kmeans")``. A kernel that has at most `rank` features of its own (linear,
        polynomial) uses these and is exact.
    rank : int, default=100
        Largest number of features per kernel with `approximation`.
    tol : float, default=1e-3
        Relative duality gap at which the fit has converged.
    max_iter : int, default=200
        Largest number of single-kernel fits: trainings of an SVM or ridge model at fixed kernel weights.
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
        A file to which the state of the fit is written as it runs. A fit that finds the file resumes from
        it, and one that had converged returns at once. `tol`, `solver`, `max_iter` (which counts the fits of
        all runs) and `gram` may differ from before; a checkpoint of another problem is refused.
    verbose : int, default=0
        1 prints one line per model, 2 one line per single-kernel fit.

    Attributes
    ----------
    weights_ : ndarray of shape (M,) or (n_models, M)
        Learned kernel weights, of the normalised kernels.
    kernel_names_ : list of str
    norms_ : ndarray of the shape of `weights_`
        RKHS norms ||f_m|| of the components: how much each kernel contributes.
    model_ : Predictor
        The functions learned: ``model_(X)`` are their values, shape (n, n_functions), and
        ``model_.components(X)`` what each kernel adds to them. It takes X as the kernels do, unchecked.
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
        With several labels per sample, the names of the columns of y, or their numbers.
    multilabel_ : bool
        Whether samples have several labels.
    objective_, dual_gap_ : float or ndarray of shape (n_models,)
        Primal objective, and certified relative duality gap; the gap is infinite where the regulariser is
        not convex.
    stationarity_ : float or ndarray of shape (n_models,)
        What `tol` bounds: the relative duality gap. For a regulariser that is not convex, the largest
        share by which a weight differs from the one that the component norms ask for (at least the
        duality gap of the single-kernel fit at these weights); zero at a stationary point.
    n_iter_ : int or ndarray
        Number of single-kernel fits.
    n_resumed_ : int or ndarray
        How many of `n_iter_` were done by an earlier run and read from the checkpoint.
    history_ : dict or list of dict
        `primal`, `dual` and relative `gap` after every single-kernel fit that was certified on all samples
        and kernels, and `n_passes`: passes over the kernels until then (a half reads half of the entries),
        without the one that checks given matrices.
    gram_, gram_reason_ : str
        The Gram engine used, and why.
    patterns_ : list of (tuple of str, int)
        With `Views`: which views samples have together and how many samples have them, the most frequent
        first.
    observed_ : dict of str to float
        With `Views`: the share of the training samples that have each view.
    approximation_errors_ : ndarray of shape (M,)
        With `approximation`: the share of the trace of each kernel that its features miss; for random
        frequencies the relative error on some of the samples.
    full_rank_gap_ : float or ndarray of shape (n_models,)
        With `approximation`: a bound on the relative duality gap of the problem with the kernels
        themselves; NaN for random frequencies.
    n_features_in_, feature_names_in_
        As in scikit-learn. With `Views`, the columns of all views, such as "rna: g1"; names where all of
        them have names.
    views_in_ : dict of str to list of str, or int
        Where X had several tables: their names, and the names of their columns, or how many there are.

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
        missing: str = "error",
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
        self.missing = missing
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

    _fitted: ClassVar[dict[str, type]] = {"_pairwise": bool}

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and classifier.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), dict of tables, or kernels
            With `approximation` also a Dask array or data frame, or a `ParquetTable`. From these, and from
            arrays mapped from disk, kernels take their parameters from at most 100,000 rows.
        y : array-like of shape (n,), or (n, n_labels)
            Class labels of any type; or, where samples may have several, a matrix of 0 and 1 with one column
            per label.
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        setup = self._setup(X, y, sample_weight)
        loss, weight = setup.spec.loss, setup.weight[setup.weight > 0]
        models = self._fit_problems(setup, margins=not hasattr(loss, "probability"))
        margins = [model.margins for model in models]
        if self._pairwise:
            targets = [one.problem.y for one in setup.problems]
            weights = [weight[one.rows] for one in setup.problems]
            self.model_.link = link_of(loss, fit_pair_link, margins, targets, weights)
        else:
            self.model_.link = link_of(loss, fit_link, margins, setup.labels, weight)
        return self

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problems to solve."""
        spec = Spec.of(self)
        check_choice("multiclass", self.multiclass, SCHEMES)
        if self.multiclass == "joint" and self.approximation is not None:
            raise ValueError(
                f"multiclass='joint' trains on Gram matrices, and approximation={self.approximation!r} has "
                "none: pass approximation=None, or multiclass='shared'."
            )
        table, _, weight, labels = self._labelled(X, y, sample_weight)
        used = weight[weight > 0]
        self._pairwise = self.multiclass == "ovo" and len(self.classes_) > 2
        factors = sample_factors(self.class_weight, self.classes_, labels, used)
        C = self.C * (used * factors.T).T
        problems = class_problems(self.multiclass, self.classes_, labels, C, spec.loss, self.fit_intercept)
        return Setup(spec, table, weight, problems, labels)
