import user_loops
from benchmark_utils import WANTED, ByIteration


class Solver(ByIteration):
    """The loop a user would write for p > 1: scikit-learn's SVC, then the weights in closed form."""

    name = "user loop closed form"
    test_config = {"objective": {"p": 2}}

    def skip(self, Ks, y, p, C):
        return p <= 1, "the closed form need not converge at p = 1" if p <= 1 else None

    def get_next(self, stop_val):
        return stop_val + max(1, stop_val // 2)  # coarse: it stops by itself at the wanted gap

    def run(self, n_machines):
        if n_machines == 0:
            return self.start()
        fit = user_loops.closed_form(self.Ks, self.y, self.C, self.p, gap=WANTED, most=n_machines)
        self.alpha, self.weights = fit.alpha, fit.weights
