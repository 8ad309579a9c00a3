from benchmark_utils.fit import Fit


class Solver(Fit):
    """kernelweave, with the solver it chooses for the norm (solver="auto")."""

    name = "kernelweave"
