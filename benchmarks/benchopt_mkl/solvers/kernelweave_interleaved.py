from benchmark_utils.fit import Fit


class Solver(Fit):
    """kernelweave, new weights between the decomposition steps of one machine (solver="interleaved")."""

    name = "kernelweave interleaved"
    solver = "interleaved"
