"""Alignments of the kernels of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.gram import KernelStack
from kernelweave.inspection import kernel_alignments
from kernelweave.kernels import RBF, Linear

from .conftest import KERNELS, LABELS, MODELS, X

Fitted = Callable[[str], tuple[Any, Any, Any]]

#: those that take the parameters of their kernels from all rows
COMPARED = [name for name in MODELS if name not in ("together", "greedy validated")]


def by_hand(matrices: list[Any]) -> Any:
    """Cosines of the centred matrices."""
    n = len(matrices[0])
    H = np.eye(n) - 1.0 / n
    flat = np.array([(H @ K @ H).ravel() for K in matrices])
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    return flat @ flat.T


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COMPARED)
def test_every_model_is_compared_by_its_own_kernels(name: str, models: Fitted) -> None:
    model, data, _ = models(name)
    A = kernel_alignments(model, data)
    if name.startswith("generalized"):
        kernels: list[Any] = [RBF(gamma=0.2), Linear()]
    else:
        kernels = list(KERNELS.values())
    assert_allclose(A, by_hand([kernel.fit(data)(data) for kernel in kernels]), atol=1e-10)


def test_fitted_kernels_keep_their_parameters(models: Fitted) -> None:
    model, data, _ = models("binary")
    few = data[:20]
    kernels = [kernel.fit(data) for kernel in KERNELS.values()]
    assert_allclose(kernel_alignments(model, few), by_hand([kernel(few) for kernel in kernels]), atol=1e-10)


def test_unfitted_kernels_pipelines_and_matrices() -> None:
    kernels = [RBF(gamma=0.3), Linear()]
    expected = by_hand([kernel.fit(X)(X) for kernel in kernels])
    assert_allclose(kernel_alignments(kernels, X), expected, atol=1e-10)
    stack = KernelStack([kernel.fit(X)(X) for kernel in kernels])
    assert_allclose(kernel_alignments("precomputed", stack), expected, atol=1e-10)
    model = make_pipeline(StandardScaler(), kw.MKLClassifier(kernels)).fit(X, LABELS)
    Z = model[0].transform(X)
    assert_allclose(
        kernel_alignments(model, X), by_hand([kernel.fit(Z)(Z) for kernel in kernels]), atol=1e-10
    )
    given = kw.MKLClassifier("precomputed").fit(stack, LABELS)
    assert_allclose(kernel_alignments(given, stack), expected, atol=1e-10)


def test_few_samples_and_some_kernels() -> None:
    kernels = [RBF(gamma=0.3), Linear(), RBF(gamma=3.0)]
    rows = np.unique(np.linspace(0, len(X) - 1, 10).astype(int))
    expected = by_hand([kernel.fit(X)(X[rows]) for kernel in (kernels[2], kernels[0])])
    assert_allclose(kernel_alignments(kernels, X, max_samples=10, kernels=[2, 0]), expected, atol=1e-10)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 samples"):
        kernel_alignments([Linear()], X, max_samples=1)
    with pytest.raises(ValueError, match="square"):
        kernel_alignments("precomputed", np.zeros((3, 2, 1)))
    with pytest.raises(ValueError, match="nothing to align"):
        kernel_alignments(kw.GMKLClassifier().fit(X, LABELS), X)
    with pytest.raises(ValueError, match="at most 2000"):
        kernel_alignments([Linear()], X, kernels=[0] * 2001)
