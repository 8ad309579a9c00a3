"""Normalisations: their identities, and prediction equal to explicit computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import KernelCenterer

from kernelweave.kernels import (
    NORMALIZATIONS,
    RBF,
    Constant,
    Dimension,
    Linear,
    Normalization,
    Polynomial,
    resolve_normalization,
)

rng = np.random.RandomState(0)
X, Z = rng.standard_normal((10, 3)) + 1.0, rng.standard_normal((6, 3)) + 1.0
kernel = Polynomial(2).fit(X)
K, K_new, diag_new = kernel(X), kernel(Z, X), kernel.diag(Z)
WEIGHTS = [None, np.arange(10) % 4]
every = pytest.mark.parametrize("name", sorted(NORMALIZATIONS))
weighted = pytest.mark.parametrize("weight", WEIGHTS, ids=["equal", "weighted"])


def explicit(name, A, diag_a, B, diag_b, weight):
    """k'(a, b) from its formula, given raw values against the training rows."""
    w = (np.ones(10) if weight is None else weight) / np.sum(10 if weight is None else weight)
    variance = w @ np.diagonal(K) - w @ K @ w
    raw = kernel(A, B)
    if name == "none":
        return raw
    if name == "trace":
        return raw / (w @ np.diagonal(K))
    if name == "variance":
        return raw / variance
    if name == "dimension":
        repeated = K if weight is None else K[np.ix_(*2 * [np.repeat(np.arange(10), weight)])]
        # centred, the polynomial has 9 features on 10 samples; of 7 repeated ones 6 are left
        return raw * dimension_scale(repeated, 0.5 * (np.sum(w > 0) - 1))
    if name == "spherical":
        return raw / np.sqrt(np.outer(diag_a, diag_b))
    return (raw - (kernel(A, X) @ w)[:, None] - kernel(B, X) @ w + w @ K @ w) / variance


def dimension_of(K):
    """sum_j lambda_j / (lambda_j + 1) of a Gram matrix, centred, from a trace."""
    H = np.eye(len(K)) - 1.0 / len(K)
    return np.trace(np.linalg.solve(H @ K @ H + np.eye(len(K)), H @ K @ H))


def dimension_scale(K, dimension):
    """By bisection."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if dimension_of(np.exp(middle) * K) < dimension else (low, middle)
    return np.exp(low)


@every
@weighted
def test_training_matrix(name, weight):
    rule = NORMALIZATIONS[name]().fit(K, weight)
    expected = explicit(name, X, np.diagonal(K), X, np.diagonal(K), weight)
    np.testing.assert_allclose(rule.scale_ * rule.train(K), expected, rtol=1e-10, atol=1e-12)


@every
@weighted
@pytest.mark.parametrize("shape", [(10,), (10, 3)])
def test_expansion_on_new_samples(name, weight, shape):
    rule = NORMALIZATIONS[name]().fit(K, weight)
    alpha = np.random.RandomState(1).standard_normal(shape)
    coef, offset = rule.expand(alpha)
    row = rule.row_scale(diag_new if rule.needs_diag else None)
    raw = K_new @ coef + offset
    assert coef.shape == alpha.shape
    assert raw.shape == (6, *shape[1:])
    expected = explicit(name, Z, diag_new, X, np.diagonal(K), weight) @ alpha
    np.testing.assert_allclose(rule.scale_ * (row * raw.T).T, expected, rtol=1e-9, atol=1e-10)


@every
@weighted
def test_expansion_on_training_samples_is_the_training_matrix(name, weight):
    rule = NORMALIZATIONS[name]().fit(K, weight)
    alpha = np.random.RandomState(1).standard_normal(10)
    coef, offset = rule.expand(alpha)
    predicted = rule.row_scale(np.diagonal(K)) * (K @ coef + offset)
    np.testing.assert_allclose(predicted, rule.train(K) @ alpha, rtol=1e-9, atol=1e-9)


@every
@weighted
def test_cross_and_diag(name, weight):
    rule = NORMALIZATIONS[name]().fit(K, weight)
    expected = explicit(name, Z, diag_new, X, np.diagonal(K), weight)
    np.testing.assert_allclose(rule.scale_ * rule.cross(K_new, diag_new), expected, rtol=1e-9, atol=1e-12)
    own = np.diagonal(explicit(name, Z, diag_new, Z, diag_new, weight))
    np.testing.assert_allclose(rule.scale_ * rule.diag(diag_new, K_new), own, rtol=1e-9)


@every
@given(weight=st.lists(st.integers(0, 4), min_size=10, max_size=10).filter(lambda w: sum(map(bool, w)) >= 2))
def test_weights_equal_repeats(name, weight):
    rows = np.repeat(np.arange(10), weight)
    rule = NORMALIZATIONS[name]().fit(K, np.array(weight))
    repeated = NORMALIZATIONS[name]().fit(K[np.ix_(rows, rows)])
    assert rule.scale_ == pytest.approx(repeated.scale_, rel=1e-9)
    np.testing.assert_allclose(
        rule.train(K)[np.ix_(rows, rows)], repeated.train(K[np.ix_(rows, rows)]), rtol=1e-9, atol=1e-9
    )


@every
def test_scale_of_the_kernel_does_not_matter(name):
    rules = [NORMALIZATIONS[name]().fit(factor * K) for factor in (1.0, 1e6)]
    results = [rule.scale_ * rule.train(f * K) for rule, f in zip(rules, (1.0, 1e6), strict=True)]
    expected = results[0] * (1e6 if name == "none" else 1.0)
    np.testing.assert_allclose(results[1], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["none", "trace", "variance", "dimension"])
def test_rules_that_only_scale_do_not_copy(name):
    rule = NORMALIZATIONS[name]().fit(K)
    assert rule.train(K) is K
    alpha = np.ones(10)
    assert rule.expand(alpha)[0] is alpha


@every
def test_input_stays_as_it_is(name):
    before = K.copy()
    rule = NORMALIZATIONS[name]().fit(K)
    rule.train(K)
    rule.cross(K_new, diag_new)
    np.testing.assert_array_equal(K, before)


@every
def test_training_matrix_is_exactly_symmetric_and_positive_semidefinite(name):
    rule = NORMALIZATIONS[name]().fit(K)
    result = rule.train(K)
    np.testing.assert_array_equal(result, result.T)
    assert np.linalg.eigvalsh(result).min() >= -1e-10 * np.abs(result).max()


def test_means_after_normalising():
    trace, variance, center = (NORMALIZATIONS[name]().fit(K) for name in ("trace", "variance", "center"))
    assert trace.scale_ * np.trace(K) == pytest.approx(10)
    assert variance.scale_ * (np.diagonal(K).mean() - K.mean()) == pytest.approx(1)
    centred = center.scale_ * center.train(K)
    np.testing.assert_allclose(centred.sum(axis=0), 0, atol=1e-12)
    assert np.trace(centred) == pytest.approx(10)
    reference = KernelCenterer().fit(K)
    np.testing.assert_allclose(center.train(K), reference.transform(K.copy()), atol=1e-10)
    np.testing.assert_allclose(center.cross(K_new), reference.transform(K_new.copy()), atol=1e-10)


def test_variance_is_that_of_the_features():
    rule = NORMALIZATIONS["variance"]().fit(Linear()(X))
    assert rule.scale_ == pytest.approx(1 / X.var(axis=0).sum())


@pytest.mark.parametrize("name", ["variance", "dimension", "center", "spherical"])
@pytest.mark.parametrize("value", [0.0, 0.1, 3.7])
def test_no_variance(name, value):
    assert NORMALIZATIONS[name]().fit(Constant(value)(X)).scale_ == 0.0
    assert NORMALIZATIONS[name]().fit(Constant(value)(X).astype(np.float32)).scale_ == 0.0


@every
def test_zero_kernel(name):
    rule = NORMALIZATIONS[name]().fit(np.zeros((4, 4)))
    assert rule.scale_ == 0.0
    np.testing.assert_array_equal(rule.train(np.zeros((4, 4))), 0.0)


@pytest.mark.parametrize("name", ["none", "trace"])
def test_constant_kernel_is_kept_by_rules_without_variance(name):
    assert NORMALIZATIONS[name]().fit(Constant(2.0)(X)).scale_ == (1.0 if name == "none" else 0.5)


@pytest.mark.parametrize("wanted", [0.5, 3.0, 10.0])
def test_dimension_is_the_effective_dimension(wanted):
    A = rng.standard_normal((60, 40)) * 0.8 ** np.arange(40) + 5.0
    for k in (Linear(), RBF(gamma=10.0), RBF(gamma=1e-4)):
        rule = Dimension(wanted).fit(k(A))
        assert dimension_of(rule.scale_ * k(A)) == pytest.approx(wanted, rel=1e-6)


def test_dimension_of_few_directions_is_half_their_number():
    A = rng.standard_normal((50, 6)) * 0.2 ** np.arange(6)
    assert dimension_of(Dimension().fit(A @ A.T).scale_ * (A @ A.T)) == pytest.approx(3.0, rel=1e-6)
    assert Dimension(2).fit(A @ A.T).scale_ < Dimension(3).fit(A @ A.T).scale_


def test_dimension_of_many_samples_is_estimated_from_some():
    A = rng.standard_normal((400, 3))
    kernel = RBF().fit(A)
    rule = Dimension().fit(kernel(A))
    assert dimension_of(rule.scale_ * kernel(A)) == pytest.approx(10.0, rel=0.1)


@pytest.mark.parametrize("counts", [[3, 0, 1], [1, 0, 30]], ids=["all", "some"])
def test_dimension_of_repeated_samples(counts):
    A, weight = rng.standard_normal((60, 3)), np.resize(counts, 60)
    rows = np.repeat(np.arange(60), weight)
    repeated = Dimension().fit(RBF()(A)[np.ix_(rows, rows)]).scale_
    assert Dimension().fit(RBF()(A), weight).scale_ == pytest.approx(repeated, rel=1e-9)


def test_dimension_of_a_rare_feature():
    """The samples looked at are alike, and the kernel varies all the same."""
    a = np.zeros((301, 1))
    a[1] = 2.0
    rule = Dimension().fit(a @ a.T)
    assert dimension_of(rule.scale_ * (a @ a.T)) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_dimension_is_positive(wrong):
    with pytest.raises(ValueError, match=r"dimension=.*expected a positive number"):
        Dimension(wrong).fit(K)


def test_spherical_keeps_zero_samples_at_zero():
    A = np.array([[0.0], [2.0], [-3.0]])
    rule = NORMALIZATIONS["spherical"]().fit(Linear()(A))
    np.testing.assert_array_equal(rule.train(Linear()(A)), [[0, 0, 0], [0, 1, -1], [0, -1, 1]])
    assert rule.scale_ == 1.0
    np.testing.assert_array_equal(rule.row_scale(np.array([0.0, 4.0])), [0.0, 0.5])


@every
def test_single_precision_stays_single(name):
    single = RBF()(X).astype(np.float32)
    rule = NORMALIZATIONS[name]().fit(single)
    assert rule.train(single).dtype == np.float32
    assert rule.scale_ == pytest.approx(NORMALIZATIONS[name]().fit(RBF()(X)).scale_, rel=1e-4)


@every
def test_integer_matrices(name):
    counts = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
    rule, reference = (NORMALIZATIONS[name]().fit(A) for A in (counts, counts.astype(float)))
    assert rule.scale_ == reference.scale_
    np.testing.assert_array_equal(rule.train(counts), reference.train(counts.astype(float)))
    np.testing.assert_array_equal(rule.row_scale(np.array([4])), reference.row_scale(np.array([4.0])))


def test_spherical_needs_the_diagonal():
    rule = NORMALIZATIONS["spherical"]().fit(K)
    assert rule.needs_diag
    with pytest.raises(ValueError, match="needs diag_x"):
        rule.cross(K_new)


@every
def test_resolve(name):
    rule = resolve_normalization(name)
    assert isinstance(rule, Normalization)
    assert resolve_normalization(rule.fit(K)) is not rule
    assert not hasattr(clone(rule), "scale_")


def test_resolve_none_and_unknown():
    assert resolve_normalization(None).name == "none"
    with pytest.raises(ValueError, match=r"normalize='unit'.*'center'.*'variance'"):
        resolve_normalization("unit")
