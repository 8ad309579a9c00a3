"""Group orthogonal matching pursuit over kernels: the whole path in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..._typing import BoolArray, FloatArray
from ..._warnings import warn
from ..checkpoint import Entry, Keeper, history_of, with_history
from .dictionary import FactorDictionary
from .losses import refit_for
from .refit import Refit
from .task import Fit, GreedyTask

#: relative fall of the objective below which two sets of kernels count as equally good
SAME = 1e-10

#: what is remembered of every step
HISTORY = ("gain", "share", "objective", "error", "n_kernels")


@dataclass(frozen=True)
class Stage:
    """The model of one size on a path.

    Attributes
    ----------
    gain : float
        What the kernel that came in last promised (NaN without kernels).
    fit : Fit
    """

    gain: float
    fit: Fit


@dataclass(frozen=True)
class GreedyRun:
    """What `GroupOMP` returns.

    Attributes
    ----------
    stages : list of Stage
        By number of kernels; the first has none.
    reason : str
        Why the run ended: "tol", "n_kernels" or "interrupted".
    n_iter : int
        Kernels let in; with backward steps it can exceed those on the path.
    history : dict of list
        "gain", "share" (the gain relative to J without kernels, which `tol` bounds), "objective", "error"
        and "n_kernels" after every step.
    n_resumed : int
        Kernels let in by an earlier run that this one went on from.
    """

    stages: list[Stage]
    reason: str
    n_iter: int
    history: dict[str, list[float]]
    n_resumed: int = 0


#: called after every step; a true answer stops the run
Callback = Callable[[int, GreedyRun], bool | None]


@dataclass
class GroupOMP:
    """Greedy selection of kernels with a refit after every one (MKL-GOMP).

    With l samples, ridge lambda and residuals R of the current fit, kernel m promises the gain

        I_m = 1/l tr( R' K_m (K_m + lambda l I)^-1 R )

    the most that adding a function of its space to the fit can lower the objective J of
    `GreedyTask`. The kernel of the largest gain comes in, and all functions are fitted again:

        (sum_{m in G} K_m + lambda l I) alpha = Y,     R = Y - sum_{m in G} K_m alpha

    so J falls by at least the gain. All outputs count together. For other losses R is minus the
    gradient of the loss, lambda l alpha in every case. Sindhwani & Lozano (2011), algorithm 1, with
    the gain of its own 1/l loss.

    Parameters
    ----------
    n_kernels : int, optional
        Most kernels to let in; all by default.
    tol : float, default=1e-3
        The run ends when no gain is a larger share of J without kernels: of the variance of the targets
        for the squared loss with an intercept.
    backward : bool, default=False
        Whether to drop a kernel whenever J then rises by less than that share, or less than half of what
        the last kernel gained, to a better set of that size (Zhang 2011).
    sample : int, float or None, default=None
        Number or share of the kernels not yet in that are scored at each step, drawn at random; all
        are scored before the run ends for want of gain.
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
    >>> run = GroupOMP(tol=1e-3).run(dictionary, task)
    >>> run.stages[-1].fit.kernels, run.reason
    ((2, 0), 'tol')
    """

    n_kernels: int | None = None
    tol: float = 1e-3
    backward: bool = False
    sample: int | float | None = None
    random_state: Any = None

    def run(
        self,
        dictionary: FactorDictionary,
        task: GreedyTask,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
    ) -> GreedyRun:
        """Select kernels until the gain, their number or the callback ends it.

        Ctrl-C ends it too, and keeps the path so far. What a keeper holds of an earlier run is fitted
        again, without looking at the kernels that did not come in.
        """
        keeper = Keeper() if keeper is None else keeper
        state = _State(self, dictionary, task, keeper)
        state.go_on(keeper.found("path"))
        try:
            while state.reason == "":
                state.step()
                if callback is not None and state.reason == "" and callback(state.n_iter - 1, state.result()):
                    state.reason = "interrupted"
        except KeyboardInterrupt:
            keeper.flush()
            if len(state.stages) == 1:
                raise
            state.reason = "interrupted"
            count = len(state.stages) - 1
            warn(f"interrupted; the path ends at {count} kernels.", ConvergenceWarning)
        return state.result()


class _State:
    """A run: the current set, the best fits of every size, what happened."""

    def __init__(
        self, rule: GroupOMP, dictionary: FactorDictionary, task: GreedyTask, keeper: Keeper
    ) -> None:
        self.rule, self.dictionary, self.task, self.keeper = rule, dictionary, task, keeper
        self.limit = min(rule.n_kernels or len(dictionary.live), len(dictionary.live))
        self.rng = check_random_state(rule.random_state)
        self.refit: Refit = refit_for(dictionary, task)
        self.now = self.refit.fit()
        self.stages = [Stage(np.nan, self.now)]
        # the least gain worth a kernel: targets that are constant but for rounding have none
        self.least = max(rule.tol * self.now.objective, task.rounding)
        self.history: dict[str, list[float]] = {key: [] for key in HISTORY}
        self.reason, self.n_iter, self.n_resumed = "", 0, 0

    def result(self) -> GreedyRun:
        return GreedyRun(self.stages, self.reason, self.n_iter, self.history, self.n_resumed)

    # -- checkpoints --------------------------------------------------------------------------

    def go_on(self, entry: Entry | None) -> None:
        """Fit the models that an earlier run had found, as far as the present rule goes."""
        if entry is None:
            return
        sets, gains, history = entry.values["sets"], entry.arrays["gains"], history_of(entry)
        count = len(sets)
        if not self.rule.backward:  # one more kernel each, so that the path can be cut
            wanted = np.append(gains > self.least, False)
            count = min(int(np.argmin(wanted)), self.limit)
            history = {name: values[:count] for name, values in history.items()}
        for kernels, gain in zip(sets[:count], gains[:count], strict=True):
            self._take(kernels)
            self.stages.append(Stage(float(gain), self.now))
        if self.rule.backward:
            self._take(entry.values["now"])
        history.setdefault("share", [self._share(gain) for gain in history["gain"]])
        self.history = {key: history[key] for key in HISTORY}
        self.n_iter = self.n_resumed = len(history["gain"])
        self._check_objective()
        self._set_seed(entry.arrays["seed"])

    def _check_objective(self) -> None:
        """The objectives of the same sets tell whether the kernels are those of before."""
        before = self.history["objective"][-1:]
        if before and not np.isclose(self.now.objective, before[0], rtol=1e-5):
            raise ValueError(
                "checkpoint is of another problem (kernel values differ): delete it to start anew, or pass "
                "another path; every fit needs its own."
            )

    def _seed(self) -> FloatArray:
        """Where the random numbers are; empty where none are drawn, or not from a seed."""
        if self.rule.sample is None or not isinstance(self.rule.random_state, int | np.integer):
            return np.zeros(0)
        keys, position = self.rng.get_state()[1:3]
        return np.append(keys.astype(np.float64), position)

    def _set_seed(self, seed: FloatArray) -> None:
        if len(seed) and len(self._seed()):
            self.rng.set_state(("MT19937", seed[:-1].astype(np.uint32), int(seed[-1])))

    def _take(self, kernels: list[int]) -> None:
        """Make a set the current one, by adding to the one before it where that is possible."""
        if tuple(kernels) == self.now.kernels:
            return
        if tuple(kernels[:-1]) == self.now.kernels:
            self.refit.add(int(kernels[-1]))
        else:
            self.refit = self.refit.with_kernels(kernels)
        self.now = self.refit.fit()

    def _write(self) -> None:
        sets = [list(map(int, stage.fit.kernels)) for stage in self.stages[1:]]
        values = {"sets": sets, "now": list(map(int, self.now.kernels))}
        arrays = {"gains": np.array([stage.gain for stage in self.stages[1:]]), "seed": self._seed()}
        self.keeper.keep("path", with_history(values, arrays, self.history))

    def step(self) -> None:
        """Let the most promising kernel in, then perhaps others out."""
        if len(self.now.kernels) == self.limit:
            self.reason = "n_kernels"
            return
        m, gain = self._best()
        if gain <= self.least:
            self.reason = "tol"
            return
        before = self.now.objective
        self.refit.add(m)
        self.now = self.refit.fit()
        self.n_iter += 1
        self._keep(gain)
        if self.rule.backward:
            self._drop(max(self.least, 0.5 * (before - self.now.objective)))
        values = (gain, self._share(gain), self.now.objective, self.now.error, len(self.now.kernels))
        for key, value in zip(self.history, values, strict=True):
            self.history[key].append(float(value))
        self._write()

    def _share(self, gain: float) -> float:
        """A gain relative to J without kernels."""
        return gain / self.stages[0].fit.objective

    def _best(self) -> tuple[int, float]:
        """The kernel of the largest gain among those drawn, or among all if these gain too little."""
        free = np.zeros(len(self.dictionary.names), dtype=bool)
        free[self.dictionary.live] = True
        free[list(self.now.kernels)] = False
        drawn = self._drawn(free)
        gains = self._gains(drawn)
        if gains.max() <= self.least and drawn.sum() < free.sum():
            gains = np.maximum(gains, self._gains(free & ~drawn))
        m = int(gains.argmax())
        return m, float(gains[m])

    def _gains(self, wanted: BoolArray) -> FloatArray:
        shift = self.task.shift
        captured = self.dictionary.captured(shift * self.now.scaled_alpha, wanted, shift)
        return captured / self.task.total

    def _drawn(self, free: BoolArray) -> BoolArray:
        sample = self.rule.sample
        if sample is None:
            return free
        there = np.flatnonzero(free)
        count = np.ceil(sample * len(there)) if isinstance(sample, float) else sample
        drawn = np.zeros_like(free)
        drawn[self.rng.choice(there, int(min(count, len(there))), replace=False)] = True
        return drawn

    def _keep(self, gain: float) -> None:
        """Remember the current fit if it is the best of its size."""
        size = len(self.now.kernels)
        if size == len(self.stages):
            self.stages.append(Stage(gain, self.now))
        elif self._better(self.now, self.stages[size].fit):
            self.stages[size] = Stage(gain, self.now)

    def _better(self, fit: Fit, other: Fit) -> bool:
        return fit.objective < other.objective - SAME * abs(other.objective)

    def _drop(self, allowed: float) -> None:
        """Drop kernels as long as J rises by less than `allowed`, to a better set of that size."""
        while len(self.now.kernels) > 1:
            found = self._least_useful(allowed)
            smaller = self.stages[len(self.now.kernels) - 1]
            if found is None or not self._better(found[1], smaller.fit):
                return
            self.refit, self.now = found
            self._keep(smaller.gain)

    def _least_useful(self, allowed: float) -> tuple[Refit, Fit] | None:
        """The fit without the kernel that is missed least, if J rises by less than `allowed`.

        J(G - m) >= level - lambda sum_{G - m} a'K a leaves few kernels to try.
        """
        kernels, best = list(self.now.kernels), None
        energies = self.task.ridge * self.refit.energies(self.now)
        bounds = self.now.level - energies.sum() + energies
        limit = self.now.objective + allowed
        for k in np.argsort(bounds[:-1], kind="stable"):  # the last one has just come in
            if bounds[k] >= limit:
                break
            refit = self.refit.with_kernels(kernels[:k] + kernels[k + 1 :])
            fit = refit.fit()
            if fit.objective < limit:
                best, limit = (refit, fit), fit.objective
        return best
