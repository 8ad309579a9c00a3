"""Random Gram matrices and samples, shared by the Gram tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from kernelweave.gram import GRAMS, Gram, GramStore, KernelStack, LowRankGram, StoreGram, TorchGram
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.lowrank import StoredFactors
from kernelweave.kernels import FunctionKernel

#: marks of engines that need torch, or a cluster
MARKS = {"torch": pytest.mark.torch, "dask": pytest.mark.system}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(GRAMS)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Gram]:
    """What makes an engine of matrices and, optionally, scales."""
    name = request.param
    if name == "store":
        return lambda matrices, *scales: StoreGram(
            GramStore.build(tmp_path / "engine.gram", "precomputed", KernelStack(matrices)), *scales
        )
    if name == "low_rank":
        return lambda matrices, *scales: LowRankGram(StoredFactors(list(map(root_of, matrices))), *scales)
    if name == "torch":
        torch = pytest.importorskip("torch", reason="needs torch")
        return lambda matrices, *scales: TorchGram(
            Blocks.of_matrices(matrices), *scales, device=torch.device("cpu"), dtype=torch.float64
        )
    if name == "dask":
        request.getfixturevalue("cluster")
    return GRAMS[name]


def root_of(K: np.ndarray) -> np.ndarray:
    """Z with K = Z Z'."""
    values, vectors = np.linalg.eigh(np.asarray(K, dtype=np.float64))
    return vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.fixture(scope="module")
def cluster(dask_workers: Any) -> Iterator[Any]:
    """A client of two worker processes."""
    with pytest.importorskip("distributed").Client(dask_workers) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def matrices() -> Callable[..., np.ndarray]:
    """M positive semidefinite matrices of size n, shape (M, n, n), symmetric to the last bit.

    Single precision holds their entries: a store keeps no more.
    """

    def draw(n: int, M: int, seed: int = 0) -> np.ndarray:
        roots = np.random.default_rng(seed).normal(size=(M, n, n + 1))
        Ks = roots @ roots.transpose(0, 2, 1) / n
        return (0.5 * (Ks + Ks.transpose(0, 2, 1))).astype(np.float32).astype(np.float64)

    return draw


class Counted:
    """A kernel function that remembers the shapes it was called with."""

    def __init__(self, function: Callable[..., np.ndarray]) -> None:
        self.function = function
        self.calls: list[tuple[int, int]] = []

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        self.calls.append((X.shape[0], Z.shape[0]))
        return self.function(X, Z)


@pytest.fixture
def functions() -> list[Counted]:
    """Three kernels that differ in shape, scale and mean."""
    return [
        Counted(lambda X, Z: 7.0 * rbf_kernel(X, Z, gamma=0.4)),
        Counted(lambda X, Z: linear_kernel(X, Z) + 0.5),
        Counted(lambda X, Z: polynomial_kernel(X, Z, degree=2)),
    ]


@pytest.fixture
def named(functions: list[Counted]) -> list[tuple[str, FunctionKernel]]:
    return [(f"k{m}", FunctionKernel(function)) for m, function in enumerate(functions)]


@pytest.fixture(name="X")
def training_samples(rng: np.random.Generator) -> np.ndarray:
    """Training samples, off centre."""
    return rng.normal(size=(12, 3)) + 0.3


@pytest.fixture(name="Z")
def new_samples(rng: np.random.Generator) -> np.ndarray:
    """New samples."""
    return rng.normal(size=(5, 3)) - 0.2
