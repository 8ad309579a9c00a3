"""scikit-learn's LIBSVM as an interchangeable reference."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC, SVR, OneClassSVM

from ..._typing import FloatArray
from ...losses import Loss
from ..problem import Problem
from .base import Machine, SingleSolver, machine_gap


class LIBSVM(SingleSolver):
    """Solves with LIBSVM (Chang & Lin 2011) through scikit-learn; no warm start.

    Same losses and same answers as `SMO`; kept as the reference the compiled solver is tested
    against.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.losses import Hinge
    >>> from kernelweave.solvers import Problem
    >>> y = np.array([[1.0], [-1.0]])
    >>> LIBSVM().solve(np.eye(2), Problem(y, Hinge(), np.ones((2, 1))), tol=1e-6).alpha.ravel()
    array([ 1., -1.])
    """

    name = "libsvm"
    requires = ("linear_dual",)
    needs_intercept = True

    def missing(self, loss: Loss) -> list[str]:
        """The abilities it lacks; of regression losses LIBSVM knows those with alpha in [-C, C] only."""
        lacking = super().missing(loss)
        if lacking or loss.task != "regression":
            return lacking
        lower, upper = loss.dual_box(np.zeros(1))
        return [] if lower[0] == -1.0 and upper[0] == 1.0 else ["dual_box of -1 to 1"]

    def solve_column(self, K: FloatArray, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        eps, unit, K_unit = min(1e-2, tol), *self._units(K, problem)
        y, C = problem.y[:, 0] / unit, problem.C[:, 0] / unit
        while True:
            model = self._model(problem, eps, unit).fit(K / K_unit, y, sample_weight=C)
            alpha = np.zeros(problem.shape)
            alpha[model.support_, 0] = unit * model.dual_coef_.ravel()
            alpha = problem.feasible(alpha)
            machine = Machine(alpha, K @ alpha, int(np.max(model.n_iter_)))
            if eps <= 1e-12 or machine_gap(problem, alpha, machine.fitted) <= tol:
                return machine
            eps *= 0.1

    @staticmethod
    def _units(K: FloatArray, problem: Problem) -> tuple[float, float]:
        """Of targets and of K, in which LIBSVM's tolerance, a violation, is relative.

        Targets in units u have the solution alpha / u, at costs C / u; that of the one-class machine does
        not depend on the unit of K.
        """
        if problem.loss.task == "regression":
            return float(np.abs(problem.centred(problem.y)).max()) or 1.0, 1.0
        return 1.0, float(K.diagonal().max()) or 1.0 if problem.loss.task == "one_class" else 1.0

    def _model(self, problem: Problem, eps: float, unit: float) -> SVC | SVR | OneClassSVM:
        """The scikit-learn machine of this loss, with C_i passed as sample weights."""
        if problem.loss.task == "one_class":
            return OneClassSVM(kernel="precomputed", nu=min(1.0, 1.0 / problem.C.sum()), tol=eps)
        if problem.loss.task == "regression":
            _, kink = problem.loss.linear_dual(problem.y)
            return SVR(kernel="precomputed", C=1.0, epsilon=kink / unit, tol=eps)
        return SVC(kernel="precomputed", C=1.0, tol=eps)
