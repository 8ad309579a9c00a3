import benchmark_utils  # noqa: F401  the path to workloads
import workloads
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Gaussian kernels of three widths on random parts of simulated features; needs no files."""

    name = "simulated"
    parameters = {"n_samples, n_kernels": [(300, 15)], "seed": [0]}
    test_parameters = {"n_samples, n_kernels": [(40, 4)]}

    def get_data(self):
        Ks, y = workloads.simulated(self.n_samples, self.n_kernels, self.seed)
        return {"Ks": Ks, "y": y}
