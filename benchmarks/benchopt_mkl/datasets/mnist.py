import benchmark_utils  # noqa: F401  the path to workloads
import workloads
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Odd against even digits, Gaussian kernels with 2 sigma^2 = 1.2^0 .. 1.2^(M-1).

    The workload of Figure 7 of Kloft et al. (2011). Reads mnist.npz (X, y) in the folder KERNELWEAVE_DATA.
    """

    name = "MNIST odd-even"
    parameters = {"n_samples, n_kernels": [(500, 50)]}
    test_parameters = {"n_samples, n_kernels": [(40, 4)]}

    def get_data(self):
        if not (workloads.data_folder() / "mnist.npz").exists():
            reason = "mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it"
            return {"Ks": None, "y": None, "missing": reason}
        Ks, y = workloads.mnist_odd_even(self.n_samples, self.n_kernels)
        return {"Ks": Ks, "y": y}
