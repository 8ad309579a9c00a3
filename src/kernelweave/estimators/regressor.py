"""Regression with many kernels."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import Spec
from ._input import check_choice, check_weights
from ._labels import RealTargets
from ._mkl import BaseMKL, Setup, SubProblem


class MKLRegressor(RealTargets, BaseMKL):
    """Multiple kernel learning for regression.

    Learns f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b together with the kernel weights d:

        min_{f_m, b, d >= 0}  C sum_i V(y_i, f(x_i)) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    With one kernel it is kernel ridge regression (alpha = 1/C), support vector regression or
    robust regression, by the loss. Kloft et al. (2011).

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive" or "huber"; objects such as ``EpsInsensitive(eps=0.01)``. "ranking" puts
        samples in the order of y (`losses.Ranking`), within queries where these are a second column of y;
        its `score` is the share of pairs in the right order.
    regularizer : str or Regularizer, default="lp"
        Convex: "lp" (p = 2), "uniform" (all weights 1), "block", "mahalanobis", and for sparse weights
        "elasticnet", "wedge"; concave terms, whose optimum is a local one: "log", "smkl", "mfocuss",
        "group_lasso", "mkl"; or an object such as ``LpNorm(p=1)``.
    C : float, default=1.0
    normalize : {"variance", "dimension", "spherical", "trace", "center"}, Normalization or None, \
default="variance"
    missing : {"error", "mask", "margin", "complete"}, default="error"
        What to do with views that samples lack, as in `MKLClassifier`.
    multioutput : {"shared", "independent"}, default="shared"
        Several outputs share one set of kernel weights, or learn one each.
    solver : str or MKLSolver, default="auto"
        "auto" by the regulariser; "newton", "alternating", "joint_ascent", "majorize_minimize" or
        "newton_norms", each for some regularisers (see `kernelweave.solvers.multiple`); to compare with,
        "interleaved", "silp" or "qcqp"; or an object.
    gram, approximation, rank, tol, max_iter, fit_intercept, memory_limit, device, n_jobs, random_state, \
checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Where every kernel with weight is linear, as in `MKLClassifier`.
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, patterns_, observed_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.
    output_names_ : list of str
        Names of the outputs; only where `y` was a data frame.

    Notes
    -----
    The duality gap is relative to the objective, so `tol` means the same in every unit of y. With the
    squared loss and a constraint on the weights ("lp", "uniform", "block", "mahalanobis") nothing else has
    units either: targets s y give the same weights, s times the predictions and s^2 times the objective.

    These do have units: `eps` of the eps-insensitive loss and `delta` of Huber's, in units of y, the former
    together with C (s eps and s C); and C wherever the penalty does not grow with the square of the norms. A
    penalty of order q, such as ``LpNorm(p, form="penalty")`` with q = 2p / (p + 1), gives the same model at
    the cost C s^(q - 2); for the elastic net and concave terms no cost does.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = kw.MKLRegressor(per_feature(Linear()), regularizer=kw.LpNorm(p=1)).fit(X, y)
    >>> reg.kernel_names_[int(reg.weights_.argmax())]
    'x8'
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "squared",
        regularizer: str | Regularizer = "lp",
        C: float = 1.0,
        normalize: str | None = "variance",
        missing: str = "error",
        multioutput: str = "shared",
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
        self.multioutput = multioutput
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

    _tasks = ("regression", "ranking")

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problems to solve."""
        spec = Spec.of(self)
        check_choice("multioutput", self.multioutput, ("shared", "independent"))
        table, y = self._validate(X, y, multi_output=True, y_numeric=True)
        weight = check_weights(sample_weight, table)
        Y = spec.loss.targets(self._targets(y, weight))
        self._flat = self._flat or Y.ndim == 3
        joint = Problem.weighted(Y, spec.loss, self.C, weight[weight > 0], self.fit_intercept)
        problems = [SubProblem("fit", joint)]
        if self.multioutput == "independent":
            problems = [SubProblem(f"output {k}", joint.column(k)) for k in range(Y.shape[1])]
        return Setup(spec, table, weight, problems)
