"""Several views of the same samples: together at least as good as the best of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

import kernelweave as kw
from kernelweave.kernels import RBF


def load(folder, name):
    path = folder / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with np.load(path) as data:
        return {key: data[key] for key in data.files}


def side_by_side(views):
    """One table of all views, standardised, and the kernels on their columns."""
    kernels, tables, start = {}, [], 0
    for name, X in views.items():
        X = X.astype(float)
        spread = X.std(axis=0)
        tables.append((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        kernels[name] = RBF("median", columns=slice(start, start + X.shape[1]))
        start += X.shape[1]
    return np.hstack(tables), kernels


def accuracies(kernels, X, y, X_new, y_new, **options):
    together = kw.MKLClassifier(kernels, **options).fit(X, y)
    alone = [kw.MKLClassifier({name: kernel}, **options).fit(X, y) for name, kernel in kernels.items()]
    assert np.max(together.dual_gap_) <= together.tol
    return together.score(X_new, y_new), max(model.score(X_new, y_new) for model in alone)


@pytest.mark.parametrize("scheme", ["ovr", "shared"])
def test_handwritten_digits_in_six_views(data_folder, scheme):
    data = load(data_folder, "mfeat")
    rows = np.random.default_rng(0).permutation(len(data["y"]))[:600]
    views = {str(name): data[f"X_{name}"][rows] for name in data["view_names"]}
    X, kernels = side_by_side(views)
    y = data["y"][rows]
    ours, best = accuracies(
        kernels, X[:300], y[:300], X[300:], y[300:], regularizer=kw.LpNorm(p=2), C=10.0, multiclass=scheme
    )
    assert ours >= best - 0.02
    assert ours > 0.93


def test_alzheimer_in_three_omics(data_folder):
    """Cross-validated: the best of three views on one small test set is a matter of luck."""
    data = load(data_folder, "rosmap_mogonet")
    names = [str(name) for name in data["view_names"]]
    views = {name: np.vstack([data[f"X_{name}"], data[f"X_test_{name}"]]) for name in names}
    X, kernels = side_by_side(views)
    y = np.concatenate([data["y"], data["y_test"]])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = cross_val_score(kw.MKLClassifier(kernels), X, y, cv=folds).mean()
    alone = [
        cross_val_score(kw.MKLClassifier({name: kernel}), X, y, cv=folds).mean()
        for name, kernel in kernels.items()
    ]
    assert ours >= max(alone) - 0.02


def test_given_kernels_of_real_data_are_taken_as_they_are(data_folder):
    """Drug similarities from several sources, as matrices: rounding in them is no obstacle."""
    data = load(data_folder, "pairwisemkl_drugresponse")
    K = np.moveaxis(data["K_drug"].astype(float), 0, 2)
    target = K[:, :, 0] @ np.random.default_rng(0).normal(size=len(K))
    model = kw.MKLRegressor("precomputed", C=10.0).fit(K, target)
    assert model.dual_gap_ <= model.tol
    assert model.weights_.argmax() == 0
