"""Parametric kernels: every gradient against finite differences, blocks, names, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kernelweave.kernels import RBF, Linear, ProductRBF
from kernelweave.kernels import parametric as pk
from kernelweave.kernels.parametric import base

P = 4


def matrices(rng):
    roots = rng.normal(size=(3, P, 2))
    return roots @ roots.transpose(0, 2, 1)


KERNELS = {
    "product_rbf": lambda rng: pk.ProductRBF(),
    "product_rbf columns": lambda rng: pk.ProductRBF(columns=[2, 0]),
    "group_product_rbf": lambda rng: pk.GroupProductRBF({"a": [0, 1], "b": [1, 2]}),
    "power_sum": lambda rng: pk.PowerSum(degree=3),
    "power_sum offset": lambda rng: pk.PowerSum(offset=1.0, columns=slice(1, 3)),
    "power_sum matrices": lambda rng: pk.PowerSum(matrices=matrices(rng)),
    "projected_rbf": lambda rng: pk.ProjectedRBF(),
    "projected_rbf two": lambda rng: pk.ProjectedRBF(n_directions=2, columns=[0, 3, 1]),
    "metric_rbf": lambda rng: pk.MetricRBF(columns=[0, 2, 3]),
    "exp_sum": lambda rng: pk.ExpSum(),
    "exp_sum matrices": lambda rng: pk.ExpSum(matrices=matrices(rng)),
    "weighted_sum": lambda rng: pk.WeightedSum([Linear(), RBF(0.5)]),
    "sum of products": lambda rng: pk.WeightedSum(
        {
            "first": pk.ProductOf([pk.ProductRBF(columns=[0]), Linear()]),
            "second": pk.PowerSum(),
            "third": pk.MetricRBF(columns=[1, 2]),
        }
    ),
    "product_of": lambda rng: pk.ProductOf([pk.ProductRBF(columns=[0, 1]), pk.PowerSum(columns=[2, 3])]),
}


@pytest.fixture(params=KERNELS)
def kernel(request, rng):
    return KERNELS[request.param](rng)


@pytest.fixture(name="X")
def samples(rng):
    return rng.normal(size=(13, P))


def parameters(kernel, X, rng):
    """A point of the domain, of both signs where it has them."""
    kernel = clone(kernel).fit(X)
    signed = kernel.domain().bounds(len(kernel.initial_))[0] < 0
    sizes, factor = kernel._sizes(), rng.uniform(0.5, 2.0, len(signed))
    return np.where(signed, 0.3 * sizes * rng.choice([-1.0, 1.0], len(signed)), sizes) * factor


def finite_differences(value, d):
    """Central differences of fourth order in every component of d."""
    slopes = []
    for k, step in enumerate(1e-3 * np.maximum(np.abs(d), 0.1)):
        e = step * (np.arange(len(d)) == k)
        slopes.append((8 * (value(d + e) - value(d - e)) - value(d + 2 * e) + value(d - 2 * e)) / (12 * step))
    return np.array(slopes)


def test_gradients_equal_finite_differences(kernel, X, rng):
    d, kernel = parameters(kernel, X, rng), kernel.fit(X)
    alpha, A = rng.normal(size=(len(X), 2)), rng.normal(size=(len(X), len(X)))
    A = A + A.T
    alpha[[1, 4]] = 0.0
    quad = finite_differences(lambda e: np.einsum("ic,ij,jc->", alpha, kernel(X, d=e), alpha), d)
    trace = finite_differences(lambda e: (A * kernel(X, d=e)).sum(), d)
    np.testing.assert_allclose(kernel.grad_quad(X, alpha, d), quad, rtol=1e-5, atol=1e-7)
    columns = sum(kernel.grad_quad(X, alpha[:, c], d) for c in range(2))
    np.testing.assert_allclose(columns, quad, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(kernel.grad_trace(X, A, d), trace, rtol=1e-5, atol=1e-7)


def test_blocks_and_known_matrices_change_nothing(kernel, X, rng, monkeypatch):
    d, alpha = parameters(kernel, X, rng), rng.normal(size=len(X))
    alpha[:3] = 0.0
    kernel.fit(X)
    whole, traces = kernel.grad_quad(X, alpha, d), kernel.grad_trace(X, np.outer(alpha, alpha), d)
    monkeypatch.setattr(base, "BLOCK_ENTRIES", 40)
    np.testing.assert_allclose(kernel.grad_quad(X, alpha, d), whole, rtol=1e-10)
    np.testing.assert_allclose(kernel.grad_quad(X, alpha, d, kernel(X, d=d)), whole, rtol=1e-10)
    np.testing.assert_allclose(kernel.grad_trace(X, np.outer(alpha, alpha), d), traces, rtol=1e-10)
    np.testing.assert_allclose(traces, whole, rtol=1e-10)


def test_symmetric_positive_semidefinite_and_consistent(kernel, X, rng):
    d = parameters(kernel, X, rng)
    K = kernel.fit(X)(X, d=d)
    np.testing.assert_allclose(K, K.T, rtol=1e-10)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.abs(K).max()
    np.testing.assert_allclose(kernel(X[:5], X, d), K[:5], rtol=1e-10)


def test_the_domain_holds_the_start_and_projects(kernel, X, rng):
    kernel = kernel.fit(X)
    domain, far = kernel.domain(), rng.normal(size=len(kernel.initial_))
    np.testing.assert_array_equal(domain.project(kernel.initial_), kernel.initial_)
    near = domain.project(far)
    np.testing.assert_allclose(domain.project(near), near, atol=1e-12)
    # nearest: no point of the set is on the other side of the plane through it
    for _ in range(20):
        other = domain.project(rng.normal(size=len(far)))
        assert (far - near) @ (other - near) <= 1e-10
    K = kernel(X, d=0.1 * near)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.abs(K).max()


OUTSIDE = {
    "product_rbf": (pk.ProductRBF(), [1.0, -0.2], lambda x, z, d: np.exp(-((x - z) ** 2) @ d)),
    "power_sum": (pk.PowerSum(offset=1.0), [1.0, -0.2], lambda x, z, d: (1.0 + (x * z) @ d) ** 2),
    "exp_sum": (pk.ExpSum(), [0.1, -0.2], lambda x, z, d: np.exp((x * z) @ d)),
    "metric_rbf": (
        pk.MetricRBF(),
        [0.3, 0.3, np.sqrt(2.0)],  # A = [[0.3, 1], [1, 0.3]]
        lambda x, z, d: np.exp(-((x - z) ** 2) @ d[:2] - np.sqrt(2.0) * d[2] * (x - z).prod(axis=-1)),
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_of_its_domain_it_is_no_kernel(name, rng):
    """The formulas at the same d: the domain could not be larger."""
    kernel, d, formula = OUTSIDE[name]
    kernel, d = clone(kernel).fit(rng.normal(size=(10, 2))), np.array(d)
    inside = kernel.domain().project(d)
    assert np.abs(inside - d).max() > 0.1
    X = rng.normal(size=(8, 2)) if name != "metric_rbf" else np.outer(np.linspace(-1, 1, 8), [1.0, -1.0])
    np.testing.assert_allclose(formula(X[:, None], X, inside), kernel(X, d=inside), rtol=1e-9)
    K = formula(X[:, None], X, d)
    assert np.linalg.eigvalsh(K)[0] < -1e-3 * np.abs(K).max()


def test_metrics_start_as_the_product_of_gaussians(X):
    d = 10.0 * pk.ProjectedRBF(n_directions=P).initial(X)
    np.testing.assert_allclose(pk.ProjectedRBF(n_directions=P)(X, d=d), ProductRBF()(X), rtol=1e-12)
    np.testing.assert_allclose(pk.MetricRBF()(X), ProductRBF()(X), rtol=1e-12)


def test_directions_of_either_sign_are_a_metric(X, rng):
    """||D (x - z)||^2 = (x - z)' D'D (x - z)."""
    D = rng.normal(size=(2, P))
    metric = pk.MetricRBF().fit(X)
    d = metric.domain().vector(D.T @ D)
    np.testing.assert_allclose(metric(X, d=d), pk.ProjectedRBF(2)(X, d=D.ravel()), rtol=1e-9)
    np.testing.assert_allclose(pk.ProjectedRBF(2)(X, d=-D.ravel()), metric(X, d=d), rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(d), np.linalg.norm(D.T @ D))


def test_parameters_are_named_and_mapped_to_features(kernel, X):
    count = kernel.n_parameters(X)
    assert len(kernel.names(X)) == len(set(kernel.names(X))) == count
    assert kernel.feature_map(X).shape == (count, P)
    domain = kernel.fit(X).domain()
    assert (kernel.initial(X) >= domain.bounds(count)[0]).all()


def test_clone_pickle_and_repr(kernel, X):
    fitted = clone(kernel).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted))(X), fitted(X))
    assert repr(kernel).startswith(type(kernel).__name__)
    assert not hasattr(kernel, "initial_")


def test_weights_equal_repeats(kernel, X):
    weight = np.arange(len(X)) % 3
    weighted = clone(kernel).fit(X, sample_weight=weight)
    repeated = clone(kernel).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.initial_, repeated.initial_, rtol=1e-10)


def test_single_precision_stays_single(X, rng):
    d, alpha = rng.uniform(size=P), rng.normal(size=len(X))
    single = X.astype(np.float32)
    assert ProductRBF()(single, d=d).dtype == np.float32
    expected = ProductRBF().grad_quad(X, alpha, d)
    np.testing.assert_allclose(ProductRBF().grad_quad(single, alpha, d), expected, rtol=1e-3)


def test_names_of_a_data_frame(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert ProductRBF().names(frame) == ["a", "b", "c", "d"]
    assert pk.PowerSum(columns=["b", "d"]).names(frame) == ["offset", "b", "d"]
    groups = pk.GroupProductRBF({"both": ["a", "c"]}).fit(frame)
    np.testing.assert_array_equal(groups.feature_map(frame), [[1.0, 0.0, 1.0, 0.0]])
    np.testing.assert_allclose(groups(X, d=[0.5]), RBF(0.5)(X[:, [0, 2]]))


def test_names_of_children_that_agree_are_told_apart(X):
    twice = pk.WeightedSum([pk.ProductRBF(columns=[0]), pk.ProductRBF(columns=[0])])
    assert twice.names(X) == ["0 ProductRBF", "1 ProductRBF", "0 ProductRBF: x0", "1 ProductRBF: x0"]


def test_unknown_features_start_at_zero(X):
    X[:, 1] = 7.0
    assert ProductRBF().initial(X)[1] == 0.0


def test_zero_width_is_the_constant_kernel(X):
    np.testing.assert_array_equal(ProductRBF()(X, d=np.zeros(P)), np.ones((len(X), len(X))))


def test_equals_the_gaussian_kernel(X):
    np.testing.assert_allclose(ProductRBF()(X, d=np.full(P, 0.3)), RBF(0.3)(X), rtol=1e-12)


def test_expensive_exponents_become_infinite_quietly():
    assert np.isinf(pk.ExpSum()(np.array([[1e3]]), d=[1.0])).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProductRBF()(np.eye(3), d=[1.0]), "has 3 parameters"),
        (lambda: pk.GroupProductRBF({}).fit(np.eye(3)), "non-empty dict"),
        (lambda: pk.PowerSum(degree=0).fit(np.eye(3)), "degree=0"),
        (lambda: pk.PowerSum(offset=-1.0).fit(np.eye(3)), "offset=-1.0"),
        (lambda: pk.PowerSum(matrices=np.eye(3)).fit(np.eye(3)), "one A_m per term"),
        (lambda: pk.ExpSum(matrices=-np.eye(3)[None]).fit(np.eye(3)), r"matrices\[0\] is not symmetric"),
        (lambda: pk.ExpSum(matrices=np.eye(2)[None]).fit(np.eye(3)), "sees 3 columns"),
        (lambda: pk.ProductOf([]).fit(np.eye(3)), "kernels is empty"),
        (lambda: pk.ProjectedRBF(n_directions=4).fit(np.eye(3)), "more than the 3 columns"),
        (lambda: pk.AutogradKernel(3).fit(np.eye(3)), "not callable"),
        (lambda: pk.AutogradKernel(max, start=-1.0).fit(np.eye(3)), "start=-1.0"),
        (lambda: pk.AutogradKernel(max, parameter_names=["a"]).fit(np.eye(3)), "1 names for 3"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.torch
def test_autograd_kernel_agrees_with_the_written_gradient(X, rng):
    pytest.importorskip("torch")

    def product_rbf(X, Z, d):
        return (-((X[:, None] - Z[None]) ** 2) @ d).exp()

    d, alpha = rng.uniform(size=P), rng.normal(size=(len(X), 1))
    kernel = pk.AutogradKernel(product_rbf).fit(X)
    np.testing.assert_allclose(kernel(X, d=d), ProductRBF()(X, d=d), rtol=1e-10)
    np.testing.assert_allclose(kernel.grad_quad(X, alpha, d), ProductRBF().grad_quad(X, alpha, d), rtol=1e-8)


@pytest.mark.torch
def test_an_autograd_kernel_of_either_sign(X, rng):
    pytest.importorskip("torch")
    kernel = pk.AutogradKernel(lambda X, Z, d: (-(((X @ d)[:, None] - Z @ d) ** 2)).exp(), signed=True).fit(X)
    d, alpha = rng.normal(size=P), rng.normal(size=(len(X), 1))
    np.testing.assert_array_equal(kernel.domain().project(d), d)
    np.testing.assert_allclose(kernel(X, d=d), pk.ProjectedRBF()(X, d=d), rtol=1e-10)
    expected = pk.ProjectedRBF().grad_quad(X, alpha, d)
    np.testing.assert_allclose(kernel.grad_quad(X, alpha, d), expected, rtol=1e-8)
    assert pk.AutogradKernel(kernel.function, start=-1.0, signed=True).initial(X)[0] == -1.0


def test_autograd_without_torch_names_the_remedy(monkeypatch, X):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"kernelweave\[torch\].*, or derive from ParametricKernel"):
        pk.AutogradKernel(max).fit(X)(X)
