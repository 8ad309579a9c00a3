"""Group orthogonal matching pursuit over kernels: the whole path in one run."""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..._typing import BoolArray, FloatArray
from ..checkpoint import Entry, Keeper
from ..run import Callback, Method, Result, Run
from .dictionary import FactorDictionary
from .refit import Fit, GreedyTask, Refit, refit_for

#: relative fall of the objective below which two sets of kernels count as equally good
SAME = 1e-10


@dataclass(frozen=True)
class Stage:
    """The model of one size on a path.

    Attributes
    ----------
    gain : float
        The gain that the last kernel to come in promised (NaN without kernels).
    fit : Fit
    """

    gain: float
    fit: Fit


@dataclass(frozen=True)
class GreedyPoint:
    """The best models of every size so far.

    Attributes
    ----------
    stages : list of Stage
        By number of kernels; the first has none.
    fit : Fit
        The fit of the current set; with backward steps this can be smaller than the largest set.
    gain : float
        The gain that the last kernel to come in promised (NaN without kernels).
    residual : float
        This gain relative to J without kernels; at the end of a run, the gain of the best kernel left. `tol`
        bounds it.
    """

    stages: list[Stage]
    fit: Fit
    gain: float
    residual: float


@dataclass
class GroupOMP(Method):
    """Greedy selection of kernels with a refit after every one (MKL-GOMP).

    With l samples, ridge lambda and residuals R of the current fit, kernel m promises the gain

        I_m = 1/l tr( R' K_m (K_m + lambda l I)^-1 R )

    the most that adding a function of its space to the fit can lower the objective J of
    `GreedyTask`. The kernel with the largest gain comes in, and all functions are fitted again:

        (sum_{m in G} K_m + lambda l I) alpha = Y,     R = Y - sum_{m in G} K_m alpha

    so J falls by at least the gain. All outputs count together. For other losses R is minus the
    gradient of the loss, lambda l alpha in every case. Sindhwani & Lozano (2011), algorithm 1, with
    the gain of its own 1/l loss.

    Parameters
    ----------
    n_kernels : int, optional
        Most kernels to let in; all by default.
    tol : float, default=1e-3
        The run ends when no gain exceeds this share of J without kernels, which is the variance of the
        targets for the squared loss with an intercept.
    backward : bool, default=False
        Whether to drop a kernel if J then rises by less than this share, or by less than half of what the
        last kernel gained, and if the smaller set is the best of its size so far (Zhang 2011).
    sample : int, float or None, default=None
        Number or share of the remaining kernels that are scored at each step, drawn at random. Before a run
        ends because no kernel gains enough, all of them are scored.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> from kernelweave.gram import FeatureSource
    >>> from kernelweave.kernels import Linear
    >>> from kernelweave.losses import Squared
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> task = GreedyTask(X[:, [2]] + 0.1 * X[:, [0]], np.ones(30), Squared(), ridge=0.01)
    >>> source = FeatureSource([(f"x{j}", Linear(columns=[j])) for j in range(3)], X)
    >>> dictionary = FactorDictionary(source, "variance", task.weight, True, task.shift)
    >>> result = GroupOMP(tol=1e-3).solve(dictionary, task)
    >>> result.state.stages[-1].fit.kernels, result.reason
    ((2, 0), 'tol')
    """

    n_kernels: int | None = None
    tol: float = 1e-3
    backward: bool = False
    sample: int | float | None = None
    random_state: Any = None

    columns = ("gain", "share", "objective", "error", "n_kernels")

    def solve(
        self,
        dictionary: FactorDictionary,
        task: GreedyTask,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
    ) -> Result:
        """Select kernels until the gain, their number or the callback ends it.

        The callback gets the step and the `GreedyPoint`. Ctrl-C ends the run too, and keeps the path so far.
        The sets that a keeper holds from an earlier run are fitted again, without scoring the other kernels.
        """
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": sys.maxsize, "callback": callback}
        return Run(copy(self), task, dictionary, keeper=keeper, phase="path", **limits).solve()

    # -- one run ------------------------------------------------------------------------------

    def start(self, run: Run) -> GreedyPoint:
        """The model without kernels, or the models that an earlier run had found."""
        live = len(run.gram.live)
        self._limit = min(self.n_kernels or live, live)
        self._rng = check_random_state(self.random_state)
        self._refit: Refit = refit_for(run.gram, run.problem)
        fit = self._refit.fit()
        # the least gain worth a kernel: targets that are constant up to rounding offer none
        self._least = max(self.tol * fit.objective, run.problem.rounding)
        stages, entry = [Stage(np.nan, fit)], run.found()
        if entry is not None:
            fit = self._resumed(run, entry, stages)
        return GreedyPoint(stages, fit, np.nan, np.nan)

    def step(self, run: Run, path: GreedyPoint) -> GreedyPoint | None:
        """Let the most promising kernel in, then perhaps drop others."""
        if len(path.fit.kernels) == self._limit:
            run.reason = "n_kernels"
            return None
        m, gain = self._best(run, path.fit)
        nothing = path.stages[0].fit.objective
        if gain <= self._least:
            run.reason = "tol"
            run.last = run.best = replace(path, residual=gain / nothing if nothing > 0.0 else 0.0)
            return None
        self._refit.add(m)
        stages, fit = list(path.stages), self._refit.fit()
        _keep(stages, Stage(gain, fit))
        if self.backward:
            fall = path.fit.objective - fit.objective
            fit = self._dropped(run, stages, fit, max(self._least, 0.5 * fall))
        return GreedyPoint(stages, fit, gain, gain / nothing)

    def _best(self, run: Run, fit: Fit) -> tuple[int, float]:
        """The kernel with the largest gain among those drawn, or among all if those drawn gain too little."""
        free = np.zeros(len(run.gram.names), dtype=bool)
        free[run.gram.live] = True
        free[list(fit.kernels)] = False
        drawn = self._drawn(free)
        gains = _gains(run, fit, drawn)
        if gains.max() <= self._least and drawn.sum() < free.sum():
            gains = np.maximum(gains, _gains(run, fit, free & ~drawn))
        m = int(gains.argmax())
        return m, float(gains[m])

    def _drawn(self, free: BoolArray) -> BoolArray:
        if self.sample is None:
            return free
        there = np.flatnonzero(free)
        count = np.ceil(self.sample * len(there)) if isinstance(self.sample, float) else self.sample
        drawn = np.zeros_like(free)
        drawn[self._rng.choice(there, int(min(count, len(there))), replace=False)] = True
        return drawn

    def _dropped(self, run: Run, stages: list[Stage], fit: Fit, allowed: float) -> Fit:
        """The fit after dropping kernels, while J rises by less than `allowed` and each set is better."""
        while len(fit.kernels) > 1:
            found = self._least_useful(run, fit, allowed)
            smaller = stages[len(fit.kernels) - 1]
            if found is None or not _better(found[1], smaller.fit):
                break
            self._refit, fit = found
            _keep(stages, Stage(smaller.gain, fit))
        return fit

    def _least_useful(self, run: Run, fit: Fit, allowed: float) -> tuple[Refit, Fit] | None:
        """The fit without the kernel that matters least, if J rises by less than `allowed`.

        J(G - m) >= level - lambda sum_{G - m} a'K a leaves few kernels to try.
        """
        kernels, best = list(fit.kernels), None
        energies = run.problem.ridge * self._refit.energies(fit)
        bounds = fit.level - energies.sum() + energies
        limit = fit.objective + allowed
        for k in np.argsort(bounds[:-1], kind="stable"):  # the last one has just come in
            if bounds[k] >= limit:
                break
            refit = self._refit.with_kernels(kernels[:k] + kernels[k + 1 :])
            smaller = refit.fit()
            if smaller.objective < limit:
                best, limit = (refit, smaller), smaller.objective
        return best

    # -- what a run asks ----------------------------------------------------------------------

    def row(self, run: Run, iterate: GreedyPoint) -> tuple[float, ...]:
        fit = iterate.fit
        values = (iterate.gain, iterate.residual, fit.objective, fit.error, len(fit.kernels))
        return () if np.isnan(iterate.gain) else tuple(map(float, values))

    def settle(self, run: Run) -> None:
        """Nothing is kept of a run that was interrupted before the first kernel."""
        if run.reason == "interrupted" and len(run.best.stages) == 1:
            raise KeyboardInterrupt

    def describe(self, run: Run) -> str:
        return f"the path ends at {len(run.best.stages) - 1} kernels."

    def advice(self, run: Run) -> None:
        """A path may end anywhere."""

    # -- checkpoints --------------------------------------------------------------------------

    def saved(self, run: Run) -> Entry | None:
        path = run.last
        if np.isnan(path.gain):
            return None
        sets = [list(map(int, stage.fit.kernels)) for stage in path.stages[1:]]
        values = {"sets": sets, "now": list(map(int, path.fit.kernels))}
        arrays = {"gains": np.array([stage.gain for stage in path.stages[1:]]), "seed": self._seed()}
        return Entry(values, arrays)

    def _resumed(self, run: Run, entry: Entry, stages: list[Stage]) -> Fit:
        """Fit the models of an earlier run again, as far as the present rule allows; the current fit."""
        sets, gains, history = entry.values["sets"], entry.arrays["gains"], run.history
        count, fit = len(sets), stages[0].fit
        if not self.backward:  # each has one more kernel, so the path can be cut
            wanted = np.append(gains > self._least, False)
            count = min(int(np.argmin(wanted)), self._limit)
            history = {name: values[:count] for name, values in history.items()}
        for kernels, gain in zip(sets[:count], gains[:count], strict=True):
            fit = self._taken(kernels, fit)
            stages.append(Stage(float(gain), fit))
        if self.backward:
            fit = self._taken(entry.values["now"], fit)
        history.setdefault("share", [gain / stages[0].fit.objective for gain in history["gain"]])
        run.history = {key: history[key] for key in self.columns}
        run.n_iter = run.n_resumed = len(history["gain"])
        # the objectives of the same sets show whether the kernels are the same as before
        before, seed = history["objective"][-1:], entry.arrays["seed"]
        if before and not np.isclose(fit.objective, before[0], rtol=1e-5):
            assert run.keeper.checkpoint is not None
            raise run.keeper.checkpoint.other(["kernel values"])
        if len(seed) and len(self._seed()):
            self._rng.set_state(("MT19937", seed[:-1].astype(np.uint32), int(seed[-1])))
        return fit

    def _taken(self, kernels: list[int], fit: Fit) -> Fit:
        """The fit of a set, by adding to the one before it where that is possible."""
        if tuple(kernels) == fit.kernels:
            return fit
        if tuple(kernels[:-1]) == fit.kernels:
            self._refit.add(int(kernels[-1]))
        else:
            self._refit = self._refit.with_kernels(kernels)
        return self._refit.fit()

    def _seed(self) -> FloatArray:
        """State of the random numbers; empty if none are drawn, or not from a seed."""
        if self.sample is None or not isinstance(self.random_state, int | np.integer):
            return np.zeros(0)
        keys, position = self._rng.get_state()[1:3]
        return np.append(keys.astype(np.float64), position)


def _gains(run: Run, fit: Fit, wanted: BoolArray) -> FloatArray:
    """I_m of some kernels."""
    shift = run.problem.shift
    captured: FloatArray = run.gram.captured(shift * fit.scaled_alpha, wanted, shift)
    result: FloatArray = captured / run.problem.total
    return result


def _better(fit: Fit, other: Fit) -> bool:
    return fit.objective < other.objective - SAME * abs(other.objective)


def _keep(stages: list[Stage], stage: Stage) -> None:
    """Remember a fit if it is the best of its size."""
    size = len(stage.fit.kernels)
    if size == len(stages):
        stages.append(stage)
    elif _better(stage.fit, stages[size].fit):
        stages[size] = stage
