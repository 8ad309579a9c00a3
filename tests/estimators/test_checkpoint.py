"""Fits that are killed, for real, and go on from their checkpoint to the same objective."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.estimators.group_omp_cv import GreedySearch
from kernelweave.kernels import RBF, FunctionKernel, Linear, per_feature
from kernelweave.solvers import checkpoint
from kernelweave.solvers.checkpoint import Checkpoint, previous, read
from kernelweave.solvers.greedy import path as greedy_path
from kernelweave.solvers.multiple import Alternating

KERNELS = [RBF(gamma=gamma) for gamma in np.geomspace(0.02, 2.0, 6)]


def sample(n: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.digitize(score, [-0.7, 0.7]) if classes == 3 else np.sign(score)


def plain(**options: Any) -> kw.MKLClassifier:
    """A fit of many machines: steps that are not sped up."""
    return kw.MKLClassifier(KERNELS, solver=Alternating(memory=0), max_iter=500, **options)


KINDS = ("classes", "sparse", "concave", "growing")


def job(kind: str, path: Any = None) -> tuple[Any, np.ndarray, np.ndarray]:
    """An estimator and its data; seconds, most of them solving."""
    if kind == "classes":
        options = {"loss": "logistic", "regularizer": kw.LpNorm(p=4 / 3), "tol": 1e-8}
        return plain(**options, checkpoint=path), *sample(250, classes=3)
    if kind == "sparse":
        options = {"regularizer": kw.LpNorm(p=1), "solver": "interleaved", "C": 10.0, "tol": 1e-7}
        return kw.MKLClassifier(KERNELS, **options, checkpoint=path), *sample(700)
    if kind == "concave":
        options = {"regularizer": "smkl", "C": 10.0, "tol": 1e-6}
        return kw.MKLRegressor(KERNELS, **options, checkpoint=path), *sample(800)
    # solved on a growing part of the samples
    options = {"kernels": KERNELS[:3], "gram": "blocked", "tol": 1e-7}
    return plain(checkpoint=path).set_params(**options), *sample(4100)


@cache
def cold(kind: str) -> Any:
    """The fit that nobody kills."""
    model, X, y = job(kind)
    return model.fit(X, y)


@cache
def duration(kind: str) -> float:
    """Seconds of a fit once everything is compiled."""
    model, X, y = job(kind)
    begin = time.perf_counter() if cold(kind) else 0.0
    model.fit(X, y)
    return time.perf_counter() - begin


def kill_a_fit(kind: str, path: Path, seconds: float, wait: bool = False) -> None:
    """Fit in a process of its own, ended by SIGKILL so many seconds after its start or its first write."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, kind, str(path), *([] if wait else ["warm"])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"fitting\n"
        while wait and not path.exists() and process.poll() is None:
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


def machines_kept(path: Path) -> np.ndarray:
    """Machines of the models that a checkpoint holds."""
    if not path.exists():
        return np.zeros(0, dtype=int)
    entries = read(path)
    return np.array([entry.values["n_machines"] for key, entry in entries.items() if key.endswith("/main")])


def check_resumed(kind: str, path: Path) -> bool:
    """Go on after a kill; whether there was something to go on from."""
    whole = cold(kind)
    kept = machines_kept(path)
    model, X, y = job(kind, path)
    model.fit(X, y)
    np.testing.assert_allclose(model.objective_, whole.objective_, rtol=1e-6)
    assert np.max(model.stationarity_) <= model.tol
    # every machine that was written down counts, and none is trained twice
    assert np.sum(model.n_resumed_) == kept.sum()
    trained = np.sum(model.n_iter_) - np.sum(model.n_resumed_)
    # rounds of decomposition steps do not close the gap steadily
    most = np.sum(whole.n_iter_) * (1.5 if kind == "sparse" else 1.0)
    assert trained < most or not len(kept)
    return len(kept) > 0


kills = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")


@pytest.mark.system
@kills
@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("classes", 0.9), pytest.param("sparse", 0.3, marks=pytest.mark.slow), ("growing", 0.6)],
)
def test_a_killed_fit_goes_on(tmp_path, kind, seconds):
    kill_a_fit(kind, tmp_path / "c", seconds, wait=True)
    assert (tmp_path / "c").exists()
    check_resumed(kind, tmp_path / "c")


@kills
@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path):
    went_on = []
    for index, moment in enumerate(np.random.default_rng(0).uniform(size=20)):
        kind, path = KINDS[index % len(KINDS)], tmp_path / str(index)
        kill_a_fit(kind, path, moment * duration(kind))
        went_on.append(check_resumed(kind, path))
    assert sum(went_on) >= 12


@kills
@pytest.mark.slow
def test_kills_one_after_another_get_there(tmp_path):
    """Every process goes on where the last one died."""
    path, seconds, total = tmp_path / "c", duration("classes"), 0
    for _ in range(5):
        kill_a_fit("classes", path, 0.3 * seconds)
        assert machines_kept(path).sum() >= total
        total = machines_kept(path).sum()
    assert total > 0
    assert check_resumed("classes", path)


class Dying(Alternating):
    """Ends with an error after so many machines, of all models together."""

    @classmethod
    def after(cls, count, error):
        cls.left, cls.error = count, error
        return cls()

    def train(self, *args):
        if Dying.left == 0:
            Dying.left = 10**9
            raise Dying.error
        Dying.left -= 1
        return super().train(*args)


# -- without kills ----------------------------------------------------------------------------


@pytest.fixture
def small():
    return sample(90, classes=3)


def fit(small, path, tol=1e-5, **options):
    X, y = small
    return kw.MKLClassifier(KERNELS[:3], tol=tol, checkpoint=path, **options).fit(X, y)


def test_a_finished_fit_returns_at_once(tmp_path, small):
    path = tmp_path / "c"
    first, second = fit(small, path), fit(small, path)
    assert read(path)["problem"].values["finished"]
    assert (first.n_resumed_ == 0).all()
    assert (second.n_resumed_ == second.n_iter_).all()
    np.testing.assert_array_equal(second.n_iter_, first.n_iter_)
    np.testing.assert_allclose(second.dual_coef_, first.dual_coef_)
    np.testing.assert_allclose(second.objective_, first.objective_, rtol=1e-12)
    np.testing.assert_allclose(second.predict_proba(small[0]), first.predict_proba(small[0]), atol=1e-6)
    assert [len(history["gap"]) for history in second.history_] == first.n_iter_.tolist()


def test_a_smaller_tol_goes_on_where_the_larger_ended(tmp_path, small):
    fit(small, tmp_path / "c", tol=1e-2)
    fine = fit(small, tmp_path / "c", tol=1e-8)
    assert (fine.n_resumed_ > 0).all()
    assert (fine.dual_gap_ <= 1e-8).all()
    np.testing.assert_allclose(fine.objective_, fit(small, None, tol=1e-8).objective_, rtol=1e-7)


@pytest.mark.wide
@pytest.mark.parametrize(
    "changes", [{"solver": "interleaved"}, {"gram": "blocked"}, {"max_iter": 7}, {"n_jobs": 2}]
)
def test_how_it_is_solved_may_change(tmp_path, small, changes):
    first = fit(small, tmp_path / "c")
    second = fit(small, tmp_path / "c", **changes)
    assert (second.n_resumed_ == first.n_iter_).all()


DIFFERENT = [
    ({"C": 2.0}, "C or weights of the samples"),
    ({"class_weight": "balanced"}, "C or weights of the samples"),
    ({"loss": "logistic"}, "loss"),
    ({"regularizer": kw.LpNorm(p=3)}, "regularizer"),
    ({"fit_intercept": False}, "fit_intercept"),
    ({"multiclass": "ovo"}, "models"),
    ({"normalize": None}, "kernel values"),
    ({"kernels": [RBF(gamma=0.02), RBF(gamma=0.05), RBF(gamma=0.13)]}, "kernel values"),
    ({"kernels": KERNELS[2::-1]}, "kernel values"),
    ({"kernels": KERNELS[:2]}, "kernel values"),
]


@pytest.mark.parametrize(("changes", "what"), DIFFERENT, ids=lambda value: str(value)[:40])
def test_another_problem_is_refused(tmp_path, small, changes, what):
    path = tmp_path / "c"
    fit(small, path)
    before = path.read_bytes()
    X, y = small
    model = kw.MKLClassifier(KERNELS[:3], checkpoint=path).set_params(**changes)
    with pytest.raises(ValueError, match=rf"of another problem \(.*{what}.* differ\): delete it"):
        model.fit(X, y)
    assert path.read_bytes() == before
    assert not hasattr(model, "weights_")


def test_other_data_are_refused(tmp_path, small):
    path = tmp_path / "c"
    fit(small, path)
    X, y = small
    moved, flipped = X.copy(), y.copy()
    moved[17, 2] += 0.1
    flipped[17] = (flipped[17] + 1) % 3
    with pytest.raises(ValueError, match="kernel values differ"):
        fit((moved, y), path)
    with pytest.raises(ValueError, match="targets"):
        fit((X, flipped), path)
    with pytest.raises(ValueError, match="of another problem"):
        kw.MKLRegressor(KERNELS[:3], checkpoint=path).fit(X, y)


def test_a_path_that_cannot_be_written_is_refused_before_any_work(tmp_path, small):
    def work(X, Z):
        raise AssertionError("too late")

    model = kw.MKLClassifier([FunctionKernel(work)], checkpoint=tmp_path / "missing" / "c")
    with pytest.raises(ValueError, match=r"checkpoint=.*cannot be written"):
        model.fit(*small)
    with pytest.raises(ValueError, match="checkpoint=3 must be a path"):
        model.set_params(checkpoint=3).fit(*small)


def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(tmp_path, small):
    path = tmp_path / "c"
    first = fit(small, path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="resumes the one before it"):
        second = fit(small, path)
    assert second.n_resumed_.sum() > 0
    np.testing.assert_allclose(second.objective_, first.objective_, rtol=2e-5)
    for file in (path, previous(path)):
        file.write_bytes(file.read_bytes()[:11])
    with pytest.warns(UserWarning, match="starts again"):
        third = fit(small, path)
    assert third.n_resumed_.sum() == 0


def test_threads_share_one_checkpoint(tmp_path, small):
    with parallel_config(backend="loky"):  # processes could not
        threaded = fit(small, tmp_path / "c", tol=1e-7, n_jobs=3)
    again = fit(small, tmp_path / "c", tol=1e-7, n_jobs=3)
    np.testing.assert_array_equal(again.n_resumed_, threaded.n_iter_)
    np.testing.assert_allclose(again.objective_, fit(small, None, tol=1e-7).objective_, rtol=1e-6)


def test_finished_models_of_a_fit_are_not_trained_again(tmp_path, small):
    """Killed in the second pair: the first one is there, the second goes on, the third is new."""
    options = {"tol": 1e-8, "regularizer": kw.LpNorm(p=4 / 3), "multiclass": "ovo"}
    machines = fit(small, None, **options).n_iter_
    with pytest.raises(MemoryError):
        fit(small, tmp_path / "c", **options, solver=Dying.after(machines[0] + 2, MemoryError))
    rest = fit(small, tmp_path / "c", **options)
    assert rest.n_resumed_.tolist() == [machines[0], 2, 0]
    assert rest.n_iter_[0] == machines[0]


def test_models_trained_together_go_on_together(tmp_path, small):
    """Killed when all classes have begun: none of the machines that were trained is trained again."""
    options = {"tol": 1e-8, "regularizer": kw.LpNorm(p=4 / 3)}
    machines = fit(small, None, **options).n_iter_
    assert machines.min() > 2
    with pytest.raises(MemoryError):
        fit(small, tmp_path / "c", **options, solver=Dying.after(6, MemoryError))
    rest = fit(small, tmp_path / "c", **options)
    assert rest.n_resumed_.tolist() == [2, 2, 2]
    assert (rest.dual_gap_ <= 1e-8).all()


def test_interruption_leaves_a_checkpoint(tmp_path, small):
    path, two = tmp_path / "c", (small[0], small[1] == 1)
    options = {"tol": 1e-8, "regularizer": kw.LpNorm(p=4 / 3)}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fit(two, path, **options, solver=Dying.after(2, KeyboardInterrupt))
    assert not read(path)["problem"].values["finished"]
    rest = fit(two, path, **options)
    assert rest.n_resumed_ == 2
    assert rest.dual_gap_ <= 1e-8


def test_a_line_tells_that_a_fit_goes_on(tmp_path, small, capsys):
    fit(small, tmp_path / "c", verbose=1)
    assert "going on" not in capsys.readouterr().out
    fit(small, tmp_path / "c", verbose=1)
    assert "resuming from" in capsys.readouterr().out


def test_regression_and_one_class(tmp_path, small):
    X, _ = small
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    for multioutput in ("shared", "independent"):
        path = tmp_path / multioutput
        reg = kw.MKLRegressor([Linear(), RBF()], multioutput=multioutput, checkpoint=str(path))
        np.testing.assert_allclose(reg.fit(X, Y).predict(X), clone(reg).fit(X, Y).predict(X), rtol=1e-6)
        assert np.sum(clone(reg).fit(X, Y).n_resumed_) == np.sum(reg.n_iter_)
    detector = kw.MKLOneClass(KERNELS[:3], nu=0.2, checkpoint=tmp_path / "one").fit(X)
    again = clone(detector).fit(X)
    assert again.n_resumed_ == detector.n_iter_
    assert again.offset_ == pytest.approx(detector.offset_)


def test_pilots_are_part_of_it(tmp_path):
    """Fits that look at a part of the samples first."""
    X, y = sample(900)
    options = {"regularizer": kw.LpNorm(p=4 / 3), "loss": "logistic", "tol": 1e-8}
    models = [kw.MKLClassifier(KERNELS, **options, checkpoint=tmp_path / "c").fit(X, y) for _ in range(2)]
    assert models[1].n_resumed_ == models[0].n_iter_
    assert models[1].objective_ == pytest.approx(models[0].objective_, rel=1e-10)


# -- the other estimators ---------------------------------------------------------------------


class Killed(BaseException):
    """Stands in for SIGKILL: nothing on the way catches it."""


def kill_after(monkeypatch, count):
    """Let the next fit die after so many iterates were kept."""
    kept, left = Checkpoint.keep, [count]

    def keep(self, *args):
        self._begun = -np.inf  # as if much time had passed
        kept(self, *args)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(Checkpoint, "keep", keep)


per_column = per_feature(Linear())
OTHERS = {
    "bayes": lambda: kw.EmpiricalBayesRegressor(per_column, tol=1e-7),
    "bayes classes": lambda: kw.EmpiricalBayesClassifier(per_feature(RBF()), tol=1e-6),
    "bayes labels": lambda: kw.EmpiricalBayesClassifier(per_column, method="regression", tol=1e-6),
    "gmkl": lambda: kw.GMKLRegressor(C=10.0, tol=1e-6),
    "gmkl starts": lambda: kw.GMKLRegressor(C=10.0, tol=1e-6, n_init=2, random_state=0),
    "gmkl classes": lambda: kw.GMKLClassifier(C=5.0, tol=1e-5, n_features_to_select=2),
    "greedy": lambda: kw.GroupOMPRegressor(per_feature(RBF()), tol=1e-4),
    "greedy backward": lambda: kw.GroupOMPRegressor(per_feature(RBF()), tol=1e-4, backward=True),
    "greedy sample": lambda: kw.GroupOMPRegressor(
        per_feature(RBF()), tol=1e-4, dictionary_sample=2, random_state=3
    ),
    "greedy hinge": lambda: kw.GroupOMPClassifier(per_feature(RBF()), loss="hinge", tol=1e-4),
}


def other_data(name):
    X, y = sample(90, classes=3)
    labels = name in ("bayes classes", "bayes labels", "gmkl classes", "greedy hinge")
    return X, y if labels else X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * y


def loss_of(model):
    """What the fit minimises."""
    value = model.log_marginal_likelihood_ if hasattr(model, "log_marginal_likelihood_") else model.objective_
    return np.atleast_1d(value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", OTHERS)
def test_every_estimator_goes_on(tmp_path, monkeypatch, name, count):
    (X, y), model = other_data(name), OTHERS[name]()
    whole = clone(model).fit(X, y)
    model.set_params(checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        kill_after(patch, count)
        with pytest.raises(Killed):
            clone(model).fit(X, y)
    rest = clone(model).fit(X, y)
    np.testing.assert_allclose(loss_of(rest), loss_of(whole), rtol=1e-6)
    np.testing.assert_allclose(rest.weights_, whole.weights_, atol=2e-2 * np.max(whole.weights_))
    # the first entry may be the start; after a selection only the steps of the second fit are told, and
    # of several starts only those of the best
    assert np.sum(rest.n_resumed_) > 0 or count == 1 or name in ("gmkl classes", "bayes")
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.n_iter_, rest.n_iter_)
    np.testing.assert_array_equal(again.n_resumed_, rest.n_iter_)
    np.testing.assert_allclose(loss_of(again), loss_of(rest), rtol=1e-6)
    with pytest.raises(ValueError, match="of another problem"):
        clone(model).fit(X[::-1], y)
    with pytest.raises(ValueError, match="cannot be written"):
        clone(model).set_params(checkpoint=tmp_path / "missing" / "c").fit(X, y)


@pytest.mark.parametrize("name", ["greedy", "greedy backward", "greedy sample", "greedy hinge"])
def test_a_greedy_path_is_the_same_kernel_by_kernel(tmp_path, monkeypatch, name):
    (X, y), model = other_data(name), OTHERS[name]()
    whole = clone(model).fit(X, y)
    model.set_params(checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        kill_after(patch, 2)
        with pytest.raises(Killed):
            clone(model).fit(X, y)
    rest = clone(model).fit(X, y)
    assert rest.n_resumed_ == 2
    assert rest.path_.sets == whole.path_.sets
    assert rest.path_.stopped == whole.path_.stopped
    np.testing.assert_allclose(rest.path_.objective, whole.path_.objective, rtol=1e-6)
    np.testing.assert_allclose(rest.history_["gain"], whole.history_["gain"], rtol=1e-5)
    np.testing.assert_allclose(rest.predict(X), whole.predict(X), atol=1e-3)


def test_a_greedy_path_looks_at_no_kernel_twice(tmp_path, monkeypatch):
    X, y = other_data("greedy")
    model = kw.GroupOMPRegressor(per_feature(RBF()), n_kernels=2, tol=0.0, checkpoint=tmp_path / "c").fit(
        X, y
    )
    looks = []
    gains = greedy_path._gains
    monkeypatch.setattr(greedy_path, "_gains", lambda *args: looks.append(1) or gains(*args))
    longer = clone(model).set_params(n_kernels=3).fit(X, y)
    assert longer.n_resumed_ == 2
    assert len(looks) == 1
    assert longer.path_.sets[:2] == model.path_.sets
    shorter = clone(model).set_params(n_kernels=1).fit(X, y)
    assert len(looks) == 1
    assert shorter.path_.sets == model.path_.sets[:1]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_folds_that_are_done_are_kept(tmp_path, monkeypatch, n_jobs):
    X, y = other_data("greedy")
    search = kw.GroupOMPRegressorCV(per_feature(RBF()), alphas=[1e-4, 1.0], cv=4, n_jobs=n_jobs)
    whole = clone(search).fit(X, y)
    search.set_params(checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        kill_after(patch, 2)
        with pytest.raises(Killed):
            clone(search).fit(X, y)
    done, fold = [], GreedySearch.fold
    monkeypatch.setattr(GreedySearch, "fold", lambda self, *args: done.append(1) or fold(self, *args))
    rest = clone(search).fit(X, y)
    assert len(done) <= 2
    np.testing.assert_allclose(
        rest.cv_results_["split_test_scores"], whole.cv_results_["split_test_scores"], rtol=1e-8
    )
    with pytest.raises(ValueError, match="of another problem"):
        clone(search).set_params(alphas=3).fit(X, y)
    moved = X.copy()
    moved[5, 1] += 0.5
    with pytest.raises(ValueError, match="kernel values differ"):
        clone(search).fit(moved, y)


def main(kind: str, path: str, *warm: str) -> None:
    """What the killed process does."""
    model, X, y = job(kind, path)
    if warm:  # with what is compiled already loaded
        clone(model).set_params(tol=0.1, checkpoint=None).fit(X, y)
    checkpoint.SHARE = 0.3  # a fit of seconds stands for one of hours
    print("fitting", flush=True)
    model.fit(X, y)


if __name__ == "__main__":
    main(*sys.argv[1:])
