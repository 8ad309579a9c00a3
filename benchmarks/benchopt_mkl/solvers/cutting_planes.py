import user_loops
from benchmark_utils import WANTED, ByIteration


class Solver(ByIteration):
    """The loop a user would write for p = 1: scikit-learn's SVC, then a linear program over its cuts.

    Its lower bound is that of all cuts together, so it returns the mixture of their dual variables that
    proves it.
    """

    name = "user loop cutting planes"

    def skip(self, Ks, y, p, C):
        return p != 1, "the cuts are those of p = 1" if p != 1 else None

    def get_next(self, stop_val):
        return stop_val + max(1, stop_val // 2)  # coarse: it stops by itself at the wanted gap

    def run(self, n_machines):
        if n_machines == 0:
            return self.start()
        fit = user_loops.cutting_planes(self.Ks, self.y, self.C, gap=WANTED, most=n_machines)
        self.alpha, self.weights, self.bound = fit.alpha, fit.weights, fit.bound
