"""Fits on a real Dask cluster: kernels spread over workers, workers killed, folds and models by joblib."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Polynomial

pytestmark = pytest.mark.system

distributed = pytest.importorskip("distributed", reason="needs dask and distributed: kernelweave[dask]")

KERNELS = [RBF(0.05), RBF(0.5), RBF(2.0), Linear(), Polynomial(2), RBF(0.3, columns=[0, 1])]


@contextmanager
def workers(count: int, threads: int):
    """A client of so many worker processes, watched by nannies."""
    options = {"processes": True, "dashboard_address": ":0", "memory_limit": "1GB"}
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=threads, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(dask_workers):
    """Two worker processes of two threads: kernels in four shares."""
    with distributed.Client(dask_workers) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def both(cls, data, kernels=KERNELS, gram="packed", **options):
    """The same fit here and on the cluster."""
    return tuple(
        cls(kernels, gram=engine, tol=1e-4, **options).fit(data.X, data.y) for engine in (gram, "dask")
    )


def assert_same_model(local, remote, X) -> None:
    np.testing.assert_allclose(remote.weights_, local.weights_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(remote.dual_gap_, local.dual_gap_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(remote.objective_, local.objective_, rtol=1e-6)
    np.testing.assert_allclose(remote.predict(X), local.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1), kw.LpNorm(p=2), kw.ElasticNet(0.5)], ids=str)
def test_weights_and_gap_are_those_of_a_local_fit(client, binary, regularizer):
    local, remote = both(kw.MKLClassifier, binary, regularizer=regularizer)
    assert_same_model(local, remote, binary.X_new)
    assert remote.gram_ == "dask"
    where = "6 kernels on 2 workers, 6 as lower triangles in memory"
    assert remote.gram_reason_ == f"gram='dask' was asked for: {where}."


def test_several_classes_in_threads(client, four):
    local, remote = both(kw.MKLClassifier, four, multiclass="ovr", n_jobs=2)
    assert_same_model(local, remote, four.X_new)


def test_regression_and_one_class(client, regression):
    assert_same_model(*both(kw.MKLRegressor, regression, normalize="center"), regression.X_new)
    local, remote = (kw.MKLOneClass(KERNELS, gram=gram).fit(regression.X) for gram in ("packed", "dask"))
    assert_same_model(local, remote, regression.X_new)


def test_precomputed_matrices(client, binary):
    K = np.stack([kernel.fit(binary.X)(binary.X) for kernel in KERNELS], axis=2)
    local, remote = (
        kw.MKLClassifier("precomputed", gram=gram, tol=1e-4).fit(K, binary.y) for gram in ("dense", "dask")
    )
    np.testing.assert_allclose(remote.weights_, local.weights_, rtol=0, atol=1e-6)
    assert remote.gram_reason_.endswith("6 as matrices in memory.")


def test_a_fitted_model_needs_no_cluster(client, binary):
    model = kw.MKLClassifier(KERNELS, gram="dask").fit(binary.X, binary.y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.decision_function(binary.X_new), model.decision_function(binary.X_new)
    )


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, binary):
    local, undisturbed = both(kw.MKLClassifier, binary)
    killed = []

    def kill_once(title, iteration, state):
        if not killed:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    model = kw.MKLClassifier(KERNELS, gram="dask", tol=1e-4)
    model._listener = kill_once
    model.fit(binary.X, binary.y)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert model.n_iter_ == undisturbed.n_iter_ > 1
    assert_same_model(local, model, binary.X_new)


def test_an_error_on_a_worker_is_the_error_of_the_fit(client, binary):
    K = np.stack([np.eye(60), -np.eye(60)], axis=2)
    with pytest.raises(ValueError, match="is not positive semidefinite"):
        kw.MKLClassifier("precomputed", gram="dask").fit(K, binary.y)


def on_workers(client, fit):
    """What a fit finds here and under joblib's Dask backend, and the tasks it gave to workers."""
    here = fit()
    with distributed.get_task_stream(client) as stream, joblib.parallel_config(backend="dask"):
        there = fit()
    tasks = [task for task in stream.data if not task["key"].startswith("_joblib_probe")]
    return here, there, tasks


def test_joblib_folds(client, binary):
    search = kw.MKLClassifierCV(KERNELS, regularizers=[kw.LpNorm(1), "uniform"], Cs=[0.1, 1.0], cv=4)
    here, there, tasks = on_workers(client, lambda: clone(search).fit(binary.X, binary.y))
    results = (found.cv_results_["split_test_scores"] for found in (there, here))
    np.testing.assert_array_equal(*results)
    assert len(tasks) >= 3  # the first fold guides the others
    assert len({task["worker"] for task in tasks}) == 2


def test_joblib_models_of_several_classes(client, four):
    model = kw.MKLClassifier(KERNELS, multiclass="ovr")
    here, there, tasks = on_workers(client, lambda: clone(model).fit(four.X, four.y))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10)
    np.testing.assert_array_equal(there.predict(four.X_new), here.predict(four.X_new))
    assert len(tasks) >= 2


def test_joblib_stability_selection(client, regression):
    def select():
        model = kw.MKLRegressor(KERNELS)
        return kw.stability_selection(model, regression.X, regression.y, n_subsamples=6, random_state=0)

    here, there, tasks = on_workers(client, select)
    np.testing.assert_allclose(there.weights, here.weights, rtol=1e-8, atol=1e-12)
    assert len(tasks) >= 2


def test_joblib_and_kernels_on_the_same_cluster(client, four):
    """Models in threads of this process, since their kernels are on the workers already."""
    model = kw.MKLClassifier(KERNELS, multiclass="ovr", gram="dask")
    here, there, tasks = on_workers(client, lambda: clone(model).fit(four.X, four.y))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-8, atol=1e-12)
    assert {task["key"].rpartition("-")[0].split("-")[0] for task in tasks} >= {"make_share", "ask"}


def test_joblib_greedy_search(client, regression):
    search = kw.GroupOMPRegressorCV(KERNELS, alphas=[0.1, 0.01], cv=3)
    here, there, tasks = on_workers(client, lambda: clone(search).fit(regression.X, regression.y))
    assert there.best_params_ == here.best_params_
    assert there.best_score_ == pytest.approx(here.best_score_)
    assert len(tasks) >= 2


@pytest.mark.torch
def test_not_on_another_device_as_well(binary):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="leave device=None with it"):
        kw.MKLClassifier(KERNELS, gram="dask", device="torch:cpu").fit(binary.X, binary.y)


@pytest.mark.slow
def test_four_workers_one_of_them_killed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=500))
    kernels = [RBF(gamma, columns=[i, j]) for gamma in (0.1, 1.0) for i in range(6) for j in range(i)]
    options = {"regularizer": kw.LpNorm(p=4 / 3), "tol": 1e-5}
    local = kw.MKLClassifier(kernels, gram="packed", **options).fit(X, y)
    with workers(4, threads=1) as client:
        first = kw.MKLClassifier(kernels, gram="dask", **options).fit(X, y)
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        killer.start()
        second = kw.MKLClassifier(kernels, gram="dask", **options).fit(X, y)
        killer.join()
    for remote in (first, second):
        assert_same_model(local, remote, X)
        assert remote.gram_reason_.startswith("gram='dask' was asked for: 30 kernels on 4 workers")


@pytest.mark.slow
def test_many_samples_grow_from_their_support_vectors(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4200, 3))
    y = np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=4200))
    kernels = [RBF(gamma, columns=[i]) for gamma in (0.1, 1.0) for i in range(3)]
    options = {"tol": 1e-3, "memory_limit": "400MB"}
    local, remote = (
        kw.MKLClassifier(kernels, gram=gram, **options).fit(X, y) for gram in ("blocked", "dask")
    )
    assert "computed again in every pass" in remote.gram_reason_ or "in a cache" in remote.gram_reason_
    # rounds differ, since the workers have less room than this process: both are certified on all samples
    assert remote.dual_gap_ <= 1e-3
    assert remote.objective_ == pytest.approx(local.objective_, rel=1e-3)
    assert (remote.predict(X) != local.predict(X)).mean() < 0.005
