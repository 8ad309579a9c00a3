"""Warnings point at the line of whoever called the package, in whatever thread they were raised."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from joblib import delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave._warnings import in_turn, parallel, warn
from kernelweave.kernels import RBF, Linear

KERNELS = [RBF(gamma=0.1), RBF(gamma=1.0), Linear()]
STINGY = {"tol": 1e-12, "max_iter": 2}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 3))
    return X, np.arange(45) % 3, X[:, 0] + rng.normal(size=45)


def labels_of(y, n_classes):
    return np.minimum(y, n_classes - 1)


def constant_column(data):
    X, y, _ = data
    table = np.column_stack([X, np.ones(len(X))])
    return kw.GMKLClassifier(max_iter=1, tol=1e-12).fit(table, labels_of(y, 2))


def dead_kernel(data):
    X, y, _ = data
    kernels = [Linear(columns=[0]), Linear(columns=[3])]
    return kw.GroupOMPClassifier(kernels, n_kernels=1).fit(np.column_stack([X, 0.0 * X]), labels_of(y, 2))


FITS = {
    "mkl": lambda data: kw.MKLClassifier(KERNELS, **STINGY).fit(data[0], labels_of(data[1], 2)),
    "three classes": lambda data: kw.MKLClassifier(KERNELS, **STINGY).fit(data[0], data[1]),
    "threads": lambda data: kw.MKLClassifier(KERNELS, n_jobs=2, **STINGY).fit(data[0], data[1]),
    "regressor": lambda data: kw.MKLRegressor(KERNELS, **STINGY).fit(data[0], data[2]),
    "one class": lambda data: kw.MKLOneClass(KERNELS, **STINGY).fit(data[0]),
    "pipeline": lambda data: make_pipeline(StandardScaler(), kw.MKLRegressor(KERNELS, **STINGY)).fit(
        data[0], data[2]
    ),
    "scores": lambda data: cross_val_score(kw.MKLRegressor(KERNELS, **STINGY), data[0], data[2], cv=3),
    "gmkl": lambda data: kw.GMKLRegressor(**STINGY).fit(data[0], data[2]),
    "gmkl, threads": lambda data: kw.GMKLClassifier(n_jobs=2, **STINGY).fit(data[0], data[1]),
    "constant column": constant_column,
    "dead kernel": dead_kernel,
    "empirical Bayes": lambda data: kw.EmpiricalBayesRegressor(KERNELS, **STINGY).fit(data[0], data[2]),
    "search": lambda data: kw.MKLClassifierCV(KERNELS, Cs=[1.0], cv=3, n_jobs=2, **STINGY).fit(
        data[0], labels_of(data[1], 2)
    ),
    "stability": lambda data: kw.stability_selection(
        kw.MKLRegressor(KERNELS, **STINGY), data[0], data[2], n_subsamples=4, n_jobs=2, random_state=0
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
def test_a_warning_names_the_line_of_the_user(data, fit):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(data)
    assert seen
    assert {warning.filename for warning in seen} == {__file__}


def test_a_model_in_a_thread_warns_as_often_as_one_that_is_not(data):
    def count(n_jobs):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kw.MKLClassifier(KERNELS, n_jobs=n_jobs, **STINGY).fit(data[0], data[1])
        return sorted(str(warning.message) for warning in seen)

    assert len(count(None)) == 3
    assert count(2) == count(None)


def test_where_no_line_is_the_users_the_outermost_one_is_named():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        thread = threading.Thread(target=warn, args=("hello", ConvergenceWarning))
        thread.start()
        thread.join()
    assert [(str(warning.message), warning.category) for warning in seen] == [("hello", ConvergenceWarning)]


def test_results_come_in_order_and_one_at_a_time():
    tasks = [delayed(divmod)(7, k) for k in (1, 2, 3)]
    assert parallel(2, tasks) == [divmod(7, k) for k in (1, 2, 3)]
    assert next(iter(in_turn(2, tasks))) == (7, 0)


def test_warnings_of_threads_within_threads_wait_for_the_outermost():
    def outer(name):
        return parallel(2, [delayed(warn)(f"{name}{k}") for k in range(2)])

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        parallel(2, [delayed(outer)(name) for name in "ab"])
    assert [str(warning.message) for warning in seen] == ["a0", "a1", "b0", "b1"]
    assert {warning.filename for warning in seen} == {__file__}
