"""Alignments: equal to dense cosines, free of scale, and when centred of constants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave import KernelStack
from kernelweave.kernels import RBF, Constant, Linear
from kernelweave.theory import effective_number, pairwise_alignment, target_alignment

KERNELS = {"a": Linear(columns=[0, 1]), "b": RBF(0.3), "c": Linear(columns=2)}


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


def cosine(K, L):
    return np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L))


@pytest.fixture(name="X")
def table(rng):
    return rng.standard_normal((25, 4)) + 1.0


@pytest.mark.parametrize("centered", [True, False])
def test_pairwise_alignment_is_the_dense_cosine(X, centered):
    Ks = [kernel(X) for kernel in KERNELS.values()]
    Ks = [centred(K) for K in Ks] if centered else Ks
    found = pairwise_alignment(KERNELS, X, centered=centered)
    np.testing.assert_allclose(found.value, [[cosine(K, L) for L in Ks] for K in Ks], rtol=1e-8, atol=1e-12)
    assert found.parts["names"] == ["a", "b", "c"]
    assert found.holds is True


TARGETS = {
    "binary": (lambda rng: rng.integers(0, 2, 25), lambda y: (2.0 * y - 1.0)[:, None]),
    "text": (lambda rng: rng.choice(["no", "yes"], 25), lambda y: np.where(y == "yes", 1.0, -1.0)[:, None]),
    "classes": (lambda rng: np.arange(25) % 3, lambda y: np.eye(3)[y]),
    "numbers": (lambda rng: rng.standard_normal(25), lambda y: y[:, None]),
    "outputs": (lambda rng: rng.standard_normal((25, 2)), lambda y: y),
}


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("kind", TARGETS)
def test_target_alignment_is_the_dense_cosine(X, rng, kind, centered):
    draw, code = TARGETS[kind]
    y = draw(rng)
    Y = code(y)
    T, Ks = Y @ Y.T, [kernel(X) for kernel in KERNELS.values()]
    if centered:
        T, Ks = centred(T), [centred(K) for K in Ks]
    found = target_alignment(KERNELS, X, y, centered=centered)
    np.testing.assert_allclose(found.value, [cosine(K, T) for K in Ks], rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_chance_is_the_mean_over_shuffled_targets(X, rng):
    y = rng.standard_normal(25)
    shuffled = [target_alignment(KERNELS, X, rng.permutation(y)).value for _ in range(300)]
    chance = target_alignment(KERNELS, X, y).parts["by_chance"]
    spread = np.std(shuffled, axis=0) / np.sqrt(300)
    assert (np.abs(np.mean(shuffled, axis=0) - chance) <= 4 * spread).all()


@settings(max_examples=30)
@given(scales=st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3), shift=st.floats(0.0, 100.0))
def test_scale_does_not_matter_nor_a_constant_when_centred(scales, shift):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 4)), rng.standard_normal(12)
    Ks = [kernel(X) for kernel in KERNELS.values()]
    scaled = [c * K for c, K in zip(scales, Ks, strict=True)]
    moved = [K + shift for K in scaled]
    for function, extra in ((pairwise_alignment, ()), (target_alignment, (y,))):
        plain = function("precomputed", Ks, *extra, centered=False).value
        np.testing.assert_allclose(
            function("precomputed", scaled, *extra, centered=False).value, plain, rtol=1e-7
        )
        plain = function("precomputed", Ks, *extra).value
        np.testing.assert_allclose(function("precomputed", moved, *extra).value, plain, rtol=1e-5, atol=1e-8)


def test_matrices_come_as_list_array_or_stack(X):
    Ks = [kernel(X) for kernel in KERNELS.values()]
    values = [pairwise_alignment("precomputed", K).value for K in (Ks, np.dstack(Ks), KernelStack(Ks))]
    np.testing.assert_allclose(values[1:], [values[0]] * 2)


def test_a_kernel_without_variance_has_no_centred_alignment(X):
    with pytest.warns(UserWarning, match="without variance"):
        found = pairwise_alignment({"flat": Constant(1.0), "a": Linear()}, X)
    np.testing.assert_allclose(found.value, [[0.0, 0.0], [0.0, 1.0]], rtol=1e-12)
    assert found.holds is False
    assert "flat" in repr(found)


def test_effective_number_runs_from_one_to_all(rng):
    values = np.linalg.eigvalsh(A := np.corrcoef(rng.standard_normal((4, 9))))
    assert effective_number(A) == pytest.approx(values.sum() ** 2 / (values**2).sum())
    assert effective_number(np.eye(5)) == 5.0
    assert effective_number(np.ones((5, 5))) == 1.0
    assert effective_number(np.zeros((2, 2))) == 0.0
