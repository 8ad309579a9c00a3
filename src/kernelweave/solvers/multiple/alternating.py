"""Fixed points of the norms: alternating minimisation, and joint ascent for block norms q > 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..checkpoint import Entry
from ..growing import Known, Pilot, spread
from ..problem import Problem
from ..run import Result, Run
from ..single import SingleSolver, choose_single, machine_for
from .newton_weights import n_free, response_to_weights

#: a step is slow if it leaves more than this share of the gap; and the gap that is near enough for Newton
#: steps
SLOW, NEAR = 0.3, 0.3

#: gap below which steps use Newton's matrix of all samples, not of few, if all are at hand
FAR = 0.02

#: most by which a change of log norms may exceed the plain step, as a norm near zero is slow to return; the
#: share of that left after a step that led astray, and how much of it every other step brings back
LEAP, SHORTER, LONGER = 4.0, 0.25, 2.0

#: a norm under this share of the largest may rise above the plain step by this at most, since its model knows
#: nothing of the size at which it begins to matter
NEGLIGIBLE, RISING = 0.01, 2.0

#: plain steps start with norms of at least this share of the largest, where other steps led astray
LEAST = 1e-3

#: most kernels for which Newton steps pay off: their matrix has as many rows
MOST_NEWTON = 1000

#: most kernels for which a checkpoint has Newton's matrix
MOST_SAVED = 200

#: share of the samples that one machine takes to tell how norms change from a few samples to all
MIDDLE = 0.4

#: share of the tolerance left to the last machine
LAST_SHARE = 0.2

#: dual norms under this share of the largest are raised to it, by less as the gap closes: theta = 0 would
#: make the matrix of the machine infinite
LARGEST_FLOOR, SMALLEST_FLOOR = 1e-2, 1e-6


class Alternating(MKLSolver):
    """Machine at fixed weights, then the closed-form weights of its norms, in turn.

    Each half-step minimises the joint objective, which therefore never rises; for the lp norm with p > 1
    every limit point is optimal (Kloft et al. 2011, Algorithm 1 and Theorem 4). Three things make it fast.
    Machines are solved only as well as the current gap deserves. Many samples are first looked at through a
    few of them: the norms on a few samples and, by one machine, on more of them are extrapolated to all
    samples and are the start. The Jacobian of the map from log norms to log norms turns plain steps into
    Newton steps; where steps are slow, it is computed again on all samples,

        d log n_m / d log d_l = [m = l] - H_ml d_l / s_m,   H = d2J/dd2,  s_m = alpha' K_m alpha

    And steps are extrapolated (Anderson acceleration), falling back to the plain step whenever the objective
    rises. If all this makes no progress, the plain iteration takes over.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain algorithm, without Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.ones((20, 1)))
    >>> Alternating().solve(problem, gram, LpNorm(p=2), tol=1e-6).converged
    True
    """

    name = "alternating"
    pilot_share, pilot_tol, rough_looks, common_looks, foresees = 10, 0.003, True, True, True

    #: whether the norms are the dual ones; and kernels up to which Newton steps are made
    dual, most_newton = False, MOST_NEWTON

    #: log norms that an earlier run tried last, and its Newton's matrix
    _recalled: tuple[FloatArray, FloatArray] | None = None

    def __init__(self, single: str | SingleSolver = "auto", memory: int = 5) -> None:
        super().__init__(single)
        self.memory = memory

    def can_handle(self, regularizer: Regularizer) -> bool:
        return self.supports(regularizer) and not regularizer.sparse

    def supports(self, regularizer: Regularizer) -> bool:
        return regularizer.convex and regularizer.priced and not regularizer.ascends

    def successor(self, run: Run) -> Alternating | None:
        """The plain iteration, which converges; nothing after that."""
        return type(self)(self.single, memory=0) if self.memory > 0 else None

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        # whether the norms n and 2 n have the same weights, as with a constraint
        some = np.linspace(1.0, 2.0, len(norms))
        once, twice = (self.weights_of(run.regularizer, size * some) for size in (1.0, 2.0))
        self._only_ratios = np.allclose(once, twice, rtol=1e-6)
        self._best = -np.inf if self.dual else np.inf  # bound of the best joint value so far
        self._points = [self.safe(_log(norms))]  # log norms whose weights were tried
        self._images: list[FloatArray] = []  # where the steps from them lead
        self._reach = LEAP  # most by which the next change may exceed the plain step
        self._leapt = False  # whether the last proposal was more than the plain step
        self._before = np.inf  # residual of the last iterate
        self._from = self._plain = self._points[0]  # where the last step started, and its plain end
        self._newton: FloatArray | None = None  # what a residual is multiplied with; None: plain steps
        self._stale = False  # whether it is from few samples, while one of all costs little
        return self.weights_of(run.regularizer, np.exp(self._points[0]))

    def restart(self, run: Run, state: State) -> FloatArray:
        """Step on from the iterate of an earlier run, or start at its norms.

        Plain steps start with no norm near zero, since they would hardly change such a norm.
        """
        norms, recalled, self._recalled = state.certificate.norms, self._recalled, None
        if recalled is not None and self.memory > 0:
            tried, newton = recalled
            self.init(run, np.exp(tried))
            self._newton = newton
            if state.residual < NEAR:
                self._first_tol = LAST_SHARE * run.tol
            return self.next_weights(run, state)
        if self.memory == 0:
            norms = np.maximum(norms, LEAST * norms.max())
        return self.init(run, norms if norms.any() else np.ones(len(norms)))

    def saved(self, run: Run) -> Entry:
        """The iterate, and if they led to it, Newton's matrix and the log norms whose weights were tried."""
        entry, newton = super().saved(run), getattr(self, "_newton", None)
        if newton is None or len(newton) > MOST_SAVED or run.part is not None or run.best is not run.last:
            return entry
        own = self.weights_of(run.regularizer, np.exp(self._points[-1]))
        if np.allclose(own, run.best.weights, rtol=1e-9, atol=0.0):
            entry.arrays.update(newton=newton, tried=self._points[-1])
        return entry

    def recall(self, entry: Entry) -> None:
        if "newton" in entry.arrays:
            self._recalled = (entry.arrays["tried"], entry.arrays["newton"])

    def learn_from(self, run: Run, pilot: Pilot) -> None:
        # the weights are nearly right, and a coarse machine would hide by how much
        self._first_tol, self._stale = LAST_SHARE * run.tol, run.gram.parts_in_place
        self._newton = pilot.newton if pilot.newton is not None else self.of_pilot(run, pilot)

    def learn_nearby(self, run: Run, known: Known) -> None:
        super().learn_nearby(run, known)
        if self.memory > 0:
            self._newton = known.newton
            if known.matrix is not None and known.newton is not None:  # as after a first look
                self._first_tol = LAST_SHARE * run.tol

    def learnt(self, found: Result, problem: Problem, gram: Gram, regularizer: Regularizer) -> Known:
        """The norms whose weights were tried last, and Newton's matrix: a new one if steps were made."""
        known = super().learnt(found, problem, gram, regularizer)
        points = getattr(self, "_points", None)  # absent if all was done in rounds on a part
        tried = known.norms if points is None else np.exp(points[-1])
        if not np.allclose(self.weights_of(regularizer, tried), known.weights, rtol=1e-9, atol=0.0):
            return known  # from rounds, or from another method
        newton = None if points is None else self._newton
        small = 0 < self.memory and gram.n_kernels <= self.most_newton
        if newton is None and found.n_iter > 1 and known.matrix is not None and small:
            newton = newton_factor(problem, gram, regularizer, found.state, known.matrix)
        return known._replace(norms=tried, newton=newton)

    def refined_norms(self, found: Result, known: Known) -> FloatArray:
        """The norms after a Newton step from the tried norms x: x + (I - J)^-1 (n - x), in logarithms."""
        norms = super().refined_norms(found, known)
        if known.newton is None or not norms.all():
            return norms
        image, start = self.safe(_log(norms)), self.safe(_log(known.norms))
        return np.asarray(norms * np.exp(np.clip(start + known.newton @ (image - start) - image, -1.0, 1.0)))

    def of_pilot(self, run: Run, pilot: Pilot) -> FloatArray | None:
        """`newton` at the end of a first solve."""
        return self.newton(run, pilot.problem, pilot.gram, pilot.state, pilot.matrix)

    def foresee(self, run: Run, pilots: list[Pilot]) -> Pilot:
        """Log norms extrapolated in 1 / sqrt(samples), the rate at which the sampling bias falls.

        They come from the log norms of the two first solves, on fewer and on few samples. If a part of the
        samples costs only its share of the entries, they come from few samples and from the share `MIDDLE` of
        all, which takes one more machine and a Newton step. Extrapolating over a shorter distance is less
        noisy.
        """
        n, pilot = run.gram.n_samples, pilots[-1]
        newton, few, count = self.of_pilot(run, pilot), len(pilot.rows), int(MIDDLE * n)
        found = known = _log(pilot.norms)
        if len(pilots) > 1:
            found = known + _continued(known - _log(pilots[-2].norms), len(pilots[-2].rows), few, n)
        elif count >= 1.5 * few:
            middle = self._middle(run, newton, known, count)
            found = middle + _continued(middle - known, few, count, n)
        return replace(pilot, norms=np.exp(found), newton=newton)

    def _middle(self, run: Run, newton: FloatArray | None, log_norms: FloatArray, count: int) -> FloatArray:
        """Log norms of the problem on `count` samples: a Newton or plain step from the expected norms."""
        problem, gram, rows = run.problem, run.gram, run.problem.spread(count)
        weights, few = self.weights_of(run.regularizer, np.exp(log_norms)), problem.subset(rows)
        K = gram.square(rows, weights)
        single = machine_for(K, choose_single(self.single, problem.loss))
        alpha = spread(single.solve(K, few, self.pilot_tol).alpha, rows, gram.n_samples)
        step = _log(weights * np.sqrt(np.maximum(gram.quad(alpha), 0.0))) - log_norms
        return log_norms + np.clip(step if newton is None else newton @ step, -1.0, 1.0)

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """Fine from the start, if after Newton steps most of the gap will be the machine's."""
        near = previous is not None and self._newton is not None and previous.residual < NEAR
        return LAST_SHARE * run.tol if near else super().machine_tol(run, previous)

    def next_weights(self, run: Run, state: State) -> FloatArray:
        if self.is_worse(run, state) and self._leapt:
            # take the plain step from where it leapt, and forget the steps before
            self._points, self._images, self._newton = [self._from], [self._plain], None
            self._reach *= SHORTER
        else:
            self._reach = min(LEAP, LONGER * self._reach)
            proof = state.certificate
            image = proof.dual_norms if self.dual else proof.norms
            self._from, self._plain = self._points[-1], self.safe(_log(image))
            far = self._stale and state.residual > FAR
            slow = far or SLOW * self._before < state.residual
            wanted = slow and state.residual < NEAR
            newton = self.newton(run, run.problem, run.gram, state, run.K) if wanted else None
            self._stale = False
            if newton is not None:  # Newton steps from here on, as the last step closed little of the gap
                self._newton, self._points, self._images = newton, self._points[-1:], []
            step = self._plain - self._from
            aim = self._plain if self._newton is None else self._from + self._newton @ step
            self._images = [*self._images, aim]
        self._before = state.residual
        leap = np.clip(extrapolate(self._points, self._images) - self._plain, -self._reach, self._reach)
        most = np.maximum(self._plain + RISING, float(self._plain.max()) + np.log(NEGLIGIBLE))
        proposal = self.safe(np.minimum(self._plain + leap, most))
        self._leapt = len(self._images) > 1 or self._newton is not None
        self._points = [*self._points, proposal][-1 - self.memory :]
        self._images = self._images[-self.memory :] if self.memory else []
        return self.weights_of(run.regularizer, np.exp(np.clip(proposal, -200.0, 200.0)))

    def weights_of(self, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        """The weights that belong to norms."""
        return regularizer.weights_from_dual(norms) if self.dual else regularizer.weights(norms)

    def safe(self, log_norms: FloatArray) -> FloatArray:
        """Log norms kept where their weights are safe to try.

        They are relative to the largest if weights depend only on ratios; then so do all steps.
        """
        return log_norms - log_norms.max() if self._only_ratios else log_norms

    def newton(self, run: Run, problem: Problem, gram: Gram, state: State, K: Any) -> FloatArray | None:
        """(I - J)^-1 of the map of log norms at `state`; None to do without."""
        if self.memory == 0 or gram.n_kernels > self.most_newton:
            return None
        return newton_factor(problem, gram, run.regularizer, state, K)

    def is_worse(self, run: Run, state: State) -> bool:
        """Whether `state` is certainly worse than the best so far; if not, it is remembered."""
        lower, upper = self.bounds(run, state)
        if lower > self._best:
            return True
        self._best = min(self._best, upper)
        return False


def _continued(change: FloatArray, few: int, some: int, more: int) -> FloatArray:
    """The change from `few` to `some` samples extrapolated to `more`, in 1 / sqrt(samples)."""
    step = (some**-0.5 - more**-0.5) / (few**-0.5 - some**-0.5)
    return np.asarray(step * np.clip(change, -1.0, 1.0))


def extrapolate(points: list[FloatArray], images: list[FloatArray]) -> FloatArray:
    """Anderson's step for a fixed point of `image(point)`.

    It is the affine combination of past images whose combined residual image - point is shortest (Walker & Ni
    2011). With one image, it is that image.
    """
    Y = np.array(images)
    residuals = Y - np.array(points)
    changes = np.diff(residuals, axis=0)
    if len(changes) == 0:
        result: FloatArray = Y[-1]
        return result
    mix = np.linalg.lstsq(changes.T, residuals[-1], rcond=1e-8)[0]
    result = Y[-1] - mix @ np.diff(Y, axis=0)
    return result


def _log(norms: FloatArray) -> FloatArray:
    return np.log(np.maximum(norms, 1e-80 * max(float(norms.max()), 1e-80)))


def newton_factor(
    problem: Problem, gram: Gram, regularizer: Regularizer, state: State, K: Any
) -> FloatArray | None:
    """(I - J)^-1 with J the Jacobian of the map of log norms at `state`, if it exists."""
    each = np.eye(gram.n_kernels)
    norms, squares = state.certificate.norms, state.squares
    if not (norms.min() > 0.0 and squares.min() > 0.0):
        return None
    if n_free(problem, state) > getattr(K, "most_inverted", np.inf):
        return None
    H = response_to_weights(problem, gram, state, K).hessian
    of_weights = each - H * state.weights / squares[:, None]
    factor = np.linalg.inv(each - of_weights @ regularizer.log_slopes(norms))
    return factor if np.isfinite(factor).all() else None


class JointAscent(Alternating):
    """Both steps go up: the machine at weights 1 / theta, then the theta of its dual norms.

        max_{alpha, theta}  -sum_i C_i V*(y_i, -alpha_i / C_i) - 1/2 sum_m alpha' K_m alpha / theta_m

    is jointly concave, and its maximum over theta is the dual with Omega*(r) = 1/2 ||r||_{q*}^2. The
    penalty adds 1/2 h(1 / theta) = -1/(2 rho) sum_m theta_m^rho, which is concave too. Steps are
    extrapolated as in `Alternating`.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import BlockNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.ones((20, 1)))
    >>> JointAscent().solve(problem, gram, BlockNorm(q=8), tol=1e-6).converged
    True
    """

    name = "joint_ascent"
    pilot_share, dual, most_newton = 0, True, 0

    def can_handle(self, regularizer: Regularizer) -> bool:
        return regularizer.ascends

    def supports(self, regularizer: Regularizer) -> bool:
        return regularizer.ascends

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._floor = LARGEST_FLOOR
        return super().init(run, norms)

    def restart(self, run: Run, state: State) -> FloatArray:
        self._floor = LARGEST_FLOOR
        self._lower_floor(state)
        return super().init(run, state.certificate.dual_norms)

    def next_weights(self, run: Run, state: State) -> FloatArray:
        self._lower_floor(state)
        return super().next_weights(run, state)

    def _lower_floor(self, state: State) -> None:
        """A floor on theta that follows the gap, since its cost is in proportion to it."""
        wanted = 0.3 * state.residual / len(state.weights)
        while self._floor > max(wanted, SMALLEST_FLOOR):
            self._floor *= 0.3

    def safe(self, log_norms: FloatArray) -> FloatArray:
        log_norms = super().safe(log_norms)
        result: FloatArray = np.maximum(log_norms, log_norms.max() + np.log(self._floor))
        return result

    def is_worse(self, run: Run, state: State) -> bool:
        lower, upper = self.bounds(run, state)
        if upper < self._best:
            return True
        self._best = max(self._best, lower)
        return False
