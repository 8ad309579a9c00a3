"""SMKL on simulated spectra: the informative groups exactly, where l1-norm MKL keeps more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.kernels import Linear, bands

GROUPS, WIDTH, INFORMATIVE = 40, 50, {7, 23}


def spectra(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Smooth bumps of one latent factor a group, neighbours alike, plus noise; two groups carry the class."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, GROUPS))
    for g in range(1, GROUPS):
        latent[:, g] = 0.4 * latent[:, g - 1] + np.sqrt(1 - 0.4**2) * latent[:, g]
    shape = np.exp(-0.5 * np.linspace(-2, 2, WIDTH) ** 2)
    X = np.repeat(latent, WIDTH, axis=1) * np.tile(shape, GROUPS) + 0.3 * rng.normal(size=(n, GROUPS * WIDTH))
    first, second = sorted(INFORMATIVE)
    score = latent[:, first] - latent[:, second] + 0.3 * rng.normal(size=n)
    return X, np.where(score > 0, 1, -1)


def compare(seed: int) -> dict[str, tuple[set[int], np.ndarray]]:
    """Groups kept and held-out hits of both, each with C chosen by the same 5-fold search."""
    X, y = spectra(seed, 1200)
    train, test = slice(0, 200), slice(200, None)
    found = {}
    for name, regularizer in {"smkl": kw.SMKL(), "l1": kw.LpNorm(p=1)}.items():
        search = kw.MKLClassifierCV(
            bands(GROUPS, Linear()), regularizers=regularizer, Cs=[0.3, 1, 3, 10], cv=5
        )
        with warnings.catch_warnings():
            # points of the grid that are not chosen may stop early
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "Scores still rise")  # the grid is that of the comparison
            search.fit(X[train], y[train])
        hits = search.predict(X[test]) == y[test]
        found[name] = set(np.flatnonzero(search.weights_)), hits
    return found


def verdict(seed: int) -> tuple[bool, bool, bool]:
    """SMKL exact; l1 keeps at least twice as many; SMKL's accuracy within one standard error of l1's."""
    found = compare(seed)
    (groups, hits), (kept, l1_hits) = found["smkl"], found["l1"]
    error = np.sqrt(l1_hits.mean() * (1 - l1_hits.mean()) / len(l1_hits))
    return groups == INFORMATIVE, len(kept) >= 4, hits.mean() >= l1_hits.mean() - error


@pytest.mark.slow
def test_smkl_keeps_exactly_the_informative_groups_quick():
    verdicts = np.array([verdict(seed) for seed in range(2)])
    assert verdicts.all()


@pytest.mark.slow
def test_smkl_keeps_exactly_the_informative_groups():
    verdicts = np.array([verdict(seed) for seed in range(10)])
    assert verdicts.all(axis=1).sum() >= 9
