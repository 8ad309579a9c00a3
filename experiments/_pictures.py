"""1,760 kernels of pictures, made of the factors of Tomioka & Suzuki (2011), section 4.

Four kinds of local features x 22 regions x two kernel functions x ten parameters. Local features are taken on
a grid; 200 of them, drawn at random from the training pictures, are the visual words; every feature is
assigned to the nearest word, and a region is the histogram of its words. The regions are the picture, its
quarters, its sixteenths, and the spatial pyramid: the mean kernels of the three levels, with weights 1/4, 1/4
and 1/2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import uniform_filter
from sklearn.metrics import pairwise_distances_argmin

from kernelweave import datasets
from kernelweave.kernels import RBF, Chi2, Kernel
from kernelweave.kernels.bases import chi2, squared_euclidean

SIDE, STRIDE, WORDS, ORIENTATIONS = 28, 2, 200, 8
#: kind of local feature -> pixels of a patch, or of a cell of gradients
PATCHES = {"pixels5": 5, "pixels9": 9}
GRADIENTS = {"gradients4": 4, "gradients8": 8}
#: kernel function -> its parameters g: exp(-d / (2 g^2)) of squared, exp(-g^2 d) of chi-square distances d
PARAMETERS = {"gauss": np.linspace(0.1, 5.0, 10), "chi2": np.linspace(0.1, 10.0, 10)}
#: kernel function -> the kernel, and the distance that it is a function of
FUNCTIONS = {"gauss": (RBF, squared_euclidean), "chi2": (Chi2, chi2)}
#: level of the pyramid -> its share
LEVELS = {0: 0.25, 1: 0.25, 2: 0.5}
REGIONS = [(level, cell) for level in LEVELS for cell in range(4**level)]


@lru_cache(maxsize=1)
def mnist() -> tuple[np.ndarray, np.ndarray]:
    """Pictures and digits, read once."""
    data = datasets.load("mnist")
    return data.X, data.y


def pair(first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of two digits, and labels +1 and -1."""
    X, y = mnist()
    chosen = np.isin(y, [first, second])
    return X[chosen], np.where(y[chosen] == first, 1, -1)


def local_features(X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Kind and features, shape (pictures, points, dimensions), of unit length; zero where there is no ink."""
    pictures = X.reshape(-1, SIDE, SIDE) / 255.0
    for kind, size in PATCHES.items():
        edge = size // 2
        padded = np.pad(pictures, ((0, 0), (edge, edge), (edge, edge)))
        patches = sliding_window_view(padded, (size, size), axis=(1, 2))[:, ::STRIDE, ::STRIDE]
        yield kind, unit(patches.reshape(len(X), -1, size * size))
    down, across = np.gradient(pictures, axis=(1, 2))
    angle = (np.arctan2(down, across) / (2.0 * np.pi) % 1.0 * ORIENTATIONS).astype(int) % ORIENTATIONS
    strength = np.hypot(down, across)
    channels = np.where(angle[:, None] == np.arange(ORIENTATIONS)[:, None, None], strength[:, None], 0.0)
    for kind, size in GRADIENTS.items():
        sums = uniform_filter(channels, (0, 0, size, size), mode="constant")
        padded = np.pad(sums, ((0, 0), (0, 0), (size // 2,) * 2, (size // 2,) * 2))
        parts = [
            padded[:, :, i : i + SIDE : STRIDE, j : j + SIDE : STRIDE] for i in (0, size) for j in (0, size)
        ]
        yield kind, unit(np.concatenate(parts, axis=1).reshape(len(X), 4 * ORIENTATIONS, -1).swapaxes(1, 2))


def unit(features: np.ndarray) -> np.ndarray:
    """Of length 1, or 0."""
    return features / np.maximum(np.linalg.norm(features, axis=2, keepdims=True), 1e-12)


def histograms(X: np.ndarray, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Kind -> shares of the words in each region, shape (pictures, regions, words); words of the first n."""
    points = np.arange(0, SIDE, STRIDE)
    found = {}
    for kind, features in local_features(X):
        seen = np.linalg.norm(features, axis=2) > 0.5
        inked = features[:n][seen[:n]]
        words = inked[rng.choice(len(inked), WORDS, replace=False)]
        word = pairwise_distances_argmin(features.reshape(-1, features.shape[2]), words).reshape(seen.shape)
        counts = np.zeros((len(X), len(REGIONS), WORDS))
        for number, (level, cell) in enumerate(REGIONS):
            row, column = divmod(cell, 2**level)
            inside = np.outer(points * 2**level // SIDE == row, points * 2**level // SIDE == column).ravel()
            for picture, (mine, has) in enumerate(zip(word[:, inside], seen[:, inside], strict=True)):
                counts[picture, number] = np.bincount(mine[has], minlength=WORDS)
        found[kind] = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1.0)
    return found


def kernels(found: dict[str, np.ndarray]) -> tuple[dict[str, Kernel], np.ndarray]:
    """All kernels as functions of a table, and the table: histograms side by side.

    Names are "kind level:cell function parameter", or "kind pyramid function parameter".
    """
    made: dict[str, Kernel] = {}
    for number, kind in enumerate(found):
        starts = WORDS * (number * len(REGIONS) + np.arange(len(REGIONS)))
        for function, g in factors():
            parts = [
                FUNCTIONS[function][0](gamma=rate(function, g), columns=slice(int(a), int(a) + WORDS))
                for a in starts
            ]
            made |= dict(zip(names(kind, function, g), [*parts, pyramid(parts)], strict=True))
    return made, np.concatenate([counts.reshape(len(counts), -1) for counts in found.values()], axis=1)


def matrices(found: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Their values between all pictures and the first n; each distance is computed once."""
    made: dict[str, np.ndarray] = {}
    for kind, counts in found.items():
        distances = {
            function: [distance(part, part[:n]) for part in counts.swapaxes(0, 1)]
            for function, (_, distance) in FUNCTIONS.items()
        }
        for function, g in factors():
            parts = [np.exp(-rate(function, g) * D) for D in distances[function]]
            made |= dict(zip(names(kind, function, g), [*parts, pyramid(parts)], strict=True))
    return made


def factors() -> list[tuple[str, float]]:
    """Kernel functions with their parameters."""
    return [(function, float(g)) for function, values in PARAMETERS.items() for g in values]


def rate(function: str, g: float) -> float:
    """What distances are multiplied by."""
    return 0.5 / g**2 if function == "gauss" else g**2


def names(kind: str, function: str, g: float) -> list[str]:
    """Of the kernels of all regions, and of the pyramid."""
    regions = [f"level{level}:{cell}" for level, cell in REGIONS]
    return [f"{kind} {region} {function} {g:.2g}" for region in (*regions, "pyramid")]


def pyramid(parts: list[Any]) -> Any:
    """Mean kernels of the levels, weighted, as a kernel or as a matrix."""
    first, *others = (
        LEVELS[level] / 4**level * part for (level, _), part in zip(REGIONS, parts, strict=True)
    )
    return sum(others, first)
