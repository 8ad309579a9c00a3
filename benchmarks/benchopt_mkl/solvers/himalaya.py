import numpy as np
from benchmark_utils import ByIteration, machine, on_ball
from himalaya.kernel_ridge import solve_multiple_kernel_ridge_hyper_gradient

#: entries of all matrices beyond which a few iterations take minutes on one core
MOST_ENTRIES = 5e6


class Solver(ByIteration):
    """himalaya's multiple-kernel ridge regression by hyper-gradient descent, NumPy backend.

    It solves another problem: the weights minimise the squared error of a cross-validated ridge regression
    on the labels. Here they are scaled onto the lp ball and the support vector machine is trained at
    them; the certificate says how far that is from the optimum.
    """

    name = "himalaya hyper-gradient"
    requirements = ["pip::himalaya"]

    def skip(self, Ks, y, p, C):
        large = Ks.size > MOST_ENTRIES
        return large, "even a few iterations take minutes at this size" if large else None

    def get_next(self, stop_val):
        return max(stop_val + 1, 3 * stop_val)

    def run(self, n_iter):
        if n_iter == 0:
            return self.start()
        deltas = solve_multiple_kernel_ridge_hyper_gradient(
            self.Ks, self.y[:, None], max_iter=n_iter, tol=None, random_state=0, progress_bar=False
        )[0][:, 0]
        self.weights = on_ball(np.exp(deltas - deltas.max()), self.p)
        self.alpha = machine(self.Ks, self.y, self.C, self.weights)
