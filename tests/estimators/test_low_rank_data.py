"""On real data, kernels of rank 300 predict as well as the kernels themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF

N_TRAIN, N_SPLITS = 2000, 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["magic04", "spambase"])
def test_rank_300_is_as_accurate_as_full_rank(name):
    if datasets.find(name) is None:
        pytest.skip(f"the data set {name} is not there")
    X, y = datasets.load(name, return_X_y=True)
    model = kw.MKLClassifier([RBF(factor=factor) for factor in (0.1, 0.3, 1.0, 3.0)], C=3.0)
    exact, low = np.array([accuracies(model, X, y, seed) for seed in range(N_SPLITS)]).T
    error = exact.std(ddof=1) / np.sqrt(N_SPLITS)
    print(f"{name}: full rank {exact.mean():.4f} ± {error:.4f}, rank 300 {low.mean():.4f}")
    assert low.mean() >= exact.mean() - error


def accuracies(model, X, y, seed):
    """Of the exact model and of the same with kernels of rank 300, on one split."""
    X, X_new, y, y_new = train_test_split(X, y, train_size=N_TRAIN, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    options = {"approximation": "nystroem", "rank": 300, "random_state": seed}
    return [
        model.set_params(**given).fit(X, y).score(X_new, y_new)
        for given in ({"approximation": None}, options)
    ]
