"""Empirical Bayes: kernel weights and noise that maximise the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._typing import BoolArray, FloatArray, IntArray
from ..checkpoint import Entry, Keeper
from ..growing import spread
from ..run import Callback, Method, Result, Run, best_of
from ._evidence import Evidence, GaussianEvidence, LaplaceEvidence, Posterior
from .alternating import extrapolate

__all__ = [
    "EmpiricalBayes",
    "Evidence",
    "EvidencePoint",
    "GaussianEvidence",
    "HyperPrior",
    "LaplaceEvidence",
    "Posterior",
]

#: kernels below these shares of the largest may be pruned: far from a stationary point, and near one
DEAD, NEGLIGIBLE = 1e-8, 1e-2

#: the residual that counts as near
NEAR = 1e-2

#: number of effective parameters below which their ratio means nothing
FEW = 1e-3

#: steps, and the residual, at which the starts are compared
FIRST_STEPS, FIRST_TOL = 8, 1e-2

#: largest change of log d in one step, and shortest fraction of a step tried
MAX_LEAP, MAX_HALVINGS = 12.0, 20

#: relative differences of objectives that may be rounding
ROUNDING = 1e-14


class HyperPrior:
    """A prior p(d) ~ exp(-h(d) / 2) of the kernel weights, the paper's remedy for extreme sparsity.

    Parameters
    ----------
    h : callable, object with `price`, or None
        A function h(d) -> float of the weights of all kernels with variance, or an object with the method
        ``price(d)``, such as a regulariser with a smooth h. It may have ``price_gradient(d)`` as well;
        otherwise h is differentiated numerically. None is a flat prior. h may be infinite at d_m = 0; then no
        kernel is pruned.

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
class EvidencePoint:
    """An accepted iterate.

    Attributes
    ----------
    live : ndarray of int
        Kernels with weight.
    theta : ndarray
        Logarithms of the live weights and, where it is learned, of the noise.
    weights : ndarray of shape (M,)
        Zero for pruned kernels.
    posterior : Posterior
        With the live kernels only.
    objective : float
        Negative log evidence + h(d) / 2, up to constants.
    up, down : ndarray
        d objective / d theta = (down - up) / 2, both non-negative. Without a hyper-prior `down_m` is
        the effective number of parameters of kernel m.
    residual : float
        sum |down - up| / sum down, over the parameters that no bound holds back.
    norms : ndarray of shape (M,)
        ||f_m|| = d_m sqrt(alpha' K_m alpha), the root of the sum of squares over the outputs; set at the end
        of a run.
    log_evidence : float
        Without the hyper-prior; set at the end of a run.
    """

    live: IntArray
    theta: FloatArray
    weights: FloatArray
    posterior: Posterior
    objective: float
    up: FloatArray
    down: FloatArray
    residual: float
    norms: FloatArray | None = None
    log_evidence: float = np.nan


class EmpiricalBayes(Method, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Maximises the evidence over kernel weights and noise.

    With up_m = a' K_m a, down_m = tr(Kbar^-1 K_m) and a = Kbar^-1 y the steps are

        d_m <- d_m (up_m / down_m)^t        t = 1: MacKay's update;  t = 1/2: majorise-minimise

    and likewise for the noise. t = 1 is fast but may overshoot; t = 1/2 never does for Gaussian
    noise and concave or logarithmic h. Every log step has the sign of the ascent, so some t
    works in every case: 1, 1/2, 1/4, ... are tried until the evidence does not fall. Two things
    make it faster, under the same test: the fixed point is extrapolated from the last iterates
    (Anderson acceleration), and t doubles while its steps succeed.

    Kernels that are small and still shrinking are set to exactly zero if this does not lower the evidence and
    the evidence would not rise with d_m from there. They are then dropped for good.

    The evidence has several maxima. If the signal lies in directions of small variance, a start with much
    noise ends where everything is noise. So there are a few starts at different signal-to-noise ratios: each
    takes a few steps, and the one with the largest evidence is then taken to the end.

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
    >>> solution.state.weights > 0
    array([ True, False])
    """

    columns = ("log_evidence", "stationarity", "n_kernels")
    residual_name = "relative slope of the log evidence"

    _evidence: Evidence  # on the kernels with weight

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
    ) -> Result:
        """Run until the stationarity residual is within `tol`.

        Parameters
        ----------
        evidence : Evidence
        hyperprior : callable, object with `price`, or None
            h, see `HyperPrior`.
        tol : float, default=1e-4
        max_iter : int, default=200
            Most steps per start.
        callback : callable, optional
            Called as callback(iteration, point) after every step; a true answer stops the run.
            So does Ctrl-C: the last iterate is the best.
        keeper : Keeper, optional
            Where the iterates of every start are kept; those found there are resumed, and
            `max_iter` counts their steps.
        """
        if self.update not in ("mackay", "mm"):
            raise ValueError(f"update={self.update!r}: expected 'mackay' or 'mm'.")
        limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "callback": callback, "keeper": keeper}
        prior = HyperPrior(hyperprior)
        runs = (
            Run(clone(self), evidence, None, prior, phase=f"start {k}", begin=evidence.start(level), **limits)
            for k, level in enumerate(evidence.levels)
        )
        return best_of(runs, look=(FIRST_TOL, FIRST_STEPS))

    # -- one run ------------------------------------------------------------------------------

    def start(self, run: Run) -> EvidencePoint | None:
        """The start, or where an earlier run ended.

        None if, without noise, a start after the first leads to a matrix that cannot be factored.
        """
        weights, self._noise = run.begin
        live = np.flatnonzero(weights)
        theta = np.log(np.append(weights[live], [self._noise] * run.problem.learns_noise))
        entry = run.found()
        if entry is not None:
            live, theta = entry.arrays["live"], entry.arrays["theta"]
            for column in run.history.values():
                column.pop()  # the last one is evaluated again
            run.n_iter = run.n_resumed = len(run.history["stationarity"])
        self._evidence = run.problem.subset(live)
        self._points: list[FloatArray] = []  # the last iterates
        self._images: list[FloatArray] = []  # where MacKay's update leads from them
        self._stretch = 1.0  # t, relative to the exponent of the update
        self._wait = self._waited = 0  # steps to the next attempt at pruning
        posterior = self._evidence.evaluate(np.exp(theta[: len(live)]), self._noise_of(theta))
        objective = self._objective(run, posterior, live)
        if not np.isfinite(objective) and run.phase != "start 0":
            return None
        if posterior is None:
            raise ValueError(
                f"noise I + sum_m d_m K_m is not positive definite with noise = {self._noise:.3g}: "
                "raise `noise`, or check that the kernels are positive semidefinite."
            )
        if not np.isfinite(objective):
            raise ValueError("hyperprior: h has to be finite for all weights d > 0.")
        return self._point(run, live, theta, posterior, objective)

    def step(self, run: Run, point: EvidencePoint) -> EvidencePoint | None:
        """Drop kernels, or move to a point of no lower evidence; None at the end, or if rounding is left.

        Before the end comes a last attempt at pruning.
        """
        settled = point.residual <= run.tol
        pruned = self._pruned(run, point, insist=settled and not run.looks)
        if pruned is not None or settled:
            return pruned
        leap = np.clip(np.log((point.up + FEW) / (point.down + FEW)), -MAX_LEAP, MAX_LEAP)
        leap = self._inside(point.theta + leap) - point.theta
        surplus = max(0, len(self._points) + 1 - self.memory)
        self._points = [*self._points, point.theta][surplus:]
        self._images = [*self._images, point.theta + leap][surplus:]
        return self._extrapolated(run, point) or self._plain(run, point, leap)

    def is_done(self, run: Run) -> bool:
        """Never: a run that has converged is pruned before it ends."""
        return False

    def _extrapolated(self, run: Run, point: EvidencePoint) -> EvidencePoint | None:
        if len(self._points) < 2:
            return None
        far = extrapolate(self._points, self._images)
        # farther away, the residuals are too much alike to extrapolate from
        near = np.abs(far - point.theta).max() <= MAX_LEAP
        found = self._accepted(run, point, far) if near else None
        if found is None:
            self._points, self._images = self._points[-1:], self._images[-1:]
        return found

    def _plain(self, run: Run, point: EvidencePoint, leap: FloatArray) -> EvidencePoint | None:
        exponent = 1.0 if self.update == "mackay" else 0.5
        for k in range(MAX_HALVINGS):
            t = self._stretch * exponent * 0.5**k
            found = self._accepted(run, point, point.theta + np.clip(t * leap, -MAX_LEAP, MAX_LEAP))
            if found is not None:
                if self.memory:
                    self._stretch = max(1.0, self._stretch * (2.0 if k == 0 else 0.5**k))
                return found
        return None

    def _accepted(self, run: Run, point: EvidencePoint, theta: FloatArray) -> EvidencePoint | None:
        """The point at `theta`, moved within the bounds, if the evidence does not fall.

        Where evidences differ by rounding only, the one with the smaller slope is the better.
        """
        theta = self._inside(theta)
        if np.array_equal(theta, point.theta):
            return None
        weights = np.exp(theta[: len(point.live)])
        posterior = self._evidence.evaluate(weights, self._noise_of(theta), point.posterior)
        objective = self._objective(run, posterior, point.live)
        rounding = ROUNDING * max(1.0, abs(point.objective))
        if posterior is None or not objective <= point.objective + rounding:
            return None
        found = self._point(run, point.live, theta, posterior, min(objective, point.objective))
        better = objective <= point.objective or found.residual < point.residual
        return found if better else None

    def _inside(self, theta: FloatArray) -> FloatArray:
        lower, upper = self._evidence.bounds()
        with np.errstate(divide="ignore"):
            return np.clip(theta, np.maximum(np.log(lower), -600.0), np.minimum(np.log(upper), 600.0))

    # -- pruning ------------------------------------------------------------------------------

    def _pruned(self, run: Run, point: EvidencePoint, insist: bool) -> EvidencePoint | None:
        """The point without the kernels that the evidence does not miss; None where it misses all.

        After a failed attempt the next one waits twice as long, unless it is the last (`insist`).
        """
        self._waited += 1
        candidates = self._dying(point)
        if len(candidates) == 0 or (self._waited <= self._wait and not insist):
            return None
        self._waited, found = 0, None
        while len(candidates) and found is None:
            candidates, found = self._without(run, point, candidates)
        self._wait = 0 if found is not None else 2 * self._wait + 1
        return found

    def _dying(self, point: EvidencePoint) -> IntArray:
        """Positions of small kernels that the evidence shrinks, the smallest first."""
        M = len(point.live)
        size = np.exp(point.theta[:M]) * self._evidence.scales
        share = NEGLIGIBLE if point.residual <= NEAR else DEAD
        small = size <= share * max(size.max(initial=0.0), self._noise_of(point.theta))
        dying = np.flatnonzero(small & (point.up[:M] < point.down[:M]))
        return dying[np.argsort(size[dying])]

    def _without(
        self, run: Run, point: EvidencePoint, candidates: IntArray
    ) -> tuple[IntArray, EvidencePoint | None]:
        """The point without the candidates if the evidence allows it, or the candidates to try again."""
        M = len(point.live)
        weights = np.exp(point.theta[:M])
        weights[candidates] = 0.0
        posterior = self._evidence.evaluate(weights, self._noise_of(point.theta), point.posterior)
        objective = self._objective(run, posterior, point.live)
        if posterior is None or not objective <= point.objective:
            return candidates[: len(candidates) // 2], None
        up, down = self._evidence.slopes(posterior)
        returning = up[candidates] > down[candidates]
        if returning.any():
            return candidates[~returning], None
        keep = np.delete(np.arange(len(point.theta)), candidates)  # the noise, if learned, is the last
        kernels = keep[keep < M]
        self._evidence = self._evidence.subset(kernels)
        posterior = replace(posterior, weights=weights[kernels])
        self._points, self._images = [x[keep] for x in self._points], [x[keep] for x in self._images]
        parts = (point.live[kernels], point.theta[keep], posterior, objective, (up[keep], down[keep]))
        return candidates, self._point(run, *parts)

    # -- values -------------------------------------------------------------------------------

    def _noise_of(self, theta: FloatArray) -> float:
        return float(np.exp(theta[-1])) if self._evidence.learns_noise else self._noise

    def _objective(self, run: Run, posterior: Posterior | None, live: IntArray) -> float:
        if posterior is None:
            return np.inf
        weights = spread(posterior.weights, live, run.problem.n_kernels)
        result: float = posterior.objective + 0.5 * run.regularizer.price(weights)
        return result

    def _point(
        self,
        run: Run,
        live: IntArray,
        theta: FloatArray,
        posterior: Posterior,
        objective: float,
        slopes: tuple[FloatArray, FloatArray] | None = None,
    ) -> EvidencePoint:
        up, down = self._evidence.slopes(posterior) if slopes is None else slopes
        price, weights = np.zeros_like(theta), spread(posterior.weights, live, run.problem.n_kernels)
        price[: len(live)] = run.regularizer.log_gradient(weights, live)
        up = np.exp(theta) * up + np.maximum(-price, 0.0)
        down = np.exp(theta) * down + np.maximum(price, 0.0)
        free = ~self._held(np.exp(theta), up, down)
        residual = float(np.abs(down - up)[free].sum() / max(down.sum(), 1.0))
        return EvidencePoint(live, theta, weights, posterior, objective, up, down, residual)

    def _held(self, values: FloatArray, up: FloatArray, down: FloatArray) -> BoolArray:
        """Parameters at a bound that the evidence pushes against it."""
        lower, upper = self._evidence.bounds()
        return ((values <= lower * (1 + 1e-9)) & (up < down)) | ((values >= upper * (1 - 1e-9)) & (up > down))

    # -- what a run asks ----------------------------------------------------------------------

    def row(self, run: Run, iterate: EvidencePoint) -> tuple[float, ...]:
        return run.problem.log_evidence(iterate.objective), iterate.residual, len(iterate.live)

    def saved(self, run: Run) -> Entry:
        return Entry({}, {"live": run.last.live, "theta": run.last.theta})

    def summary(self, run: Run) -> dict[str, Any]:
        """Where the run began, and how far it got."""
        weights, noise = run.begin
        return {
            "noise": noise,
            "variance": float(weights @ run.problem.scales),
            "log_evidence": run.history["log_evidence"][-1],
            "n_iter": run.n_iter,
        }

    def settle(self, run: Run) -> None:
        """Add the norms and the evidence, and drop the matrix."""
        point, energy = run.best, np.zeros(run.problem.n_kernels)
        gram = run.problem.subset(point.live).gram
        if gram is not None:
            energy[point.live] = np.maximum(gram.quad(point.posterior.alpha), 0.0)
        run.best = replace(
            point,
            posterior=replace(point.posterior, K=None),
            norms=point.weights * np.sqrt(energy),
            log_evidence=run.problem.log_evidence(point.posterior.objective),
        )
