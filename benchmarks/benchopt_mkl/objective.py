"""lp-norm multiple kernel learning with the hinge loss, and the certificate of an answer."""

import numpy as np
from benchmark_utils import on_ball
from benchopt import BaseObjective

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import certificate, relative


class Objective(BaseObjective):
    """Certified primal value and relative duality gap of (alpha, weights).

        f = sum_m d_m K_m alpha + b,  n_m = d_m r_m,  r_m^2 = alpha' K_m alpha
        P = C sum_i max(0, 1 - y_i f_i) + 1/2 (sum_m n_m^q)^(2/q),  q = 2p/(p+1)
        D = sum_i |alpha_i| - 1/2 ||r^2||_{p/(p-1)}

    Whatever a solver believes of its answer, both values are computed here from their definitions. A
    solver whose lower bound comes from other dual variables than its predictor returns them as `bound`.
    """

    name = "lp-norm MKL"
    min_benchopt_version = "1.10"
    requirements = ["pip::kernelweave"]
    parameters = {"p": [1, 4 / 3, 2, 4], "C": [1.0]}
    parameter_template = "p={p:.3g},C={C:g}"
    test_dataset_name = "simulated"
    sampling_strategy = "tolerance"

    def skip(self, Ks, y, missing=None):
        return missing is not None, missing

    def set_data(self, Ks, y, missing=None):
        self.Ks, self.y, self.gram = Ks, y, DenseGram(Ks)
        self.problem = Problem(y[:, None], Hinge(), np.full((len(y), 1), self.C))

    def get_objective(self):
        return {"Ks": self.Ks, "y": self.y, "p": self.p, "C": self.C}

    def get_one_result(self):
        return {"alpha": np.zeros(len(self.y)), "weights": on_ball(np.ones(len(self.Ks)), self.p)}

    def evaluate_result(self, alpha, weights, bound=None):
        proof = self.certificate(alpha, weights)
        dual = proof.dual if bound is None else max(proof.dual, self.certificate(bound, weights).dual)
        return {
            "value": proof.primal,
            "dual": dual,
            "gap": relative(proof.primal - dual, proof.primal),
            "n_kernels": int(np.count_nonzero(weights)),
        }

    def certificate(self, alpha, weights):
        """kernelweave's, at `alpha` without what rounding left outside the box and the zero sum."""
        alpha = self.problem.feasible(alpha[:, None])
        return certificate(self.problem, self.gram, LpNorm(self.p), alpha, weights)
