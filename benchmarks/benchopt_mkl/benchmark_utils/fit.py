"""kernelweave as a solver of this benchmark."""

import numpy as np
from workloads import simulated

from benchmark_utils import WANTED, ByTolerance
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import MKL_SOLVERS, choose_solver


class Fit(ByTolerance):
    """The optimisation alone, on matrices in memory, as the user's loops have them."""

    solver = "auto"

    def skip(self, Ks, y, p, C):
        if self.solver != "auto" and self.solver not in MKL_SOLVERS:
            return True, f"this kernelweave has no solver={self.solver!r}"
        return False, None

    def warm_up(self):
        """Compile what any problem may need: this is called before the first one only."""
        for p in (1.0, 2.0):
            self.fit(*simulated(700, 9), p, WANTED)

    def run(self, tol):
        if tol > 1.0:
            return self.start()
        state = self.fit(self.Ks, self.y, self.p, tol)
        self.alpha, self.weights = state.alpha[:, 0], state.weights

    def fit(self, Ks, y, p, tol):
        problem, regularizer = Problem(y[:, None], Hinge(), np.full((len(y), 1), self.C)), LpNorm(p)
        solver = choose_solver(self.solver, regularizer)
        return solver.solve(problem, DenseGram(Ks), regularizer, tol=tol).state
