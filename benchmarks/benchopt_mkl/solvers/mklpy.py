import torch
from benchmark_utils import MKLSolver, machine, on_ball
from benchopt.stopping_criterion import SingleRunCriterion
from MKLpy.algorithms import EasyMKL

torch.set_num_threads(1)


class Solver(MKLSolver):
    """EasyMKL of MKLpy, the one of its algorithms whose weights come nearest to those of lp-norm MKL.

    It solves another problem, in one step: the weights are y' G K_m G y at the dual variables G of a
    large-margin machine on the plain sum, regularised by `lam`. Here they are scaled onto the lp ball and the
    support vector machine is trained at them; the certificate says how far that is from the optimum.
    """

    name = "MKLpy EasyMKL"
    requirements = ["pip::MKLpy"]
    parameters = {"lam": [0.1, 0.5, 0.9]}
    sampling_strategy = "run_once"
    stopping_criterion = SingleRunCriterion(strategy="run_once")

    def set_objective(self, Ks, y, p, C):
        super().set_objective(Ks, y, p, C)
        self.matrices, self.labels = [torch.from_numpy(K) for K in Ks], torch.from_numpy(y)

    def run(self, _):
        fit = EasyMKL(lam=self.lam).combine_kernels(self.matrices, self.labels)
        self.weights = on_ball(fit.weights.numpy(), self.p)
        self.alpha = machine(self.Ks, self.y, self.C, self.weights)
