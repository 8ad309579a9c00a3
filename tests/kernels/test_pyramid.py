"""The spatial pyramid kernel against the definition of its paper, on points with coordinates and words."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import HistogramIntersection, SpatialPyramid
from kernelweave.testing import check_kernel

N_WORDS = 3


def images(n, seed=0):
    """Sets of points (row, column) in the unit square, each with a word."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 25, size=n)
    return [(rng.uniform(size=(size, 2)), rng.integers(N_WORDS, size=size)) for size in sizes]


def counts(image, side):
    """Counts of every cell and word, (side, side, words)."""
    points, words = image
    out = np.zeros((side, side, N_WORDS))
    for (r, s), word in zip((points * side).astype(int), words, strict=True):
        out[r, s, word] += 1.0
    return out


def matches(x, z, level):
    """I^l of the paper: the points of each word that x and z have in common in a cell of level l."""
    a, b, total = counts(x, 2**level), counts(z, 2**level), 0.0
    for cell in np.ndindex(2**level, 2**level):
        for word in range(N_WORDS):
            total += min(a[cell][word], b[cell][word])
    return total


def pyramid_match(x, z, L):
    """Equation 2 of Lazebnik et al.: new matches of level l count 1 / 2^(L - l)."""
    found = [matches(x, z, level) for level in range(L + 1)]
    return found[L] + sum((found[level] - found[level + 1]) / 2.0 ** (L - level) for level in range(L))


@pytest.mark.parametrize("L", [0, 1, 2, 3])
def test_is_the_pyramid_match_of_the_paper(L):
    first, second = images(4), images(3, seed=1)
    X, Z = (np.array([counts(image, 2**L).ravel() for image in some]) for some in (first, second))
    expected = [[pyramid_match(x, z, L) for z in second] for x in first]
    kernel = SpatialPyramid(levels=L).fit(X)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), [pyramid_match(x, x, L) for x in first], rtol=1e-12)


def test_weights_of_levels():
    some, weights = images(4), [0.3, 0.0, 2.0]
    X = np.array([counts(image, 4).ravel() for image in some])
    expected = [[sum(a * matches(x, z, lev) for lev, a in enumerate(weights)) for z in some] for x in some]
    np.testing.assert_allclose(SpatialPyramid(2, weights)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(SpatialPyramid(2, [0.0, 0.0, 1.0])(X), HistogramIntersection()(X), rtol=1e-12)


def test_contract_with_several_words_and_levels():
    X = np.random.default_rng(0).poisson(1.0, size=(12, 2 + 16 * N_WORDS)).astype(float)
    check_kernel(SpatialPyramid(levels=2, columns=slice(2, None)), X[:8], X[8:])
    check_kernel(SpatialPyramid(levels=0))


def test_by_name_in_a_fit():
    """Two kinds of images that differ in where their words are, not in which they have."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    grid = rng.poisson(0.3, size=(40, 4, 4, N_WORDS)).astype(float)
    grid[y == 0, 0, 0] += rng.poisson(2.0, size=(20, N_WORDS))
    grid[y == 1, 3, 3] += rng.poisson(2.0, size=(20, N_WORDS))
    X = grid.reshape(40, -1)
    clf = kw.MKLClassifier("spatial_pyramid").fit(X[:20], y[:20])
    assert clf.score(X[20:], y[20:]) > 0.8
    whole = kw.MKLClassifier(SpatialPyramid(levels=2, weights=[1.0, 0.0, 0.0])).fit(X[:20], y[:20])
    assert whole.score(X[20:], y[20:]) < clf.score(X[20:], y[20:])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SpatialPyramid(levels=-1), "levels=-1: expected an integer >= 0"),
        (SpatialPyramid(levels=1), "levels=1 asks for 2 x 2 cells, and 5 columns are no multiple of 4"),
        (SpatialPyramid(0, weights=[1.0, 2.0]), "must have levels . 1 = 1 entries"),
        (SpatialPyramid(0, weights=[-1.0]), "weights=-1.0: expected a non-negative number"),
    ],
)
def test_errors(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(np.ones((2, 5)))
    with pytest.raises(ValueError, match="needs non-negative values"):
        SpatialPyramid(levels=0)(-np.ones((2, 4)))
