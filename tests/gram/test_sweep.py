"""Models trained together are what they are trained one by one; what they ask for is read once."""

import _thread
import gc
import signal
import weakref

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.gram import DenseGram, dense
from kernelweave.gram.sweep import Sweep
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.testing.gram import GramCase, several_models_at_once

KERNELS = [RBF(gamma) for gamma in (0.02, 0.1, 0.5, 2.0)] + [Linear()]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::4], y[::4]


@pytest.fixture
def gram(rng):
    roots = rng.normal(size=(9, 30, 4))
    return DenseGram(roots @ roots.transpose(0, 2, 1), rng.uniform(0.5, 2.0, size=9))


def fit(X, y, **options):
    return kw.MKLClassifier(KERNELS, tol=1e-6, **options).fit(X, y)


@pytest.mark.parametrize("engine", ["dense", "packed", "cached", "blocked"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_classes_together_are_those_of_separate_fits(iris, engine, loss, monkeypatch):
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)  # as large matrices are
    X, y = iris
    together = fit(X, y, gram=engine, loss=loss)
    for k, name in enumerate(together.classes_):
        alone = fit(X, y == name, gram=engine, loss=loss)
        assert together.dual_gap_[k] <= 1e-6
        np.testing.assert_allclose(together.weights_[k], alone.weights_, atol=1e-7)
        np.testing.assert_allclose(together.objective_[k], alone.objective_, rtol=2e-6)


def test_outputs_together_are_those_of_separate_fits(iris):
    X, Y = iris[0][:, :2], iris[0][:, 2:]
    together = kw.MKLRegressor(KERNELS, multioutput="independent", tol=1e-6).fit(X, Y)
    for k in range(2):
        alone = kw.MKLRegressor(KERNELS, tol=1e-6).fit(X, Y[:, k])
        np.testing.assert_allclose(together.weights_[k], alone.weights_, atol=1e-10)


@pytest.mark.parametrize("regularizer", [kw.LpNorm(p=1), kw.LpNorm(p=4)])
def test_two_at_a_time_are_the_same_as_one(iris, regularizer):
    one, two = (fit(*iris, regularizer=regularizer, n_jobs=n_jobs) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    with parallel_config(backend="threading", n_jobs=2):
        np.testing.assert_array_equal(fit(*iris, regularizer=regularizer).weights_, one.weights_)


def test_sums_that_are_not_kept_are_the_same(iris, monkeypatch):
    expected = fit(*iris).predict_proba(iris[0])
    monkeypatch.setattr("kernelweave.gram.sweep.SMALL_SUM", 0)
    monkeypatch.setattr("kernelweave.gram.sweep.SUM_BYTES", 0)
    monkeypatch.setattr("kernelweave.gram.sweep.LEAST_SUMS", 2)
    np.testing.assert_allclose(fit(*iris).predict_proba(iris[0]), expected, atol=1e-8)


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_machines_on_some_rows_are_the_same(monkeypatch, rng, p):
    """Where sums are not kept, second machines take the rows of their support vectors alone."""
    monkeypatch.setattr("kernelweave.gram.sweep.SMALL_SUM", 0)
    monkeypatch.setattr("kernelweave.solvers.single.smo.SMO.exact_samples", 0)
    y = rng.integers(3, size=320)
    X = rng.normal(size=(320, 3)) + 3.0 * np.eye(3)[y]
    Ks = [kernel(X) for kernel in KERNELS]
    model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p), tol=1e-5)
    asked, whole = [], DenseGram.rows_each
    monkeypatch.setattr(
        DenseGram, "rows_each", lambda *args: (asked.append([len(some) for some in args[1]]), whole(*args))[1]
    )
    found = clone(model).fit(Ks, y)
    assert any(len(sizes) > 1 and 0 < max(sizes) <= 0.45 * 320 for sizes in asked)
    monkeypatch.setattr("kernelweave.solvers.base.FEW_ROWS", 0.0)
    asked.clear()
    expected = clone(model).fit(Ks, y)
    assert asked == []
    assert max(found.dual_gap_) <= 1e-5
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-5)
    np.testing.assert_allclose(
        found.predict_proba(np.dstack(Ks)), expected.predict_proba(np.dstack(Ks)), atol=5e-3
    )


def test_a_released_sum_is_at_hand_until_the_next(gram, rng, monkeypatch):
    weights = rng.gamma(1.0, size=(2, 9))

    def model(K):
        first = K.combine(weights[0])
        assert K.at_hand(weights[0]) is None  # the model has it
        K.release(first)
        kept = K.at_hand(weights[0])
        assert K.at_hand(weights[1]) is None
        second = K.combine(weights[1])
        assert K.at_hand(weights[0]) is None
        K.release(second)
        return kept is first, K.at_hand(weights[1])

    for kept, K in Sweep(gram).run([model] * 2):
        assert kept
        np.testing.assert_allclose(K, gram.combine(weights[1]))
    monkeypatch.setattr("kernelweave.gram.sweep.SUM_BYTES", 0)
    monkeypatch.setattr("kernelweave.gram.sweep.SUM_SHARE", 0.0)
    monkeypatch.setattr("kernelweave.gram.sweep.LEAST_SUMS", 1)
    assert not any(kept for kept, _ in Sweep(gram).run([model] * 2))  # no room for two


def test_classes_take_one_first_look_and_one_sum_after_it(monkeypatch, rng):
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)
    monkeypatch.setattr("kernelweave.solvers.growing.PILOT_SAMPLES", 20)
    X = rng.normal(size=(130, 2))
    asked = []

    def note(name, size):
        method = getattr(DenseGram, name)

        def noting(self, *args):
            asked.append((name, size(self, args)))
            return method(self, *args)

        monkeypatch.setattr(DenseGram, name, noting)

    note("square", lambda gram, args: len(args[0]))
    note("combine", lambda gram, args: gram.n_samples)
    labels = np.digitize(X[:, 0] + 0.3 * rng.normal(size=130), [-0.4, 0.4])
    together = kw.MKLClassifier(KERNELS, gram="dense").fit(X, labels)
    whole = [one for one in asked if one[1] > 20]
    assert whole[:2] == [("square", 52), ("combine", 130)]  # three classes, one look, one sum
    monkeypatch.undo()
    monkeypatch.setattr("kernelweave.solvers.growing.PILOT_SAMPLES", 20)
    for k in range(3):
        alone = kw.MKLClassifier(KERNELS, gram="dense").fit(X, labels == k)
        assert together.dual_gap_[k] <= 1e-3
        np.testing.assert_allclose(together.objective_[k], alone.objective_, rtol=2e-3)


def test_a_sum_of_several_models_is_released_by_the_last(gram, rng):
    weights, given, back = rng.uniform(0.1, 1.0, size=gram.n_kernels), [], []
    gram.release = back.append

    def task(view):
        K = view.combine(weights.copy())
        given.append(K)
        view.summed = None  # as where the sums of all have no room
        view.release(K)
        return len(back)

    assert Sweep(gram).run([task] * 3) == [0, 0, 1]
    assert all(K is given[0] for K in given)
    np.testing.assert_array_equal(given[0], gram.combine(weights))


def test_large_matrices_are_read_once_for_all(monkeypatch):
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)
    several_models_at_once(GramCase(DenseGram))


def test_a_pass_serves_all_models(gram, rng):
    weights, alpha = rng.gamma(1.0, size=(3, 9)), rng.normal(size=(30, 3))
    rows = np.arange(0, 30, 2)

    def model(K, k):
        part = K.subset(rows)
        return K.combine(weights[k]), K.quad(alpha[:, k]), part.quad(alpha[rows, k]), part.engine, K.n_passes

    found = Sweep(gram).run([lambda K, k=k: model(K, k) for k in range(3)])
    for k, (sums, squares, fewer, part, _) in enumerate(found):
        np.testing.assert_allclose(sums, gram.combine(weights[k]))
        np.testing.assert_allclose(squares, gram.quad(alpha[:, k]))
        np.testing.assert_allclose(fewer, gram.subset(rows).quad(alpha[rows, k]))
        assert part is found[0][3]  # made once


def test_models_share_what_is_read(gram, rng, monkeypatch):
    monkeypatch.setattr(dense, "CACHED_BYTES", 0)
    weights = rng.gamma(1.0, size=(4, 9))
    shares = Sweep(gram).run([lambda K, d=d: (K.combine(d), K.n_passes)[1] for d in weights])
    assert gram.n_passes == pytest.approx(0.5) == sum(shares)
    assert shares == [pytest.approx(0.125)] * 4


def test_an_exception_is_that_of_the_model_that_asked(gram, rng):
    alpha = rng.normal(size=30)

    def refused(K):
        with pytest.raises(ValueError, match="reshape"):
            K.quad(alpha[:7])
        return K.quad(alpha)

    first, second = Sweep(gram).run([refused, lambda K: K.quad(alpha)])
    np.testing.assert_array_equal(first, second)


def test_a_failure_ends_all(gram):
    ended = []

    def waits(K):
        try:
            for _ in range(100):
                K.quad(np.ones(30))
        except BaseException:
            ended.append(True)
            raise

    def fails(K):
        K.quad(np.ones(30))
        raise ZeroDivisionError("of this model")

    with pytest.raises(ZeroDivisionError, match="of this model"):
        Sweep(gram).run([waits, fails, waits])
    assert ended == [True, True]


@pytest.fixture
def interruptible():
    """Ctrl-C as it is in a terminal; what runs in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_reaches_every_model_once(gram):
    def model(K):
        try:
            for k in range(1000):
                if k == 2:
                    _thread.interrupt_main()
                K.quad(np.ones(30))
        except KeyboardInterrupt:
            return K.quad(np.ones(30))  # what is asked afterwards is answered
        return None

    for found in Sweep(gram).run([model] * 3):
        np.testing.assert_array_equal(found, gram.quad(np.ones(30)))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_fit_keeps_the_best_of_every_class(iris):
    model, seen = kw.MKLClassifier(KERNELS, tol=1e-12, regularizer=kw.LpNorm(p=1)), set()

    def listener(title, iteration, state):
        seen.add(title)
        if len(seen) == 3:
            _thread.interrupt_main()

    model._listener = listener
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(*iris)
    assert model.score(*iris) > 0.5


def test_a_checkpoint_of_classes_is_resumed(iris, tmp_path):
    options = {"checkpoint": tmp_path / "fit.ckpt", "regularizer": kw.LpNorm(p=1)}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit(*iris, max_iter=2, **options)
    resumed = fit(*iris, **options)
    assert (resumed.n_resumed_ == 2).all()
    assert (resumed.dual_gap_ <= 1e-6).all()


def test_every_class_looks_at_the_same_samples(rng):
    labels = rng.integers(4, size=40)
    every = Problem(np.where(labels[:, None] == np.arange(4), 1.0, -1.0), Hinge(), np.ones((40, 1)))
    chosen = [every.column(k).spread(8) for k in range(4)]
    for rows in chosen[1:]:
        np.testing.assert_array_equal(rows, chosen[0])
    counts = np.bincount(labels[chosen[0]], minlength=4)
    assert np.abs(counts / 8 - np.bincount(labels) / 40).max() <= 0.13  # spread like all of them
    part = every.column(0).subset(np.arange(20))
    np.testing.assert_array_equal(part.spread(5), every.column(3).subset(np.arange(20)).spread(5))


def test_kernels_are_let_go_without_the_garbage_collector():
    gram = DenseGram([np.eye(3), np.ones((3, 3))])
    kept = weakref.ref(gram)
    gc.collect()
    gc.disable()
    try:
        Sweep(gram).run([lambda K, c=c: K.quad(np.array([1.0, c, 0.0])) for c in (0.0, 1.0)])
        del gram
        assert kept() is None
    finally:
        gc.enable()
