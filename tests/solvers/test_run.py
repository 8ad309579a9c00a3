"""The one loop, driven by a method that halves a number."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave.solvers.checkpoint import Checkpoint, Entry, Keeper
from kernelweave.solvers.run import Method, Run, best_of


@dataclass(frozen=True)
class Number:
    value: float

    @property
    def residual(self):
        return self.value

    @property
    def objective(self):
        return self.value


class Halving(Method):
    """Halves the start, `most` times at the most."""

    columns = ("value",)

    def __init__(self, most=10**9, after=None):
        self.most, self.after = most, after

    def start(self, run):
        entry = run.found()
        if entry is not None:
            run.n_iter = run.n_resumed = entry.values["n"]
            return Number(run.history["value"].pop())
        return Number(run.begin if run.best is None else run.best.value)

    def step(self, run, iterate):
        self.most -= 1
        return Number(0.5 * iterate.value) if self.most >= 0 else None

    def successor(self, run):
        return self.after

    def row(self, run, iterate):
        return (iterate.value,)

    def saved(self, run):
        return Entry({"n": run.n_iter})

    def summary(self, run):
        return {"end": run.best.value}


def solve(tol=0.1, method=None, begin=1.0, **options):
    return Run(method or Halving(), None, tol=tol, begin=begin, **options).solve()


def test_it_ends_at_the_tolerance():
    found = solve()
    assert (found.state.value, found.n_iter, found.reason, found.converged) == (1 / 16, 4, "tol", True)
    assert found.history == {"value": [1.0, 0.5, 0.25, 0.125, 0.0625]}


def test_it_ends_at_max_iter_and_says_so():
    with pytest.warns(ConvergenceWarning, match=r"residual is 0.25 after 2 steps \(tol=0.1\)"):
        found = solve(max_iter=2)
    assert (found.n_iter, found.reason, found.converged) == (2, "max_iter", False)


def test_without_another_step_it_stands_still():
    with pytest.warns(ConvergenceWarning):
        assert solve(method=Halving(1)).reason == "standstill"


def test_a_successor_goes_on_from_the_best():
    found = solve(method=Halving(2, after=Halving()))
    assert (found.state.value, found.reason) == (1 / 16, "tol")
    assert found.n_iter == 4  # its start is no iteration


def test_the_callback_sees_every_iteration_and_may_end_it():
    seen = []
    solve(callback=lambda i, number: seen.append((i, number.value)))
    assert seen == [(0, 0.5), (1, 0.25), (2, 0.125), (3, 0.0625)]
    with pytest.warns(ConvergenceWarning):
        found = solve(callback=lambda i, number: i == 1)
    assert (found.n_iter, found.reason) == (2, "interrupted")


def interrupt(i, number):
    if number.value < 0.3:
        raise KeyboardInterrupt


def test_ctrl_c_keeps_the_best_of_all_starts():
    begins = [1.0, 0.35, 0.8]
    runs = (Run(Halving(), None, tol=0.2, callback=interrupt, begin=b, phase=str(b)) for b in begins)
    with pytest.warns(ConvergenceWarning, match="interrupted; the stationarity residual is 0.25"):
        found = best_of(runs)
    assert (found.state.value, found.reason) == (0.25, "interrupted")
    assert found.starts == {"end": [0.25], "chosen": [True]}


def test_ctrl_c_before_the_first_iterate_is_passed_on():
    class Hasty(Halving):
        def start(self, run):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(method=Hasty())


def test_the_best_start_wins_after_a_first_look():
    runs = [Run(Halving(), None, tol=0.01, begin=begin, phase=str(begin)) for begin in (1.0, 0.3, 0.5)]
    found = best_of(runs, look=(0.1, 2))
    assert [run.n_iter for run in runs] == [2, 5, 2]
    assert (found.state.value, found.converged) == (0.3 / 32, True)
    assert found.starts == {"end": [0.25, 0.3 / 32, 0.125], "chosen": [False, True, False]}


def test_a_run_resumes_where_another_ended(tmp_path):
    keepers = [Keeper(Checkpoint(tmp_path / "c", {}), "0")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve(max_iter=2, keeper=keepers[0])
    keepers[0].flush()
    found = solve(keeper=Keeper(Checkpoint(tmp_path / "c", {}), "0"))
    assert (found.n_iter, found.n_resumed) == (4, 2)
    assert found.history == solve().history
