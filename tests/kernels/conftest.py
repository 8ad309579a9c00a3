"""One example of every registered kernel with data it accepts, shared by the kernel tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RationalQuadratic
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave.kernels import KERNELS, FunctionKernel, GPKernel, Kernel, Precomputed, SpatialPyramid
from kernelweave.testing.kernels import N_NEW, N_TRAIN, KernelCase, kernel_case


def gram_matrix(n: int, seed: int = 0, rank: int | None = None) -> np.ndarray:
    root = np.random.RandomState(seed).standard_normal((n, rank or n + 2))
    return root @ root.T


def random_strings(n: int, seed: int, low: int = 6, high: int = 15) -> np.ndarray:
    rng = np.random.RandomState(seed)
    strings = ["".join(rng.choice(list("ACGT"), rng.randint(low, high))) for _ in range(n)]
    return np.array(strings, dtype=object)[:, None]


def numbers(n: int, seed: int) -> np.ndarray:
    """Non-negative, so that every numeric kernel takes them."""
    return np.random.RandomState(seed).gamma(2.0, size=(n, 4))


def example(name: str) -> Kernel:
    needed = {
        "precomputed": lambda: Precomputed(gram_matrix(N_TRAIN + N_NEW)),
        "function": lambda: FunctionKernel(cosine_similarity),
        "gp": lambda: GPKernel(RationalQuadratic(alpha=0.7)),
        "spatial_pyramid": lambda: SpatialPyramid(levels=1),  # one word in four cells
    }
    return needed[name]() if name in needed else KERNELS[name]()


@pytest.fixture(params=sorted(KERNELS))
def case(request: pytest.FixtureRequest) -> KernelCase:
    return kernel_case(example(request.param))


@pytest.fixture
def frame() -> pd.DataFrame:
    """Three numeric columns, one of strings, one of task labels."""
    values = numbers(9, 2)
    return pd.DataFrame(
        {
            "a": values[:, 0],
            "seq": random_strings(9, 3).ravel(),
            "b": values[:, 1],
            "task": ["u", "v", "u", "w", "v", "u", "w", "w", "u"],
            "c": values[:, 2],
        }
    )
