"""What the objective, the data sets and the solvers of this benchmark share; `fit` has kernelweave's part.

Importing it puts the folder above (`user_loops`, `workloads`) on the path and leaves BLAS one thread.
"""

import sys
from pathlib import Path

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import StoppingCriterion
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
ONE_THREAD = threadpool_limits(1)  # kept: limits are lifted with the object

#: the relative duality gap a solver is timed to
WANTED = 1e-3
TOLERANCES = 1e-1, 3e-2, 1e-2, 3e-3, WANTED


class CertifiedGap(StoppingCriterion):
    """Stop at a certified relative gap of `wanted`, or when the best one is `patience` points old.

    A solver that is given a tolerance also has to be asked for `wanted`: a gap met by luck at a larger
    tolerance does not count.
    """

    def __init__(self, wanted=WANTED, patience=8, strategy=None, key_to_monitor="gap", minimize=True):
        self.wanted, self.patience = wanted, patience
        super().__init__(
            strategy=strategy,
            key_to_monitor=key_to_monitor,
            minimize=minimize,
            wanted=wanted,
            patience=patience,
        )

    def check_convergence(self, objective_list):
        gaps = [point[self.key_to_monitor_] for point in objective_list]
        stalled = len(gaps) - 1 - int(np.argmin(gaps)) >= self.patience
        asked = self.strategy != "tolerance" or objective_list[-1]["stop_val"] <= self.wanted
        progress = np.log(np.clip(min(gaps), self.wanted, 1.0)) / np.log(self.wanted)
        return (asked and gaps[-1] <= self.wanted) or stalled, float(progress)


class MKLSolver(BaseSolver):
    """A solver that leaves its answer in `alpha`, `weights` and, if it has one, `bound`."""

    def set_objective(self, Ks, y, p, C):
        self.Ks, self.y, self.p, self.C = Ks, y, p, C
        self.start()

    def start(self):
        """The answer before any work: equal weights on the lp ball and no machine."""
        self.weights, self.alpha = on_ball(np.ones(len(self.Ks)), self.p), np.zeros(len(self.y))
        self.bound = None  # an instance serves several problems

    def get_result(self):
        return {"alpha": self.alpha, "weights": self.weights, "bound": self.bound}


class ByTolerance(MKLSolver):
    """Run again at smaller and smaller tolerances: each point of the curve is a whole fit."""

    sampling_strategy = "tolerance"
    stopping_criterion = CertifiedGap(strategy="tolerance")

    def get_next(self, stop_val):
        return next((tol for tol in TOLERANCES if tol < stop_val), stop_val / 3.0)


class ByIteration(MKLSolver):
    """Run again with more and more iterations: each point of the curve is a whole fit."""

    sampling_strategy = "iteration"
    stopping_criterion = CertifiedGap(strategy="iteration")


def on_ball(weights, p):
    """Weights scaled to ||d||_p = 1."""
    return weights / np.linalg.norm(weights, p)


def machine(Ks, y, C, weights):
    """Dual variables of scikit-learn's SVC at these weights, as the user's loops train it."""
    fit = SVC(kernel="precomputed", C=C, tol=1e-4).fit(np.tensordot(weights, Ks, 1), y)
    alpha = np.zeros(len(y))
    alpha[fit.support_] = fit.dual_coef_.ravel()
    return alpha
