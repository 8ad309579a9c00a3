"""Empirical Bayes: kernel weights and noise that maximise the evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..._typing import FloatArray, IntArray
from ._evidence import Evidence, GaussianEvidence, LaplaceEvidence, Posterior
from ._fixed_point import extrapolate

#: a kernel this small against the largest is tried without: always, and near a stationary point; the
#: evidence decides
DEAD, NEGLIGIBLE, NEAR = 1e-8, 1e-2, 1e-2

#: largest change of log d in one step, and shortest fraction of a step tried
MAX_LEAP, MAX_HALVINGS = 12.0, 20


class HyperPrior:
    """A prior p(d) ~ exp(-h(d) / 2) of the kernel weights, the remedy of the paper for extreme sparsity.

    Parameters
    ----------
    h : callable, object with `price`, or None
        A function h(d) -> float of all M weights, or an object with the method ``price(d)``, such as
        a regulariser with a smooth h, and if it has them ``price_gradient(d)`` or
        ``price_slopes(d)`` (whose first part is the gradient). Without those h is differentiated
        numerically. None is a flat prior. h may be infinite at d_m = 0: no kernel is then pruned.

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
        for ability in ("price_gradient", "price_slopes"):
            if hasattr(self.h, ability):
                slopes = getattr(self.h, ability)(weights)
                gradient = np.asarray(slopes[0] if ability == "price_slopes" else slopes)
                return weights[kernels] * gradient[kernels]
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


#: called after every step; a true answer stops the run
Callback = Callable[[int, Point], bool | None]


class EmpiricalBayes(BaseEstimator):
    """Maximises the evidence over kernel weights and noise.

    With up_m = a' K_m a, down_m = tr(Kbar^-1 K_m) and a = Kbar^-1 y the steps are

        d_m <- d_m (up_m / down_m)^t        t = 1: MacKay's update;  t = 1/2: majorise-minimise

    and likewise for the noise. t = 1 is fast but may overshoot; t = 1/2 never does for Gaussian
    noise and concave or logarithmic h. Every log step has the sign of the ascent, so some t
    works in every case: 1, 1/2, 1/4, ... are tried until the evidence does not fall, after an
    extrapolation of the fixed point from the last iterates (Anderson acceleration) under the same test.
    Kernels that shrink and are small already are set to exactly zero when the evidence does
    not fall by it and would not rise again with them; they are then dropped for good.

    Parameters
    ----------
    update : {"mackay", "mm"}, default="mackay"
        Whether t starts at 1 or at 1/2.
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain iteration.

    References
    ----------
    Tomioka & Suzuki (2011), section 3, equations 19-23; MacKay (1992); Wipf & Nagarajan (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> x = np.linspace(-1, 1, 40)
    >>> gram = DenseGram([np.outer(x, x), np.outer(x**2, x**2)])
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=(40, 1))
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
    ) -> EvidenceSolution:
        """Run until the stationarity residual is within `tol`.

        Parameters
        ----------
        evidence : Evidence
        hyperprior : callable, object with `price`, or None
            h, see `HyperPrior`.
        tol : float, default=1e-4
        max_iter : int, default=200
            Most steps.
        callback : callable, optional
            Called as callback(iteration, point) after every step; a true answer stops the run.
            So does Ctrl-C: the last iterate is the best.
        """
        if self.update not in ("mackay", "mm"):
            raise ValueError(f"update={self.update!r}: expected 'mackay' or 'mm'.")
        search = _Search(evidence, HyperPrior(hyperprior), self.memory, 1.0 if self.update == "mackay" else 0.5)
        try:
            self._iterate(search, tol, max_iter, callback)
        except KeyboardInterrupt:
            warnings.warn(f"interrupted; {search.describe()}", ConvergenceWarning, stacklevel=3)
            return search.solution(tol)
        if search.point.stationarity > tol:
            warnings.warn(
                f"{search.describe()} Increase max_iter or tol (={tol:g}), or scale the data.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return search.solution(tol)

    def _iterate(self, search: _Search, tol: float, max_iter: int, callback: Callback | None) -> None:
        for iteration in range(max_iter):
            settled = search.point.stationarity <= tol
            if not search.prune(insist=settled) and (settled or not search.step()):
                break
            search.record()
            if callback is not None and callback(iteration, search.point):
                break


class _Search:
    """The current iterate, and the ways to a better one."""

    def __init__(self, evidence: Evidence, prior: HyperPrior, memory: int, exponent: float) -> None:
        self.whole, self.prior, self.memory, self.exponent = evidence, prior, memory, exponent
        weights, noise = evidence.start()
        live = np.flatnonzero(weights)
        self.evidence = evidence.subset(live)
        theta = np.log(np.append(weights[live], [noise] * evidence.learns_noise))
        self.noise = noise
        tried = self._value(theta)
        if tried is None:
            raise ValueError(
                f"the matrix noise I + sum_m d_m K_m with noise = {noise:.3g} is not positive definite: "
                "raise `noise`, or check that the kernels are positive semidefinite."
            )
        self.point = self._point(live, theta, *tried)
        self.history: dict[str, list[float]] = {"log_evidence": [], "stationarity": [], "n_kernels": []}
        self.record()
        self.patience = self.waited = 0
        self.stretch = 1.0
        self.points: list[FloatArray] = []
        self.images: list[FloatArray] = []

    # -- one step -----------------------------------------------------------------------------

    def step(self) -> bool:
        """Move to a point of no lower evidence; False when there is none but for rounding."""
        point = self.point
        log_ratio = np.log(np.maximum(point.up, 1e-300)) - np.log(np.maximum(point.down, 1e-300))
        leap = np.clip(log_ratio, -MAX_LEAP, MAX_LEAP)
        self._remember(point.theta, point.theta + leap)
        if len(self.points) > 1:
            far = extrapolate(self.points, self.images) - point.theta
            if self._accept(point.theta + np.clip(far, -MAX_LEAP, MAX_LEAP)):
                return True
            self.points, self.images = self.points[-1:], self.images[-1:]
        for k in range(MAX_HALVINGS):
            t = self.stretch * self.exponent * 0.5**k
            if self._accept(point.theta + np.clip(t * leap, -MAX_LEAP, MAX_LEAP)):
                if self.memory:
                    self.stretch = max(1.0, self.stretch * (2.0 if k == 0 else 0.5**k))
                return True
        return False

    def _accept(self, theta: FloatArray) -> bool:
        lower, upper = self.evidence.bounds()
        with np.errstate(divide="ignore"):
            theta = np.clip(theta, np.maximum(np.log(lower), -600.0), np.minimum(np.log(upper), 600.0))
        tried = self._value(theta)
        if tried is None or not tried[1] <= self.point.objective or np.array_equal(theta, self.point.theta):
            return False
        self.point = self._point(self.point.live, theta, *tried)
        return True

    def _remember(self, theta: FloatArray, image: FloatArray) -> None:
        """Keep the last points and their images for the extrapolation."""
        first = len(self.points) + 1 - self.memory
        self.points = [*self.points, theta][max(first, 0) :]
        self.images = [*self.images, image][max(first, 0) :]

    # -- pruning ------------------------------------------------------------------------------

    def prune(self, insist: bool) -> bool:
        """Drop the kernels that the evidence does not miss; whether there were any.

        After a vain attempt the next one waits twice as long, unless it is the last (`insist`).
        """
        self.waited += 1
        candidates = self._dying()
        if len(candidates) == 0 or (self.waited <= self.patience and not insist):
            return False
        self.waited = 0
        for _ in range(4):
            candidates = self._without(candidates)
            if self.pruned:
                self.patience = 0
                return True
            if len(candidates) == 0:
                break
        self.patience = 2 * self.patience + 1
        return False

    def _dying(self) -> IntArray:
        """Positions of small kernels that the evidence shrinks, the smallest first."""
        point, M = self.point, len(self.point.live)
        size = np.exp(point.theta[:M]) * self.evidence.scales
        small = max(size.max(initial=0.0), self._noise_of(point.theta)) * (
            NEGLIGIBLE if point.stationarity <= NEAR else DEAD
        )
        dying = np.flatnonzero((size <= small) & (point.up[:M] < point.down[:M]))
        return dying[np.argsort(size[dying])]

    def _without(self, candidates: IntArray) -> IntArray:
        """Try to drop the candidates (then `pruned` is set); those to try next if it fails."""
        self.pruned = False
        point, M = self.point, len(self.point.live)
        weights, noise = np.exp(point.theta[:M]), self._noise_of(point.theta)
        weights[candidates] = 0.0
        posterior = self.evidence.evaluate(weights, noise, point.posterior)
        keep = np.delete(np.arange(M), candidates)
        objective = self._objective(posterior, point.live)
        if posterior is None or not objective <= point.objective:
            return candidates[: len(candidates) // 2]
        up, down = self.evidence.slopes(posterior)
        # at d_m = 0 the evidence must not rise with d_m
        returning = up[candidates] > down[candidates]
        if returning.any():
            return candidates[~returning]
        self.pruned = True
        self.evidence = self.evidence.subset(keep)
        theta = np.append(point.theta[:M][keep], point.theta[M:])
        posterior = replace(posterior, weights=weights[keep])
        rest = np.append(keep, np.arange(M, len(point.theta)))
        self.point = self._point(point.live[keep], theta, posterior, objective, (up[rest], down[rest]))
        self.points = [old[rest] for old in self.points]
        self.images = [old[rest] for old in self.images]
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

    def _value(self, theta: FloatArray) -> tuple[Posterior, float] | None:
        """Posterior and objective; None where the matrix cannot be factored."""
        live = self.point.live if hasattr(self, "point") else np.flatnonzero(self.whole.start()[0])
        weights = np.exp(theta[: len(live)])
        start = self.point.posterior if hasattr(self, "point") else None
        posterior = self.evidence.evaluate(weights, self._noise_of(theta), start)
        return None if posterior is None else (posterior, self._objective(posterior, live))

    def _point(
        self,
        live: IntArray,
        theta: FloatArray,
        posterior: Posterior,
        objective: float,
        slopes: tuple[FloatArray, FloatArray] | None = None,
    ) -> Point:
        up, down = self.evidence.slopes(posterior) if slopes is None else slopes
        up, down = np.exp(theta) * up, np.exp(theta) * down
        price = np.zeros_like(theta)
        price[: len(live)] = self.prior.log_gradient(self._weights(posterior, live), live)
        up, down = up + np.maximum(-price, 0.0), down + np.maximum(price, 0.0)
        lower, upper = self.evidence.bounds()
        values = np.exp(theta)
        held = ((values <= lower * (1 + 1e-9)) & (up < down)) | ((values >= upper * (1 - 1e-9)) & (up > down))
        stationarity = float(np.abs(down - up)[~held].sum() / max(down.sum(), 1.0))
        return Point(live, theta, posterior, objective, up, down, stationarity)

    # -- results ------------------------------------------------------------------------------

    def record(self) -> None:
        point = self.point
        values = (self.whole.log_evidence(point.objective), point.stationarity, len(point.live))
        for key, value in zip(self.history, values, strict=True):
            self.history[key].append(value)

    def describe(self) -> str:
        count, residual = len(self.history["stationarity"]) - 1, self.point.stationarity
        return f"the relative slope of the log evidence is {residual:.2g} after {count} steps."

    def solution(self, tol: float) -> EvidenceSolution:
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
        )
