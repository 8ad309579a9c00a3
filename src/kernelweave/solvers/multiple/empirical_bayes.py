"""Empirical Bayes: kernel weights and noise that maximise the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..._typing import BoolArray, FloatArray, IntArray
from ..._warnings import warn
from ..checkpoint import Keeper, history_of, with_history
from ._evidence import Evidence, GaussianEvidence, LaplaceEvidence, Posterior
from ._fixed_point import extrapolate

__all__ = [
    "EmpiricalBayes",
    "Evidence",
    "EvidenceSolution",
    "GaussianEvidence",
    "HyperPrior",
    "LaplaceEvidence",
    "Point",
    "Posterior",
]

#: kernels below these shares of the largest are tried without: far from and near a stationary point
DEAD, NEGLIGIBLE = 1e-8, 1e-2

#: the residual that is near
NEAR = 1e-2

#: so few effective parameters that their ratio means nothing
FEW = 1e-3

#: steps, and the residual, at which the starts are compared
FIRST_STEPS, FIRST_TOL = 8, 1e-2

#: largest change of log d in one step, and shortest fraction of a step tried
MAX_LEAP, MAX_HALVINGS = 12.0, 20


class HyperPrior:
    """A prior p(d) ~ exp(-h(d) / 2) of the kernel weights, the remedy of the paper for extreme sparsity.

    Parameters
    ----------
    h : callable, object with `price`, or None
        A function h(d) -> float of the weights of all kernels with variance, or an object with the
        method ``price(d)``, such as a regulariser with a smooth h, and if it has one
        ``price_gradient(d)``; without it h is differentiated numerically. None is a flat prior.
        h may be infinite at d_m = 0: no kernel is then pruned.

    Examples
    --------
    >>> import numpy as np
    >>> prior = HyperPrior(lambda d: float((d - 2.0 * np.log(d)).sum()))
    >>> prior.log_gradient(np.array([1.0, 2.0]), np.array([0, 1]))  # d h'(d) = d - 2
    array([-1., 0.])
    """

    step = 1e-5

    def __init__(self, h: Any = None) -> None:
        self.h = h
        if not (h is None or callable(h) or hasattr(h, "price")):
            raise ValueError(
                f"hyperprior={h!r}: expected a function h(d) -> float, an object with `price(d)`, or None."
            )

    def price(self, weights: FloatArray) -> float:
        """h(d)."""
        if self.h is None:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(self.h.price(weights) if hasattr(self.h, "price") else self.h(weights))
        return np.inf if np.isnan(value) else value

    def log_gradient(self, weights: FloatArray, kernels: IntArray) -> FloatArray:
        """d_m dh/dd_m of some kernels."""
        if self.h is None:
            return np.zeros(len(kernels))
        if hasattr(self.h, "price_gradient"):
            return np.asarray(weights[kernels] * np.asarray(self.h.price_gradient(weights))[kernels])
        return np.array([self._difference(weights, m) for m in kernels])

    def _difference(self, weights: FloatArray, m: int) -> float:
        moved = [weights.copy(), weights.copy()]
        moved[0][m] *= np.exp(self.step)
        moved[1][m] *= np.exp(-self.step)
        slope = (self.price(moved[0]) - self.price(moved[1])) / (2.0 * self.step)
        if not np.isfinite(slope):
            raise ValueError(
                "hyperprior: h is not differentiable at the current weights; it has to be finite and "
                "smooth for d > 0 (a constraint is not: use a penalty)."
            )
        return slope


@dataclass(frozen=True)
class Point:
    """An accepted iterate.

    Attributes
    ----------
    live : ndarray of int
        Kernels with weight.
    theta : ndarray
        Logarithms of the live weights and, where it is learned, of the noise.
    posterior : Posterior
    objective : float
        Negative log evidence + h(d) / 2, up to constants.
    up, down : ndarray
        d objective / d theta = (down - up) / 2, both non-negative. Without a hyper-prior `down_m` is
        the effective number of parameters of kernel m.
    stationarity : float
        sum |down - up| / sum down, over the parameters that no bound holds back.
    """

    live: IntArray
    theta: FloatArray
    posterior: Posterior
    objective: float
    up: FloatArray
    down: FloatArray
    stationarity: float


@dataclass(frozen=True)
class EvidenceSolution:
    """What the solver returns.

    Attributes
    ----------
    weights : ndarray of shape (M,)
        Zero for pruned kernels.
    posterior : Posterior
        With the live kernels only.
    norms : ndarray of shape (M,)
        ||f_m|| = d_m sqrt(alpha' K_m alpha), summed in squares over the outputs.
    log_evidence : float
        Without the hyper-prior.
    objective, stationarity : float
        As in `Point`.
    n_iter : int
        Accepted steps.
    converged : bool
    history : dict of list
        "log_evidence" (hyper-prior included), "stationarity" and "n_kernels" of every iterate.
    n_resumed : int
        Steps of an earlier run that this one went on from.
    starts : dict of list
        Of every start: "noise" and "variance" (the prior variance of all kernels together) where it
        began, the "log_evidence" (hyper-prior included) that it reached, "n_iter", and whether it was
        "chosen".
    """

    weights: FloatArray
    posterior: Posterior
    norms: FloatArray
    log_evidence: float
    objective: float
    stationarity: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]] = field(repr=False)
    n_resumed: int = 0
    starts: dict[str, list[Any]] = field(repr=False, default_factory=dict)


#: called after every step; a true answer stops the run
Callback = Callable[[int, Point], bool | None]


class EmpiricalBayes(BaseEstimator):
    """Maximises the evidence over kernel weights and noise.

    With up_m = a' K_m a, down_m = tr(Kbar^-1 K_m) and a = Kbar^-1 y the steps are

        d_m <- d_m (up_m / down_m)^t        t = 1: MacKay's update;  t = 1/2: majorise-minimise

    and likewise for the noise. t = 1 is fast but may overshoot; t = 1/2 never does for Gaussian
    noise and concave or logarithmic h. Every log step has the sign of the ascent, so some t
    works in every case: 1, 1/2, 1/4, ... are tried until the evidence does not fall. Two things
    make it faster, under the same test: the fixed point is extrapolated from the last iterates
    (Anderson acceleration), and t doubles while its steps succeed.

    Kernels that shrink and are small already are set to exactly zero when the evidence does
    not fall by it and would not rise with d_m from there; they are then dropped for good.

    The evidence has several maxima, and where the signal lies in directions of small variance a start
    with much noise ends where all is noise. So there are a few starts, over the signal-to-noise ratio:
    each takes a few steps, and the one of the largest evidence then is taken to the end.

    Parameters
    ----------
    update : {"mackay", "mm"}, default="mackay"
        Whether t starts at 1 or at 1/2.
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain iteration, with a fixed first t.

    References
    ----------
    Tomioka & Suzuki (2011), section 3, equations 19-23; MacKay (1992); Wipf & Nagarajan (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> x = np.linspace(-1, 1, 40)
    >>> gram = DenseGram([np.outer(x, x), np.outer(x**2, x**2)])
    >>> noise = 0.1 * np.random.default_rng(1).normal(size=(40, 1))
    >>> evidence = GaussianEvidence(gram, x[:, None] + noise, np.ones(40))
    >>> solution = EmpiricalBayes().solve(evidence, tol=1e-6)
    >>> solution.weights > 0
    array([ True, False])
    """

    def __init__(self, update: str = "mackay", memory: int = 5) -> None:
        self.update = update
        self.memory = memory

    def solve(
        self,
        evidence: Evidence,
        hyperprior: Any = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
    ) -> EvidenceSolution:
        """Run until the stationarity residual is within `tol`.

        Parameters
        ----------
        evidence : Evidence
        hyperprior : callable, object with `price`, or None
            h, see `HyperPrior`.
        tol : float, default=1e-4
        max_iter : int, default=200
            Most steps of a start.
        callback : callable, optional
            Called as callback(iteration, point) after every step; a true answer stops the run.
            So does Ctrl-C: the last iterate is the best.
        keeper : Keeper, optional
            Where the iterates of every start are kept; those found there are gone on from, and
            `max_iter` counts their steps.
        """
        keeper = Keeper() if keeper is None else keeper
        if self.update not in ("mackay", "mm"):
            raise ValueError(f"update={self.update!r}: expected 'mackay' or 'mm'.")
        exponent = 1.0 if self.update == "mackay" else 0.5
        starts = _Starts(evidence, HyperPrior(hyperprior), self.memory, exponent, keeper)
        try:
            starts.run(tol, max_iter, callback)
        except KeyboardInterrupt:
            keeper.flush()
            starts.compare()
            warn(f"interrupted; {starts.best.describe()}", ConvergenceWarning)
            return starts.solution(tol)
        if starts.best.point.stationarity > tol:
            warn(
                f"{starts.best.describe()} Increase max_iter or tol (={tol:g}), or scale the data.",
                ConvergenceWarning,
            )
        return starts.solution(tol)


class _Starts:
    """Searches from several signal-to-noise ratios; only the current and the best one hold matrices."""

    def __init__(
        self, evidence: Evidence, prior: HyperPrior, memory: int, exponent: float, keeper: Keeper
    ) -> None:
        self.evidence, self.options = evidence, (prior, memory, exponent, keeper)
        self.told: dict[str, dict[str, Any]] = {}
        self.best = self.now = self._search(0)

    def _search(self, index: int) -> _Search:
        start = self.evidence.start(self.evidence.levels[index])
        return _Search(self.evidence, *self.options, start, f"start {index}")

    def run(self, tol: float, max_iter: int, callback: Callback | None) -> None:
        """A few steps from every start, then the rest from the best."""
        for index in range(len(self.evidence.levels)):
            if index and not self._begin(index):
                continue
            going = self.now.iterate(max(tol, FIRST_TOL), min(FIRST_STEPS, max_iter), callback, insist=False)
            self.compare()
            if not going:
                return
        self.now = self.best
        self.best.iterate(tol, max_iter, callback)

    def _begin(self, index: int) -> bool:
        """Turn to another start; False where little noise leaves a matrix that cannot be factored."""
        try:
            self.now = self._search(index)
        except ValueError:
            return False
        return True

    def compare(self) -> None:
        """Keep the better of the current search and the best one."""
        self.told[self.now.name] = self.now.summary()
        if self.now.point.objective < self.best.point.objective:
            self.best = self.now

    def solution(self, tol: float) -> EvidenceSolution:
        self.told[self.best.name] = self.best.summary()
        rows = list(self.told.items())
        starts: dict[str, list[Any]] = {key: [row[key] for _, row in rows] for key in rows[0][1]}
        starts["chosen"] = [name == self.best.name for name, _ in rows]
        return self.best.solution(tol, starts)


class _Search:
    """The current iterate, and the ways to a better one."""

    def __init__(
        self,
        evidence: Evidence,
        prior: HyperPrior,
        memory: int,
        exponent: float,
        keeper: Keeper,
        start: tuple[FloatArray, float],
        name: str,
    ) -> None:
        self.whole, self.prior, self.memory, self.exponent = evidence, prior, memory, exponent
        self.keeper, self.name = keeper, name
        weights, self.noise = start
        self.variance = float(weights @ evidence.scales)
        live = np.flatnonzero(weights)
        theta = np.log(np.append(weights[live], [self.noise] * evidence.learns_noise))
        before = keeper.found(name)
        if before is not None:
            live, theta = before.arrays["live"], before.arrays["theta"]
        self.evidence = evidence.subset(live)
        self.point = self._first_point(live, theta)
        self.points: list[FloatArray] = []  # the last iterates
        self.images: list[FloatArray] = []  # where MacKay's update takes them
        self.stretch = 1.0  # t, relative to `exponent`
        self.patience = self.waited = 0  # steps to the next attempt at pruning
        self.history: dict[str, list[float]] = {"log_evidence": [], "stationarity": [], "n_kernels": []}
        self.n_resumed = 0
        if before is not None:
            self.history = {name: values[:-1] for name, values in history_of(before).items()}
            self.n_resumed = len(self.history["stationarity"])
        self.record()

    def _first_point(self, live: IntArray, theta: FloatArray) -> Point:
        posterior = self.evidence.evaluate(np.exp(theta[: len(live)]), self._noise_of(theta))
        if posterior is None:
            raise ValueError(
                f"noise I + sum_m d_m K_m is not positive definite with noise = {self.noise:.3g}: "
                "raise `noise`, or check that the kernels are positive semidefinite."
            )
        objective = self._objective(posterior, live)
        if not np.isfinite(objective):
            raise ValueError("hyperprior: h has to be finite for all weights d > 0.")
        return self._point(live, theta, posterior, objective)

    def iterate(self, tol: float, max_iter: int, callback: Callback | None, insist: bool = True) -> bool:
        """Steps until the residual is within `tol`, or `max_iter` in all; False when the callback ended it.

        `insist`: a last attempt at pruning comes before the end.
        """
        for iteration in range(len(self.history["stationarity"]) - 1, max_iter):
            settled = self.point.stationarity <= tol
            if not self.prune(insist=settled and insist) and (settled or not self.step()):
                break
            self.record()
            if callback is not None and callback(iteration, self.point):
                return False
        return True

    # -- one step -----------------------------------------------------------------------------

    def step(self) -> bool:
        """Move to a point of no lower evidence; False when there is none but for rounding."""
        point = self.point
        leap = np.clip(np.log((point.up + FEW) / (point.down + FEW)), -MAX_LEAP, MAX_LEAP)
        leap = self._inside(point.theta + leap) - point.theta
        self._remember(point.theta, point.theta + leap)
        return self._extrapolated(point.theta) or self._plain(point.theta, leap)

    def _extrapolated(self, theta: FloatArray) -> bool:
        if len(self.points) < 2:
            return False
        far = extrapolate(self.points, self.images)
        # farther away, the residuals are too much alike to extrapolate from
        if np.abs(far - theta).max() <= MAX_LEAP and self._accept(far):
            return True
        self.points, self.images = self.points[-1:], self.images[-1:]
        return False

    def _plain(self, theta: FloatArray, leap: FloatArray) -> bool:
        for k in range(MAX_HALVINGS):
            t = self.stretch * self.exponent * 0.5**k
            if self._accept(theta + np.clip(t * leap, -MAX_LEAP, MAX_LEAP)):
                if self.memory:
                    self.stretch = max(1.0, self.stretch * (2.0 if k == 0 else 0.5**k))
                return True
        return False

    def _accept(self, theta: FloatArray) -> bool:
        """Move to `theta`, within the bounds, if the evidence does not fall."""
        theta, point = self._inside(theta), self.point
        if np.array_equal(theta, point.theta):
            return False
        weights = np.exp(theta[: len(point.live)])
        posterior = self.evidence.evaluate(weights, self._noise_of(theta), point.posterior)
        objective = self._objective(posterior, point.live)
        if posterior is None or not objective <= point.objective:
            return False
        self.point = self._point(point.live, theta, posterior, objective)
        return True

    def _inside(self, theta: FloatArray) -> FloatArray:
        lower, upper = self.evidence.bounds()
        with np.errstate(divide="ignore"):
            return np.clip(theta, np.maximum(np.log(lower), -600.0), np.minimum(np.log(upper), 600.0))

    def _remember(self, theta: FloatArray, image: FloatArray) -> None:
        surplus = max(0, len(self.points) + 1 - self.memory)
        self.points = [*self.points, theta][surplus:]
        self.images = [*self.images, image][surplus:]

    # -- pruning ------------------------------------------------------------------------------

    def prune(self, insist: bool) -> bool:
        """Drop the kernels that the evidence does not miss; whether there were any.

        After a vain attempt the next one waits twice as long, unless it is the last (`insist`).
        """
        self.waited += 1
        candidates = self._dying()
        if len(candidates) == 0 or (self.waited <= self.patience and not insist):
            return False
        self.waited, before = 0, self.point
        while len(candidates) and self.point is before:
            candidates = self._without(candidates)
        pruned = self.point is not before
        self.patience = 0 if pruned else 2 * self.patience + 1
        return pruned

    def _dying(self) -> IntArray:
        """Positions of small kernels that the evidence shrinks, the smallest first."""
        point, M = self.point, len(self.point.live)
        size = np.exp(point.theta[:M]) * self.evidence.scales
        share = NEGLIGIBLE if point.stationarity <= NEAR else DEAD
        small = size <= share * max(size.max(initial=0.0), self._noise_of(point.theta))
        dying = np.flatnonzero(small & (point.up[:M] < point.down[:M]))
        return dying[np.argsort(size[dying])]

    def _without(self, candidates: IntArray) -> IntArray:
        """Drop the candidates if the evidence allows it; otherwise those worth another attempt."""
        point, M = self.point, len(self.point.live)
        weights = np.exp(point.theta[:M])
        weights[candidates] = 0.0
        posterior = self.evidence.evaluate(weights, self._noise_of(point.theta), point.posterior)
        objective = self._objective(posterior, point.live)
        if posterior is None or not objective <= point.objective:
            return candidates[: len(candidates) // 2]
        up, down = self.evidence.slopes(posterior)
        returning = up[candidates] > down[candidates]
        if returning.any():
            return candidates[~returning]
        keep = np.delete(np.arange(len(point.theta)), candidates)  # the noise, if learned, is the last
        kernels = keep[keep < M]
        self.evidence = self.evidence.subset(kernels)
        posterior = replace(posterior, weights=weights[kernels])
        self.points, self.images = [x[keep] for x in self.points], [x[keep] for x in self.images]
        slopes = up[keep], down[keep]
        self.point = self._point(point.live[kernels], point.theta[keep], posterior, objective, slopes)
        return candidates

    # -- values -------------------------------------------------------------------------------

    def _noise_of(self, theta: FloatArray) -> float:
        return float(np.exp(theta[-1])) if self.evidence.learns_noise else self.noise

    def _weights(self, posterior: Posterior, live: IntArray) -> FloatArray:
        weights = np.zeros(self.whole.n_kernels)
        weights[live] = posterior.weights
        return weights

    def _objective(self, posterior: Posterior | None, live: IntArray) -> float:
        if posterior is None:
            return np.inf
        return posterior.objective + 0.5 * self.prior.price(self._weights(posterior, live))

    def _point(
        self,
        live: IntArray,
        theta: FloatArray,
        posterior: Posterior,
        objective: float,
        slopes: tuple[FloatArray, FloatArray] | None = None,
    ) -> Point:
        up, down = self.evidence.slopes(posterior) if slopes is None else slopes
        price = np.zeros_like(theta)
        price[: len(live)] = self.prior.log_gradient(self._weights(posterior, live), live)
        up = np.exp(theta) * up + np.maximum(-price, 0.0)
        down = np.exp(theta) * down + np.maximum(price, 0.0)
        free = ~self._held(np.exp(theta), up, down)
        stationarity = float(np.abs(down - up)[free].sum() / max(down.sum(), 1.0))
        return Point(live, theta, posterior, objective, up, down, stationarity)

    def _held(self, values: FloatArray, up: FloatArray, down: FloatArray) -> BoolArray:
        """Parameters at a bound that the evidence pushes against it."""
        lower, upper = self.evidence.bounds()
        return ((values <= lower * (1 + 1e-9)) & (up < down)) | ((values >= upper * (1 - 1e-9)) & (up > down))

    # -- results ------------------------------------------------------------------------------

    def record(self) -> None:
        point = self.point
        values = (self.whole.log_evidence(point.objective), point.stationarity, len(point.live))
        for key, value in zip(self.history, values, strict=True):
            self.history[key].append(value)
        arrays = {"live": point.live, "theta": point.theta}
        self.keeper.keep(self.name, with_history({}, arrays, self.history))

    def describe(self) -> str:
        count, residual = len(self.history["stationarity"]) - 1, self.point.stationarity
        return f"the relative slope of the log evidence is {residual:.2g} after {count} steps."

    def summary(self) -> dict[str, Any]:
        """Where the search began, and how far it came."""
        return {
            "noise": self.noise,
            "variance": self.variance,
            "log_evidence": self.history["log_evidence"][-1],
            "n_iter": len(self.history["stationarity"]) - 1,
        }

    def solution(self, tol: float, starts: dict[str, list[Any]]) -> EvidenceSolution:
        point = self.point
        energy = np.zeros(self.whole.n_kernels)
        if self.evidence.gram is not None:
            energy[point.live] = np.maximum(self.evidence.gram.quad(point.posterior.alpha), 0.0)
        weights = self._weights(point.posterior, point.live)
        return EvidenceSolution(
            weights=weights,
            posterior=replace(point.posterior, K=None),
            norms=weights * np.sqrt(energy),
            log_evidence=self.whole.log_evidence(point.posterior.objective),
            objective=point.objective,
            stationarity=point.stationarity,
            n_iter=len(self.history["stationarity"]) - 1,
            converged=point.stationarity <= tol,
            history=self.history,
            n_resumed=self.n_resumed,
            starts=starts,
        )
