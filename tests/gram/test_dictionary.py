"""Dictionary: training matrices, normalised and checked."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kernelweave.gram import Dictionary, FeatureSource, KernelStack, StackSource, parse_memory
from kernelweave.gram.dictionary import Checked, check_kernel_matrix
from kernelweave.gram.shared import Distances
from kernelweave.kernels import NORMALIZATIONS, RBF, FunctionKernel, Linear, Polynomial, resolve_normalization
from kernelweave.kernels._loops import is_definite


def constant(X, Z):
    return np.full((X.shape[0], Z.shape[0]), 3.0)


@pytest.mark.parametrize("normalize", [None, *sorted(NORMALIZATIONS)])
def test_gram_holds_the_normalised_matrices(named, X, rng, normalize):
    weight = rng.uniform(0.5, 2.0, size=len(X))
    dictionary = Dictionary(FeatureSource(named, X), normalize, sample_weight=weight)
    assert dictionary.names == ["k0", "k1", "k2"]
    np.testing.assert_array_equal(dictionary.live, [0, 1, 2])
    for m, (_, kernel) in enumerate(named):
        rule = NORMALIZATIONS[normalize or "none"]().fit(kernel(X), weight)
        expected = rule.scale_ * rule.train(kernel(X))
        np.testing.assert_allclose(dictionary.gram.combine(np.eye(3)[m]), expected, rtol=1e-10, atol=1e-12)


def test_scaling_normalisations_do_not_copy_given_matrices(matrices):
    Ks = matrices(8, 2)
    for normalize in ("variance", "trace", None):
        dictionary = Dictionary(StackSource(KernelStack(list(Ks))), normalize)
        assert all(np.shares_memory(K, Ks) for K in dictionary.gram.matrices)


def test_each_kernel_is_computed_once(named, functions, X):
    Dictionary(FeatureSource(named, X), "variance")
    assert [function.calls for function in functions] == [[(12, 12)]] * 3


def test_a_kernel_without_variance_gets_weight_zero_and_a_warning(named, X):
    kernels = [("flat", FunctionKernel(constant)), *named]
    with pytest.warns(UserWarning, match="without variance on the training samples get weight 0: flat"):
        dictionary = Dictionary(FeatureSource(kernels, X), "variance")
    np.testing.assert_array_equal(dictionary.live, [1, 2, 3])
    assert dictionary.gram.n_kernels == 3
    np.testing.assert_array_equal(dictionary.all_weights(np.array([0.2, 0.3, 0.5])), [0, 0.2, 0.3, 0.5])
    both = dictionary.all_weights(np.ones((2, 3)))
    np.testing.assert_array_equal(both, [[0, 1, 1, 1]] * 2)


def test_a_zero_kernel_is_dead_under_every_normalisation(named, X):
    zero = ("zero", FunctionKernel(lambda X, Z: np.zeros((X.shape[0], Z.shape[0]))))
    for normalize in (None, *NORMALIZATIONS):
        with pytest.warns(UserWarning, match="weight 0: zero"):
            dictionary = Dictionary(FeatureSource([*named, zero], X), normalize)
        np.testing.assert_array_equal(dictionary.live, [0, 1, 2])


def test_only_constant_kernels_is_an_error(X):
    with pytest.raises(ValueError, match="kernels: none of them varies over the training samples"):
        Dictionary(FeatureSource([("flat", FunctionKernel(constant))], X), "variance")


BAD = {
    "is not positive semidefinite": np.diag([1.0, 1.0, -0.5, 1.0]),
    "is not symmetric": np.eye(4) + np.triu(np.ones((4, 4)), 1) * 0.1,
    "has NaN or infinite entries": np.where(np.eye(4) > 0, np.nan, 0.0),
}


@pytest.mark.parametrize("message", BAD)
@pytest.mark.parametrize("normalize", [None, "variance", "spherical", "center"])
def test_bad_matrices_get_one_error_that_names_the_kernel(message, normalize):
    stack = KernelStack([np.eye(4), BAD[message]], names=["good", "bad"])
    with pytest.raises(ValueError, match=f"kernel 'bad' {message}"):
        Dictionary(StackSource(stack), normalize)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_negative_diagonal_entry_is_found_also_where_no_eigenvalue_is_looked_for(kind):
    K = np.eye(100, dtype=kind)
    K[1, 1] = -0.01
    checked = Checked(K, "K", 1e3)
    assert 1 not in checked.rows
    with pytest.raises(ValueError, match="K is not positive semidefinite"):
        checked.finish()


@pytest.mark.parametrize(("dtype", "over"), [(np.float64, 1e-6), (np.float32, 1e-2), (np.longdouble, 1e-6)])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e30])
def test_entries_too_large_for_their_diagonal_are_found_wherever_they_are(dtype, over, scale):
    """K_ij^2 <= K_ii K_jj, with the largest K_jj for all of them."""
    if scale < 1.0 and dtype == np.float32:
        scale = 1e-30
    diagonal = np.linspace(0.5, 2.0, 400)
    for i, j in ((1, 0), (399, 3), (200, 199)):
        most = np.sqrt(min(diagonal[i], diagonal[j]) * 2.0)
        for size, sign in ((most * (1.0 + over), 1.0), (most * (1.0 + over), -1.0), (0.99 * most, 1.0)):
            K = np.diag(diagonal)
            K[i, j] = K[j, i] = sign * size
            checked = Checked((scale * K).astype(dtype), "K", 8.0)
            assert len(checked.rows) < 5
            if size < most:
                checked.finish()
            else:
                with pytest.raises(ValueError, match=f"row {min(i, j)} has .* and an entry of size"):
                    checked.finish()


def test_bad_kernels_on_data_are_named_too(X):
    kernels = [("fine", Linear()), ("wild", FunctionKernel(lambda X, Z: -X @ Z.T))]
    with pytest.raises(
        ValueError, match=r"kernel 'wild' is not positive semidefinite \(row 0 .*: clip its negative"
    ):
        Dictionary(FeatureSource(kernels, X), "variance")


def test_scales_of_matrices_in_single_precision_are_those_in_double(rng):
    """The mean of a wide kernel is nearly its diagonal: few digits of their difference would be left."""
    X = rng.normal(size=(700, 3))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    single = [np.exp(-gamma * distances).astype(np.float32) for gamma in (1e-4, 0.1, 1.0)]
    double = [K.astype(np.float64) for K in single]
    wanted = [1.0 / (K.diagonal().mean() - K.mean()) for K in double]
    np.testing.assert_allclose(
        Dictionary(StackSource(KernelStack(single)), "variance").gram.scales, wanted, rtol=1e-9
    )
    found = [resolve_normalization("variance").fit(K).scale_ for K in single]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    for K in double[:1]:  # rounding to single precision has made it indefinite
        with pytest.raises(ValueError, match="rounded to single precision, give it as float32"):
            Dictionary(StackSource(KernelStack([K])), "variance")


def test_a_part_is_enough_to_see_a_bad_matrix(matrices):
    K = matrices(300, 1)[0] - 0.5 * np.eye(300)
    with pytest.raises(ValueError, match="positive semidefinite"):
        check_kernel_matrix(K, "K", flops=1e6)
    check_kernel_matrix(K + 0.5 * np.eye(300), "K", flops=1e6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rank_deficient_matrices_pass_at_any_scale(rng, dtype, scale):
    root = rng.normal(size=(60, 3)).astype(dtype)
    K = (dtype(scale) * (root @ root.T)).astype(dtype)
    before = K.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_kernel_matrix(K, "K", flops=1e9)
    np.testing.assert_array_equal(K, before)


def test_a_stack_for_training_is_square(matrices):
    stack = KernelStack(list(matrices(6, 2)))
    with pytest.raises(ValueError, match=r"must be square, got \(3, 6, 2\)"):
        StackSource(stack[:3])
    assert StackSource(stack).names == ["kernel 0", "kernel 1"]


def test_kernels_take_their_parameters_from_training_rows(X, Z):
    source = FeatureSource([("rbf", RBF(gamma="median"))], X)
    before = source.train(0)
    source.cross(0, Z)
    np.testing.assert_array_equal(source.train(0), before)


def test_memory_limit(named, X):
    with pytest.raises(MemoryError, match=r"3 kernels on 12 samples need .* memory_limit allows"):
        Dictionary(FeatureSource(named, X), "variance", memory_limit=1000)
    enough = Dictionary(FeatureSource(named, X), "variance", memory_limit=5 * 12 * 12 * 8)
    assert enough.gram.n_kernels == 3


def test_memory_limit_is_seen_before_anything_is_computed(named, functions, X):
    with pytest.raises(MemoryError):
        Dictionary(FeatureSource(named, X), "variance", memory_limit=1)
    assert [function.calls for function in functions] == [[], [], []]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, None),
        (1024, 1024),
        (2.5e9, 2_500_000_000),
        ("2GB", 2_000_000_000),
        ("500 MB", 500_000_000),
        ("1.5kb", 1500),
        (" 3 tb ", 3_000_000_000_000),
        ("77", 77),
        ("77B", 77),
        (np.int64(5), 5),
    ],
)
def test_parse_memory(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "lots", "-1GB", 0, -5, "2 GiB", float("nan"), float("inf"), True, "1e"]
)
def test_parse_memory_refuses(text):
    with pytest.raises(ValueError, match=r"memory_limit=.*: expected bytes, or text such as '2GB'"):
        parse_memory(text)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_that_share_distances_or_products_are_what_they_are_alone(X, dtype):
    """And in double precision, whatever that of the data."""
    kernels = [
        RBF(0.3),
        Linear(),
        RBF(0.6),
        Polynomial(3, 0.5),
        RBF("median"),
        RBF(0.6, columns=[1]),
        Linear(),
    ]
    source = FeatureSource([(f"k{m}", kernel) for m, kernel in enumerate(kernels)], X.astype(dtype))
    found = dict(source.train_all())
    assert sorted(found) == list(range(7))
    for m, K in found.items():
        assert K.dtype == np.float64
        np.testing.assert_allclose(K, source.train(m), rtol=1e-12, atol=1e-12)
    assert not np.shares_memory(found[1], found[6])


def test_shared_distances_are_computed_once(X, monkeypatch):
    calls = []
    whole = Distances.between
    monkeypatch.setattr(Distances, "between", lambda *args: calls.append(1) or whole(*args))
    kernels = [(f"k{m}", RBF(0.1 * (m + 1))) for m in range(5)]
    Dictionary(FeatureSource(kernels, X), "variance")
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["variance", "spherical", "trace", "dimension", "center", None])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, np.float32])
def test_a_normalisation_is_the_same_in_the_pass_that_checks(name, make):
    X = np.random.default_rng(0).normal(size=(23, 3))
    K, weight = make(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)) + X @ X.T), np.arange(1.0, 24.0)
    alone, checked = (resolve_normalization(name) for _ in range(2))
    seen = Checked(K, "K", flops=1e6)
    alone.fit(K, weight)
    checked.fit(seen, weight)
    seen.finish()
    eps = 100 * float(np.finfo(K.dtype).eps)
    assert checked.train(K).dtype == K.dtype
    np.testing.assert_allclose(checked.scale_, alone.scale_, rtol=eps)
    np.testing.assert_allclose(checked.train(K), alone.train(K), rtol=eps, atol=eps)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9, 40])
def test_definite_has_no_negative_eigenvalue(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A @ A.T
    least = np.linalg.eigvalsh(A)[0]
    for shift in (1e-6, -1e-6 - least):
        shifted = A + shift * np.eye(n)
        assert is_definite(np.tril(shifted), 0.0) == (np.linalg.eigvalsh(shifted)[0] > 0)


@pytest.mark.parametrize("n", [5, 8])
def test_one_pass_finds_one_bad_entry(n):
    """Wherever it is."""
    for i in range(n):
        for bad in (np.nan, np.inf, 2.0):
            K = np.eye(n)
            K[i, (i + 1) % n] = bad
            with pytest.raises(ValueError, match="not symmetric" if bad == 2.0 else "NaN or infinite"):
                check_kernel_matrix(K, "K", flops=1e6)


@pytest.mark.parametrize("normalize", ["variance", "center"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_first_look_is_taken_in_the_pass_that_checks(matrices, normalize, dtype):
    """Unless the normalisation changes entries."""
    Ks, first = matrices(30, 3).astype(dtype), np.array([0, 4, 5, 17, 29])
    plain, looked_at = (
        Dictionary(StackSource(KernelStack(list(Ks))), normalize, first=some).gram for some in (None, first)
    )
    assert (looked_at.first is not None) == (normalize == "variance")
    for samples, kernels in ((first, None), (first, np.array([2, 0])), (first[1:], None), (None, [1])):
        wanted, found = (gram.subset(samples, kernels) for gram in (plain, looked_at))
        for w in np.eye(found.n_kernels):
            np.testing.assert_allclose(found.combine(w), wanted.combine(w), rtol=1e-6, atol=1e-6)
