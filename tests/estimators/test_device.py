"""device=: the same models as with NumPy, on torch's CPU device and, where there is one, on a GPU."""

from __future__ import annotations

import pickle
import sys
from copy import copy

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.kernels import (
    RBF,
    Chi2,
    ChiSquared,
    Euclidean,
    HistogramIntersection,
    InnerProduct,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Manhattan,
    Matern,
    Polynomial,
    SquaredEuclidean,
    random_subsets,
)
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import certificate

pytestmark = pytest.mark.torch

#: every loss with an estimator that takes it
LOSSES = {
    "hinge": kw.MKLClassifier,
    "squared_hinge": kw.MKLClassifier,
    "logistic": kw.MKLClassifier,
    "squared": kw.MKLRegressor,
    "eps_insensitive": kw.MKLRegressor,
    "huber": kw.MKLRegressor,
    "one_class": kw.MKLOneClass,
}


@pytest.fixture(name="torch")
def with_torch():
    return pytest.importorskip("torch", reason="needs torch")


@pytest.fixture(params=["torch:cpu", "cuda"])
def device(request, torch):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return request.param


def on_host(model, X):
    """Values of the same functions with NumPy."""
    functions = copy(model.model_)
    functions.device = None
    return functions(X)


def kernels_of(n_features):
    gaussians = [RBF(gamma) for gamma in np.geomspace(0.02, 2.0, 6)]
    return [*gaussians, Linear(), Polynomial(degree=2), RBF(1.0, columns=[0, n_features - 1])]


def data_of(loss, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, None if loss == "one_class" else y if LOSSES[loss] is kw.MKLRegressor else np.where(
        y > 0, 1, -1
    )


def model_of(loss, **options):
    own = {} if loss == "one_class" else {"loss": loss}
    return LOSSES[loss](kernels_of(5), **own, **options)


@pytest.fixture
def large_sums_stay(monkeypatch):
    """Weighted sums stay on the device however few samples there are."""
    from kernelweave.gram.torch import engine

    monkeypatch.setattr(engine, "HOST_SAMPLES", 10)


def compare(loss, n, device, atol=1e-3, tol=2e-5):
    """The model of the device, after comparing it with that of the host."""
    X, y = data_of(loss, n)
    host, model = (
        model_of(loss, regularizer=kw.LpNorm(2), tol=tol, device=d).fit(X, y) for d in (None, device)
    )
    assert model.gram_ == "torch"
    assert model.dual_gap_ <= tol
    np.testing.assert_allclose(model.weights_, host.weights_, atol=atol)
    assert model.objective_ == pytest.approx(host.objective_, rel=2 * tol)
    return X, y, host, model


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.usefixtures("large_sums_stay")
def test_every_loss_as_with_numpy(loss, device):
    # at a gap g, weights are within the order of sqrt(g); more samples tell them better
    compare(loss, 80, device, atol=8e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_on_2000_samples(loss, device):
    X, y, _, model = compare(loss, 2000, device)
    gap = certified_in_double(model, X, y)
    assert gap <= 3e-5
    assert gap == pytest.approx(model.dual_gap_, abs=1e-5)


def certified_in_double(model, X, y):
    """The gap of a fitted model from its definition, in double precision and from matrices of its own."""
    from kernelweave.gram.dictionary import Dictionary
    from kernelweave.gram.sources import FeatureSource
    from kernelweave.kernels import resolve_kernels
    from kernelweave.losses import LOSSES as REGISTERED

    source = FeatureSource(resolve_kernels(model.kernels, X), X)
    gram = Dictionary(source, "variance").gram
    assert isinstance(gram, DenseGram)
    loss = REGISTERED["one_class" if y is None else model.loss]()
    targets = np.ones(len(X)) if y is None else y
    cost = 1.0 / (model.nu * len(X)) if y is None else model.C
    problem = Problem(np.asarray(targets, float)[:, None], loss, np.full((len(X), 1), cost))
    alpha = np.ravel(model.dual_coef_)[:, None]
    return certificate(problem, gram, model.regularizer, alpha, model.weights_).gap


@pytest.mark.parametrize("normalize", ["spherical", "trace", "center", None])
@pytest.mark.usefixtures("large_sums_stay")
def test_normalizations_as_with_numpy(normalize, device):
    X, y = data_of("hinge", 120)
    host, model = (
        kw.MKLClassifier([*kernels_of(5), Laplacian()], normalize=normalize, device=d).fit(X, y)
        for d in (None, device)
    )
    assert model.dual_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(host.objective_, rel=2e-3)
    new = X[:40] + 0.1
    np.testing.assert_allclose(model.decision_function(new), host.decision_function(new), atol=0.1)
    np.testing.assert_allclose(  # the same model, evaluated on the host
        model.decision_function(new)[:, None],
        on_host(model, new),
        atol=1e-4,
    )


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_many_kernels_on_subsets_of_columns(p, device):
    X, y = data_of("hinge", 40)
    host, model = (
        kw.MKLClassifier(random_subsets(2000, random_state=0), regularizer=kw.LpNorm(p), device=d).fit(X, y)
        for d in (None, device)
    )
    assert model.dual_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(host.objective_, rel=2e-3)
    assert model.kernel_names_ == host.kernel_names_
    np.testing.assert_allclose(model.decision_function(X)[:, None], on_host(model, X), atol=1e-4)


@pytest.mark.slow
def test_a_growing_part_of_the_samples(device):
    X, y = data_of("hinge", 4500)
    model = kw.MKLClassifier([RBF(g) for g in (0.1, 0.3, 1.0)], device=device).fit(X, y)
    assert model.dual_gap_ <= 1e-3


def test_classes_trained_together_are_those_trained_alone(device, monkeypatch):
    from kernelweave.gram import sweep
    from kernelweave.gram.torch import engine

    monkeypatch.setattr(engine, "HOST_SAMPLES", 10)
    monkeypatch.setattr(sweep, "SMALL_SUM", 0)  # no sum is held on to
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X + 0.3 * rng.normal(size=X.shape), axis=1)
    kernels = [RBF(gamma=gamma) for gamma in (0.1, 0.5, 2.0)]
    options = {"C": 5.0, "tol": 1e-5, "regularizer": kw.LpNorm(2), "device": device}
    model = kw.MKLClassifier(kernels, **options).fit(X, y)
    for k in range(3):
        alone = kw.MKLClassifier(kernels, **options).fit(X, np.where(y == k, 1, -1))
        np.testing.assert_allclose(model.weights_[k], alone.weights_, atol=2e-2)
        assert model.objective_[k] == pytest.approx(alone.objective_, rel=3e-5)


def test_small_memory_takes_row_blocks(torch, monkeypatch):
    from kernelweave.gram.torch import engine, sums

    monkeypatch.setattr(engine, "HOST_SAMPLES", 10)
    seen = []
    computed = sums.ComputedMatrix
    monkeypatch.setattr(sums, "ComputedMatrix", lambda *args: seen.append(1) or computed(*args))
    X, y = data_of("hinge", 80)
    kernels = [RBF(g) for g in (0.1, 1.0)]
    small = kw.MKLClassifier(kernels, device="torch:cpu", memory_limit="40KB").fit(X, y)
    assert seen
    assert small.dual_gap_ <= 1e-3
    with pytest.raises(MemoryError, match="are missing"):
        kw.MKLClassifier(kernels, device="torch:cpu", memory_limit="1KB").fit(X, y)


def test_tensors_in_tensors_out(device, torch):
    X, y = data_of("hinge", 100)
    where = device.removeprefix("torch:")
    T, labels = torch.as_tensor(X, device=where), torch.as_tensor(y, device=where)
    model = kw.MKLClassifier([RBF(0.1), RBF(1.0)]).fit(T, labels)
    assert model.gram_ == "torch"  # where the data are
    for method in ("decision_function", "predict", "predict_proba"):
        found = getattr(model, method)(T[:7])
        assert isinstance(found, torch.Tensor)
        assert found.device.type == where
        np.testing.assert_allclose(found.cpu().numpy(), getattr(model, method)(X[:7]), atol=1e-9)
    target = torch.as_tensor(data_of("squared", 100)[1], device=where)
    assert isinstance(kw.MKLRegressor([RBF(1.0)]).fit(T, target).predict(T), torch.Tensor)


def test_predictions_in_batches(device, monkeypatch):
    from kernelweave.gram.torch import predict

    X, y = data_of("hinge", 100)
    model = kw.MKLClassifier([RBF(0.1), RBF(1.0), Linear(), Laplacian()], device=device).fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(predict, "BLOCK_BYTES", 2000)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-5)


def test_models_are_saved_without_the_device(device):
    X, y = data_of("hinge", 100)
    model = kw.MKLClassifier([RBF(0.1), RBF(1.0)], device=device).fit(X, y)
    before = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.decision_function(X), before, atol=1e-6)
    assert clone(model).get_params()["device"] == device


@pytest.mark.parametrize("cls", [kw.EmpiricalBayesRegressor, kw.GroupOMPRegressor])
def test_other_estimators_as_with_numpy(cls, device):
    X, y = data_of("squared", 120)
    host, model = (cls(kernels_of(5), device=d).fit(X, y) for d in (None, device))
    np.testing.assert_allclose(model.weights_, host.weights_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict(X[:20]), host.predict(X[:20]), atol=1e-4)


def test_cross_validation_as_with_numpy(device):
    X, y = data_of("hinge", 80)
    host, model = (
        kw.MKLClassifierCV([RBF(0.1), RBF(1.0)], Cs=[0.1, 10.0], cv=3, device=d).fit(X, y)
        for d in (None, device)
    )
    assert model.best_estimator_.gram_ == "torch"
    assert model.best_params_ == host.best_params_
    omp = kw.GroupOMPRegressorCV([RBF(0.1), RBF(1.0)], cv=3, device=device).fit(X, y)
    assert omp.best_estimator_.device == device


def test_paths_and_searches_compute_their_kernels_on_the_device(device, monkeypatch):
    """An engine for the path, one for each fold and one for the best model; no matrix on the host."""
    from kernelweave.gram import FeatureSource
    from kernelweave.gram.torch import TorchGram

    X, y = data_of("hinge", 60)
    kernels, costs = [RBF(0.1), RBF(1.0)], [0.1, 0.5, 2.0, 10.0]
    paths = [kw.mkl_path(kw.MKLClassifier(kernels), X, y, values=costs)]
    searches = [kw.MKLClassifierCV(kernels, Cs=costs, cv=3).fit(X, y)]

    def refused(*_):
        raise AssertionError("a matrix was computed on the host")

    built, build = [], TorchGram.build.__func__
    for name in ("train", "train_all"):
        monkeypatch.setattr(FeatureSource, name, refused)
    monkeypatch.setattr(
        TorchGram, "build", classmethod(lambda cls, *args: (built.append(1), build(cls, *args))[1])
    )
    paths.append(kw.mkl_path(kw.MKLClassifier(kernels, device=device), X, y, values=costs))
    assert len(built) == 1
    searches.append(kw.MKLClassifierCV(kernels, Cs=costs, cv=3, device=device).fit(X, y))
    assert len(built) == 1 + 3 + 1
    np.testing.assert_allclose(paths[1].objective, paths[0].objective, rtol=2e-3)
    assert (paths[1].dual_gap <= 1e-3).all()
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_allclose(scores[1], scores[0], atol=2.0 / len(y))


@pytest.mark.parametrize("regularizer", ["l1", "log_det"])
def test_generalized_mkl_as_with_numpy(regularizer, device):
    X, y = data_of("squared", 100)
    host, model = (
        kw.GMKLRegressor(regularizer=regularizer, loss="squared", device=d).fit(X, y) for d in (None, device)
    )
    np.testing.assert_allclose(model.weights_, host.weights_, rtol=1e-2, atol=1e-3)


def test_gradients_of_product_kernels(device, rng):
    from kernelweave._backend import resolve_device
    from kernelweave.kernels import GroupProductRBF, ProductRBF
    from kernelweave.solvers.kernel_gradient.torch_kernel import on_device

    X, alpha, A = rng.normal(size=(40, 4)), rng.normal(size=(40, 2)), rng.normal(size=(40, 40))
    alpha[::3] = 0.0
    for kernel in (ProductRBF(), GroupProductRBF(groups={"a": [0, 1], "b": [2, 3]})):
        kernel.fit(X)
        moved, d = on_device(kernel, resolve_device(device)), 1.5 * kernel.initial_
        K = moved(X, d=d)
        np.testing.assert_allclose(K, kernel(X, d=d), rtol=1e-10)
        for given in (K, None):
            got = moved.grad_quad(X, alpha, d, given)
            np.testing.assert_allclose(got, kernel.grad_quad(X, alpha, d), rtol=1e-8)
            got = moved.grad_trace(X, A + A.T, d, given)
            np.testing.assert_allclose(got, kernel.grad_trace(X, A + A.T, d), rtol=1e-8)


def test_without_torch_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = data_of("hinge", 30)
    with pytest.raises(ImportError, match=r'pip install "kernelweave\[torch\]"'):
        kw.MKLClassifier([RBF()], device="cuda").fit(X, y)


def test_devices_that_are_not_there(torch):
    X, y = data_of("hinge", 30)
    with pytest.raises(ValueError, match="device='tpu' is not known: pass 'cuda'"):
        kw.MKLClassifier([RBF()], device="tpu").fit(X, y)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="sees no CUDA device"):
            kw.MKLClassifier([RBF()], device="cuda").fit(X, y)


class Cauchy(Kernel):
    """A kernel of a user's own, a function of distances."""

    base = SquaredEuclidean()

    def __init__(self, gamma=0.1, columns=None):
        self.gamma = gamma
        self.columns = columns

    def of_base(self, B, xp):
        return 1.0 / (1.0 + self.gamma * B)


@pytest.mark.parametrize("normalize", ["variance", "center"])
def test_no_matrix_of_all_pairs_is_on_the_host(device, torch, normalize, monkeypatch):
    """Neither one that comes from the device, nor one that goes there, nor one computed with NumPy."""
    n = 1200
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n, 4)), rng.gamma(1.0, size=(n, 2))])
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 1).astype(int)
    kernels = [Laplacian(), Matern(), 2 * RBF(), Cauchy(), 1.0 + 0.1 * Polynomial(2) * Linear()]
    kernels += [
        Matern(nu=np.inf) + RBF(0.1),
        Chi2(1.0, columns=[4, 5]),
        HistogramIntersection(columns=[4, 5]),
    ]

    def small(values):
        size = values.numel() if isinstance(values, torch.Tensor) else np.size(values)
        assert size < n * n / 2, "a matrix of all pairs is on the host"
        return values

    for owner, name in ((torch.Tensor, "numpy"), (torch, "as_tensor")):
        made = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda A, *args, made=made, **more: made(small(A), *args, **more))
    for base in (SquaredEuclidean, Euclidean, Manhattan, InnerProduct, ChiSquared, Intersection):
        between = base.between

        def watched(self, X, *args, between=between):
            found = between(self, X, *args)
            return found if isinstance(X, torch.Tensor) else small(found)

        monkeypatch.setattr(base, "between", watched)
    model = kw.MKLClassifier(kernels, normalize=normalize, tol=1e-2, device=device).fit(X, y)
    assert model.gram_ == "torch"
    assert model.dual_gap_ <= 1e-2
    found = model.decision_function(X[:100])
    monkeypatch.undo()
    expected = kw.MKLClassifier(kernels, normalize=normalize, tol=1e-2).fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-2)
    np.testing.assert_allclose(found, expected.decision_function(X[:100]), atol=0.2)
