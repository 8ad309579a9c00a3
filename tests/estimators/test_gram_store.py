"""Fits on a GramStore are those on its matrices, and take no more memory than they may."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import kernelweave as kw
from kernelweave.estimators.cross_validation import ChainSearch
from kernelweave.gram import choice
from kernelweave.kernels import RBF, Linear, Polynomial

KERNELS = [RBF(0.05), RBF(0.5), RBF(2.0), Linear(), Polynomial(2), RBF(0.3, columns=[0, 1])]


@pytest.fixture(name="stored")
def stores(tmp_path):
    """The store of kernels on samples, and the matrices in double precision."""

    def build(X):
        Ks = np.stack([kernel.fit(X)(X) for kernel in KERNELS], axis=2)
        return kw.GramStore.build(tmp_path / "kernels.gram", KERNELS, X), Ks

    return build


@pytest.mark.wide
@pytest.mark.sampled(5)
@pytest.mark.parametrize("gram", ["auto", "dense", "packed", "cached", "store", "blocked"])
@pytest.mark.parametrize("p", [1, 2])
def test_certified_and_the_same_to_single_precision(binary, stored, gram, p):
    store, Ks = stored(binary.X)
    options = {"regularizer": kw.LpNorm(p), "tol": 1e-7, "max_iter": 1000}
    exact = kw.MKLClassifier("precomputed", gram="dense", **options).fit(Ks, binary.y)
    model = kw.MKLClassifier("precomputed", gram=gram, **options).fit(store, binary.y)
    assert model.kernel_names_ == store.names
    assert model.dual_gap_ <= 1e-7
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    np.testing.assert_allclose(model.weights_, exact.weights_, atol=3e-5 * exact.weights_.max())
    np.testing.assert_allclose(model.decision_function(store), exact.decision_function(Ks), atol=2e-3)


def test_a_store_is_what_the_engine_of_that_name_reads(binary):
    with pytest.raises(ValueError, match="whole GramStore"):
        kw.MKLClassifier(KERNELS, gram="store").fit(binary.X, binary.y)
    with pytest.raises(ValueError, match="gram='disk' is not a Gram engine: pass one of 'auto', 'dense'"):
        kw.MKLClassifier(KERNELS, gram="disk").fit(binary.X, binary.y)


# -- model selection --------------------------------------------------------------------------


def test_cross_validation_over_a_store(binary, stored):
    store, Ks = stored(binary.X)
    model = kw.MKLClassifier("precomputed", tol=1e-5)
    found, expected = (
        cross_val_predict(model, X, binary.y, cv=3, method="decision_function") for X in (store, Ks)
    )
    np.testing.assert_allclose(found, expected, atol=2e-3)
    searches = [GridSearchCV(model, {"C": [0.1, 10.0]}, cv=3).fit(X, binary.y) for X in (store, Ks)]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(
        *[search.predict(X) for search, X in zip(searches, (store, Ks), strict=True)]
    )


@pytest.mark.parametrize("look", [1.0, 1e12], ids=["dense", "blocked"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_searches_of_kernelweave(regression, stored, weighted, look, monkeypatch):
    monkeypatch.setattr(choice, "FIRST_LOOK", look)  # whether matrices seem to fit
    weight = np.where(np.arange(len(regression.y)) % 7 == 3, 0.0, 1.0) if weighted else None
    store, Ks = stored(regression.X)
    search = kw.MKLRegressorCV("precomputed", regularizers=[kw.LpNorm(1), "uniform"], Cs=[0.1, 10.0], cv=3)
    found, expected = (
        search.fit(X, regression.y, weight).cv_results_["split_test_scores"] for X in (store, Ks)
    )
    np.testing.assert_allclose(found, expected, atol=5e-3)


@pytest.mark.parametrize(("look", "engine"), [(1.0, "dense"), (1e12, "blocked")])
def test_folds_of_a_store_are_read_in_pieces_where_they_do_not_fit(
    regression, stored, monkeypatch, look, engine
):
    store, _ = stored(regression.X)
    monkeypatch.setattr(choice, "FIRST_LOOK", look)
    found, make = [], ChainSearch.dictionary

    def noted(*args):
        found.append(make(*args))
        return found[-1]

    monkeypatch.setattr(ChainSearch, "dictionary", noted)
    search = kw.MKLRegressorCV("precomputed", Cs=[1.0], cv=3).fit(store, regression.y)
    assert [dictionary.gram.name for dictionary in found] == [engine] * 3
    assert search.best_estimator_.gram_ == ("dense" if engine == "dense" else "store")


def test_new_samples_are_rows_of_the_store(binary, stored):
    store, Ks = stored(np.vstack([binary.X, binary.X_new]))
    train, test = np.arange(len(binary.X)), np.arange(len(binary.X), len(store))
    exact = kw.MKLClassifier("precomputed", tol=1e-5).fit(Ks[np.ix_(train, train)], binary.y)
    part = pickle.loads(pickle.dumps(store[np.ix_(train, train)]))  # as a worker would get it
    model = kw.MKLClassifier("precomputed", tol=1e-5).fit(part, binary.y)
    np.testing.assert_allclose(
        model.decision_function(store[np.ix_(test, train)]),
        exact.decision_function(Ks[np.ix_(test, train)]),
        atol=2e-3,
    )


@pytest.mark.slow
def test_workers_read_the_same_file(binary, stored):
    store, Ks = stored(binary.X)
    model = kw.MKLClassifier("precomputed", tol=1e-5)
    scores = cross_val_score(model, store, binary.y, cv=3, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(model, Ks, binary.y, cv=3))


# -- memory -----------------------------------------------------------------------------------


STATUS = Path("/proc/self/status")

#: fits 80 kernels whose triangles take 130 MB, and prints engine, gap and growth of memory that is no file
SCRIPT = """
import sys, threading, time
import numpy as np
import kernelweave as kw
from kernelweave.kernels import RBF

limit, path = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
X = rng.normal(size=(900, 10))
y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=900) > 1).astype(int)
kernels = [RBF(0.3 * 1.1**-m) for m in range(80)]

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

def run(way, X, y, limit):
    store = kw.GramStore.build(path, kernels, X)
    if way == "part":
        store, y = store[np.ix_(range(1, len(X)), range(1, len(X)))], y[1:]
    return kw.MKLClassifier("precomputed", memory_limit=limit, tol=0.02).fit(store, y)

def watched(way):
    start, most, done = anonymous(), [0], threading.Event()

    def watch():
        while not done.is_set():
            most[0] = max(most[0], anonymous())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = run(way, X, y, limit)
    done.set()
    watcher.join()
    print(model.gram_, model.dual_gap_, most[0] - start)

for way in ("store", "part"):
    run(way, X[:100], y[:100], None)  # compiled
    watched(way)
"""


@pytest.mark.system
@pytest.mark.skipif(
    not (STATUS.exists() and "RssAnon" in STATUS.read_text(encoding="utf-8")),
    reason="this system does not tell memory of files from other memory",
)
def test_memory_stays_within_a_limit_smaller_than_the_triangles(tmp_path):
    limit = 60 * 10**6
    command = [sys.executable, "-c", SCRIPT, str(limit), str(tmp_path / "store.gram")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line, engine in zip(done.stdout.splitlines(), ["store", "blocked"], strict=True):
        name, gap, growth = line.split()
        assert name == engine
        assert float(gap) <= 0.02
        assert 0 < int(growth) < limit
