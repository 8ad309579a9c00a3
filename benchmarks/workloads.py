"""Problems the benchmarks run on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import euclidean_distances


def data_folder() -> Path:
    """Where the real data sets are: KERNELWEAVE_DATA, or shared/data beside the project."""
    named = os.environ.get("KERNELWEAVE_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def mnist_odd_even(
    n: int, n_kernels: int = 50, seed: int = 0, ratio: float = 1.2
) -> tuple[np.ndarray, np.ndarray]:
    """Figure 7 of the lp-norm paper: Gaussian kernels with 2 sigma^2 = ratio^0 .. ratio^(M-1).

    Odd against even digits of MNIST (pixels in [0, 1]), variance-normalised matrices.

    Returns
    -------
    Ks : ndarray of shape (n_kernels, n, n)
    y : ndarray of shape (n,)
    """
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(seed).permutation(len(file["y"]))[:n]
        X, y = file["X"][rows].astype(np.float64) / 255.0, np.where(file["y"][rows] % 2, 1.0, -1.0)
    distances = euclidean_distances(X, squared=True)
    Ks = np.empty((n_kernels, n, n))
    for m in range(n_kernels):
        np.exp(distances / -(ratio**m), out=Ks[m])
        Ks[m] /= Ks[m].diagonal().mean() - Ks[m].mean()
    return Ks, y


def simulated(n: int, n_kernels: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian kernels of three widths on random parts of 40 features, 12 of which matter.

    Two classes, 5 % of the labels flipped; variance-normalised matrices.

    Returns
    -------
    Ks : ndarray of shape (n_kernels, n, n)
    y : ndarray of shape (n,)
    """
    X, labels = make_classification(
        n, 40, n_informative=8, n_redundant=4, n_clusters_per_class=3, flip_y=0.05, random_state=seed
    )
    X, rng = (X - X.mean(axis=0)) / X.std(axis=0), np.random.default_rng(seed)
    Ks = np.empty((n_kernels, n, n))
    for m in range(n_kernels):
        columns = rng.choice(40, size=6, replace=False)
        distances = euclidean_distances(X[:, columns], squared=True)
        np.exp(-(0.02, 0.1, 0.5)[m % 3] * distances, out=Ks[m])
        Ks[m] /= Ks[m].diagonal().mean() - Ks[m].mean()
    return Ks, np.where(labels, 1.0, -1.0)
