"""Simulated data and made kernels of the experiments are what their pages say."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def load(monkeypatch):
    """Files of experiments, as modules."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module


def test_the_diffusion_kernel_is_the_matrix_exponential(load):
    metabolic = load("lp_metabolic")
    A = metabolic.symmetric(np.random.default_rng(0).random((12, 12)) < 0.3)
    scale = 1.0 / np.sqrt(np.maximum(A.sum(axis=1), 1.0))
    L = np.eye(12) - scale[:, None] * A * scale
    np.testing.assert_allclose(metabolic.diffusion(A), expm(-metabolic.BETA * L), atol=1e-12)


def test_a_view_has_the_edges_it_keeps_and_as_many_wrong_ones(load):
    metabolic = load("lp_metabolic")
    rng = np.random.default_rng(0)
    A = metabolic.network(rng)
    assert A.sum() / len(A) == pytest.approx(metabolic.DEGREE, rel=0.25)  # nodes at the border have fewer
    copies = [metabolic.seen(A, 0.7, rng) for _ in range(20)]
    assert np.mean([(copy * A).sum() for copy in copies]) == pytest.approx(0.7 * A.sum(), rel=0.05)
    assert np.mean([copy.sum() for copy in copies]) == pytest.approx(A.sum(), rel=0.05)


def test_structure_is_the_mean_over_neighbouring_pairs_of_either_strand(load):
    genes = load("lp_gene_start")
    codes = np.random.default_rng(0).integers(0, 4, (2, genes.LENGTH))
    for values, part in ((genes.TWIST, genes.FAR), (genes.ENERGY, genes.NEAR)):
        found = genes.structure(codes, values, part)
        for window, features in zip(codes, found, strict=True):
            string = "".join(genes.LETTERS[window])
            other = string.translate(str.maketrans("ACGT", "TGCA"))  # a pair is read backwards there
            pairs = [(string[i : i + 2], other[i + 1] + other[i]) for i in range(len(string) - 1)]
            along = [values[first] if first in values else values[second] for first, second in pairs]
            starts = part.start + genes.STEP * np.arange(len(features))
            expected = [np.mean(along[start : start + genes.SMOOTH]) for start in starts]
            np.testing.assert_allclose(features, expected)


def test_what_is_planted_is_there(load):
    genes = load("lp_gene_start")
    codes, y = genes.windows(2000, np.random.default_rng(0))
    strings = ["".join(letters) for letters in genes.LETTERS[codes]]
    for word, (place, _) in genes.SIGNAL.items():
        near = slice(genes.START + place - genes.JITTER, genes.START + place + genes.JITTER + len(word))
        found = np.array([word in string[near] for string in strings])
        assert found[y > 0].mean() > 5 * found[y < 0].mean()
    per_window = [sum(string[: genes.START].count(word) for word in genes.UPSTREAM) for string in strings]
    assert np.mean(np.array(per_window)[y > 0]) > 2 * np.mean(np.array(per_window)[y < 0])


def test_1760_kernels_are_the_same_as_functions_and_as_matrices(load):
    pictures = load("_pictures")
    X = (np.random.default_rng(0).random((6, 784)) ** 4 * 255).astype(np.uint8)
    found = pictures.histograms(X, 4, np.random.default_rng(1))
    for counts in found.values():
        np.testing.assert_allclose(counts.sum(axis=2), 1.0)  # every region has ink
    functions, table = pictures.kernels(found)
    made = pictures.matrices(found, 4)
    assert list(functions) == list(made)
    assert len(made) == 4 * 22 * 2 * 10
    some = [name for k, name in enumerate(made) if k % 97 == 0 or (k % 440 == 21)]
    assert any("pyramid" in name for name in some)
    for name in some:
        np.testing.assert_allclose(functions[name](table, table[:4]), made[name], atol=1e-10)
