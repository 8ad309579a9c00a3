"""Box-constrained duals on a device: accelerated projected gradient, then Newton steps on a face."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray, IntArray
from ..certificate import relative
from ..problem import Problem, best_intercept
from ._interior import Interior
from .base import Machine, SingleSolver, machine_gap
from .torch_smooth import solve_shifted

#: gradient steps between two looks at the gap, fewer where entries are computed anew for each, and steps of
#: the power method
ROUND, SHORT_ROUND, POWERS = 50, 10, 12

#: a round that leaves more than this share of the gap was slow, and ends with Newton steps; after so many
#: rounds that even these left slow, an interior-point method is tried
SLOW, SLOW_ROUNDS = 0.25, 4

#: most free samples whose matrix is factored, and most factors of a round; of more samples the system is
#: solved by so many steps, to that residual
MOST_FREE, MOST_FACTORS, SOLVE_STEPS, SOLVE_TOL = 20_000, 3, 30, 1e-2

#: samples from which, and share up to which, those that matter are solved for alone, to a share of the gap
#: asked for, or of the gap before where that is more, and how often at most
LEAST_SHRUNK, SHRUNK, PART_SHARE, PART_GAP, MOST_PARTS = 4000, 0.7, 0.5, 0.05, 20

#: exchanges of free and fixed samples, and those in a row that may not lower the objective
MOST_EXCHANGES, IDLE_EXCHANGES = 10, 1

#: samples up to which their factors cost less than gradient steps, if these need not compute entries anew
MOST_EXCHANGED = 5000

#: gap from which the free samples are not known well enough to exchange some of them
FAR = 0.5

#: share of the largest dual variable by which others may move without a new product
MOVED = 1e-13

#: rounds that leave more than this share of the least gap so far, after which all is only rounding
ROUNDED, IDLE_ROUNDS = 0.95, 5


class TorchBox(SingleSolver):
    """Hinge, eps-insensitive and one-class machines where K is on a device.

        min_a 1/2 a' K a - linear' a + kink |a|_1,   lower <= a <= upper,  sum(a) fixed

    Steps of the accelerated projected gradient method (Nesterov; restarts of O'Donoghue & Candes
    2015) cost one product with K each and never wait for the host. Under the sum constraint only
    the centred K matters: its largest eigenvalue, not that of K, sets the step length. Where a
    round of steps closes little of the gap, Newton steps on the free samples follow: one factor
    each, taken as far as the objective falls; and where these do not help, as with kernels of low
    rank, an interior-point method.

    Parameters
    ----------
    max_iter : int, default=20_000
        Most gradient steps.
    """

    name = "torch_box"
    requires = ("linear_dual",)

    def __init__(self, max_iter: int = 20_000) -> None:
        self.max_iter = max_iter

    def solve_column(self, K: Any, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        """Where few samples have a dual variable, on these and some that ask most for one.

        With alpha_i = 0 for all others a feasible point of the part is one of the whole, of the same dual
        value, and its gap is that of the whole once -C_i V'(y_i, f_i) = 0 outside.
        """
        machine, before = Machine(alpha, K @ alpha, 0), None
        for _ in range(MOST_PARTS if len(K) > LEAST_SHRUNK else 0):
            gap = machine_gap(problem, machine.alpha, machine.fitted)
            rows = _concerned(problem, machine)
            if (
                gap <= tol
                or len(rows) > SHRUNK * len(K)
                or (before is not None and np.array_equal(rows, before))
            ):
                break
            machine = self._on_part(
                K, problem, max(PART_SHARE * tol, PART_GAP * min(gap, 1.0)), machine, rows
            )
            before = rows
        return self._rounds(K, problem, tol, machine)

    def _on_part(self, K: Any, problem: Problem, tol: float, start: Machine, rows: IntArray) -> Machine:
        part, own = K.part(torch.as_tensor(rows, device=K.like.device)), start.alpha[rows]
        alone = Machine(own, part @ own, start.n_iter)
        found, alpha = self._rounds(part, problem.part(rows), tol, alone), np.zeros_like(start.alpha)
        alpha[rows] = found.alpha
        return Machine(alpha, K @ alpha, found.n_iter)

    def _rounds(self, K: Any, problem: Problem, tol: float, start: Machine) -> Machine:
        """Rounds until the gap is small enough, or stands."""
        gap = before = machine_gap(problem, start.alpha, start.fitted)
        if gap <= tol:
            return start
        descent, slow, idle, n_iter = Descent(K, problem, start.alpha[:, 0]), 0, 0, start.n_iter
        best = descent.point
        length, exchanges = ROUND if K.stored else SHORT_ROUND, len(K) <= MOST_EXCHANGED or not K.stored
        for _ in range(self.max_iter // length):
            n_iter += length
            exchanged = exchanges and before < FAR and descent.exchange()
            if not exchanged:
                descent.steps(length)
            now = descent.gap()
            if now > max(tol, SLOW * before) and not exchanged and descent.newton():
                now = descent.gap()
            slow += now > max(tol, SLOW * before)
            if slow == SLOW_ROUNDS and descent.interior(0.1 * tol):
                slow += 1  # once is enough
                now = descent.gap()
            idle = idle + 1 if now > ROUNDED * gap else 0
            best, gap = (descent.point, now) if now < gap else (best, gap)
            if gap <= tol or idle >= IDLE_ROUNDS:
                break
            before = now
        descent.a, descent.Ka = best
        return descent.machine(n_iter)


def _concerned(problem: Problem, machine: Machine) -> IntArray:
    """Samples that have a dual variable, and twice as many of the others, those of the largest loss."""
    f = machine.fitted + best_intercept(problem, machine.fitted)
    own = machine.alpha[:, 0] != 0.0
    asking = np.flatnonzero((problem.alpha_of(f)[:, 0] != 0.0) & ~own)
    most = max(2 * int(own.sum()), LEAST_SHRUNK // 2)
    if len(asking) > most:
        losses = problem.C * problem.loss.value(problem.y, f)
        asking = asking[np.argpartition(-losses[asking, 0], most)[:most]]
    return np.union1d(np.flatnonzero(own), asking)


class Descent:
    """A point of the box, its product with K, and ways down from it; all on the device of K."""

    def __init__(self, K: Any, problem: Problem, alpha: FloatArray) -> None:
        linear, kink = problem.loss.linear_dual(problem.y)
        lower, upper = problem.box()
        self.K, self.problem, self.kink = K, problem, float(kink)
        given = (problem.centred(linear), lower, upper)
        self.linear, self.lower, self.upper = (self._tensor(v[:, 0]) for v in given)
        self.tied = problem.fit_intercept
        total = float(problem.loss.alpha_sum) if self.tied else 0.0
        self.project = BoxProjection(self.lower, self.upper, self.kink, total, self.tied)
        self.a = self._tensor(alpha)
        self.Ka = self._product(self.a)
        self.repeat = Repeat(self.a)
        self.state: tuple[Any, ...] | None = None  # of the gradient steps, until something else moves a

    def _tensor(self, values: FloatArray) -> Any:
        """In double precision whatever the matrix has: sums over it cancel."""
        return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64), device=self.K.like.device)

    def _product(self, v: Any) -> Any:
        """K v; where the sum is fixed, up to a constant that the projection takes away."""
        Kv = self.K.multiply(v)
        return Kv if self.tied else Kv + self.K.shift * v.sum()

    @cached_property
    def step(self) -> Any:
        """Length of a gradient step."""
        return 1.0 / self._largest()

    def _largest(self) -> Any:
        """A little more than the largest eigenvalue of K, within sum zero when tied."""
        v = torch.cos(torch.arange(len(self.a), device=self.a.device, dtype=self.a.dtype) ** 2)
        size = torch.ones_like(v[0])
        for _ in range(POWERS):
            v = v - v.mean() if self.tied else v
            v = self._product(v / torch.linalg.vector_norm(v))
            v = v - v.mean() if self.tied else v
            size = torch.linalg.vector_norm(v)
        return 1.05 * size + 1e-30

    def steps(self, count: int) -> None:
        """Accelerated projected gradient steps, restarted where they turn back."""
        state = self.state or (self.a, self.Ka, self.a, self.Ka, torch.ones_like(self.a[0]))
        self.state = self.repeat(self._step, state, count)
        self.a, self.Ka = self.state[:2]

    def _step(self, a: Any, Ka: Any, before: Any, Kbefore: Any, t: Any) -> tuple[Any, ...]:
        """One step from a, pushed on in the direction it came from; t is Nesterov's sequence."""
        longer = 0.5 * (1.0 + torch.sqrt(1.0 + 4.0 * t * t))
        push = (t - 1.0) / longer
        y = a + push * (a - before)
        G = Ka + push * (Ka - Kbefore) - self.linear
        new = self.project(y - self.step * G, self.step)
        back = torch.dot(y - new, new - a) > 0.0
        return new, self._product(new), a, Ka, torch.where(back, torch.ones_like(t), longer)

    def exchange(self) -> bool:
        """Samples are put to the end of their interval they run into, all others solve K a + b = linear.

        Primal-dual active sets (Hintermueller, Ito & Kunisch 2003). With p = a - (G + b) / k, G the gradient
        and k about K_ii, samples whose p is outside their interval are fixed at its end, the others free;
        after some exchanges of the two all agree, which is the solution, or none helps. Where there is a
        kink, free samples change sides too often. Whether the objective fell.
        """
        if self.kink > 0.0:
            return False
        start, size, inner = self._objective(), float(self.K.diag().mean()) + self.K.shift, self._free()
        best, least, idle, a = (self.a, self.Ka), start, 0, self.a
        G = self.Ka - self.linear
        b = -G[inner].median() if self.tied and len(inner) else torch.zeros_like(G[0])
        for _ in range(MOST_EXCHANGES):
            p = a - (G + b) / size
            inside = (p > self.lower) & (p < self.upper)
            a = torch.clamp(torch.where(inside, a, p), self.lower, self.upper)
            free = inside.nonzero()[:, 0]
            if len(free) <= int(self.tied):
                break
            right = (self.linear - self._product(a))[free]
            d, b = self._solved(free, right, self.project.total - float(a.sum()))
            a[free] += d
            Ka = self._product(a)
            G = Ka - self.linear
            self.a = self._settled(a)
            agreed = bool((a == torch.clamp(a, self.lower, self.upper)).all())
            self.Ka = Ka if agreed else self._product(self.a)
            now = self._objective()
            idle = idle + 1 if now >= least else 0
            least, best = (now, (self.a, self.Ka)) if now < least else (least, best)
            if agreed or idle > IDLE_EXCHANGES:
                break
        self.a, self.Ka = best
        self.state = None
        return least < start

    def _settled(self, a: Any) -> Any:
        """A point moved into the box, its sum made right by samples that are free, if it can be."""
        a = torch.clamp(a, self.lower, self.upper)
        if not self.tied:
            return a
        room = torch.minimum(a - self.lower, self.upper - a) * (a != 0.0)
        share = (self.project.total - a.sum()) / room.sum().clamp(min=1e-300)
        return a + share * room if float(share.abs()) < 0.5 else self.project(a, None)

    def _objective(self) -> float:
        value = 0.5 * torch.dot(self.a, self.Ka) - torch.dot(self.a, self.linear)
        return float(value + self.kink * self.a.abs().sum())

    def newton(self) -> bool:
        """Newton steps on the face of the free samples, as far as the objective falls; whether it did."""
        gained = False
        for _ in range(MOST_FACTORS):
            free = self._free()
            if len(free) <= int(self.tied):
                break
            step = torch.zeros_like(self.a)
            step[free] = self._within(free, self.a[free] + self._direction(free)) - self.a[free]
            reach = self._line_search(step)
            gained |= reach > 0.0
            if reach < 1e-3 or reach == 1.0:
                break
        return gained and self._move(self.a)

    def interior(self, tol: float) -> bool:
        """The solution to a relative gap, whatever the conditioning; whether n allows it."""
        if len(self.a) > MOST_FREE:
            return False
        every = torch.arange(len(self.a), device=self.a.device)
        A = self.K.rows(every).double()
        A += self._constant(A)
        size = float(torch.maximum(self.upper, -self.lower) @ self.linear.abs()) or float(A.diagonal().mean())
        ridge = self._rounding(len(A)) * float(A.diagonal().mean())
        parts = (self.linear, self.lower, self.upper, self.kink, self.project.total, self.tied, ridge)
        found = Interior(A, *parts).solve(tol * size * 1e-2)
        return bool(torch.isfinite(found).all()) and self._move(self.project(found, None))

    def _rounding(self, n: int) -> float:
        """Eigenvalues below zero that rounding of the entries, and of a factor, may leave."""
        own = torch.finfo(self.K.like.dtype).eps
        return float(n**2 * torch.finfo(torch.float64).eps + (10.0 * n**0.5 * own if own > 1e-10 else 0.0))

    def _move(self, a: Any) -> bool:
        self.a, self.state = a, None
        self.Ka = self._product(a)
        return True

    def _constant(self, A: Any) -> float:
        """What makes S positive semidefinite again: the shift, or with a fixed sum anything of that size."""
        return float(A.diagonal().mean().abs()) if self.tied else self.K.shift

    def _within(self, free: Any, target: Any) -> Any:
        """The nearest point to a target at which free samples stay on their side of zero, if it is a kink."""
        a, lower, upper = self.a[free], self.lower[free], self.upper[free]
        if self.kink > 0.0:
            lower, upper = torch.where(a > 0.0, 0.0, lower), torch.where(a < 0.0, 0.0, upper)
        return BoxProjection(lower, upper, 0.0, float(a.sum()), self.tied)(target, None)

    def _free(self) -> Any:
        """Samples strictly inside their interval, of which zero is an end where there is a kink."""
        inside = (self.a > self.lower) & (self.a < self.upper)
        if self.kink > 0.0:
            inside &= self.a != 0.0
        return inside.nonzero()[:, 0]

    def _direction(self, free: Any) -> Any:
        """To the minimum over the free samples: K d + b = -G, sum(d) = 0 when tied."""
        G = (self.Ka - self.linear + self.kink * torch.sign(self.a))[free]
        return self._solved(free, -G, 0.0)[0]

    def _solved(self, free: Any, right: Any, total: float) -> tuple[Any, Any]:
        """d and b with K d + b = right on the free samples, sum(d) = total when tied, else b = 0."""
        sides = torch.stack([right, torch.ones_like(right)], dim=1)
        if len(free) > MOST_FREE:
            part = self.K.part(free)
            extra = torch.full_like(right, 1e-7 * (float(part.diag().mean()) + part.shift))
            x, ones = solve_shifted(part, extra, sides, SOLVE_TOL, most=SOLVE_STEPS).T
        else:
            A = self.K.block(free, free).double()
            A += self._constant(A)
            A.diagonal().add_(1e-7 * A.diagonal().mean())
            factor, failed = torch.linalg.cholesky_ex(A)
            if int(failed):
                return torch.zeros_like(right), torch.zeros_like(right[0])
            x, ones = torch.cholesky_solve(sides, factor).T
        b = (x.sum() - total) / ones.sum() if self.tied else torch.zeros_like(right[0])
        return x - b * ones, b

    def _line_search(self, step: Any) -> float:
        """Move along a step that stays inside, to the least value on it; the share of it that was taken."""
        Kstep = self._product(step)
        slope = torch.dot(self.Ka - self.linear, step)
        slope += self.kink * ((self.a + step).abs() - self.a.abs()).sum()
        curvature = torch.dot(step, Kstep)
        reach = float(torch.clamp(-slope / torch.clamp(curvature, min=1e-300), 0.0, 1.0))
        if reach > 0.0:
            whole = reach == 1.0
            self.a = self.a + step if whole else self.a + reach * step
            self.a = torch.clamp(self.a, self.lower, self.upper)
            self.Ka = self.Ka + reach * Kstep
        return reach

    @property
    def point(self) -> tuple[Any, Any]:
        """a and its product with K."""
        return self.a, self.Ka

    def gap(self) -> float:
        """The relative gap as `machine_gap` has it.

        A loss whose dual is linear on a box is C V = max_a a r - kink |a| over it, r = linear - f: so is what
        Fenchel's inequality leaves. A fixed sum other than zero is left to the host.
        """
        if self.project.total != 0.0:
            machine = self.machine(0)
            return machine_gap(self.problem, machine.alpha, machine.fitted)
        r = self.linear - self.Ka
        r = r - self._intercept(r) if self.tied else r
        losses = self.upper * (r - self.kink).clamp(min=0.0) - self.lower * (-r - self.kink).clamp(min=0.0)
        misfit = losses.sum() - torch.dot(self.a, r) + self.kink * self.a.abs().sum()
        primal = losses.sum() + 0.5 * torch.dot(self.a, self.Ka)
        found = torch.stack([misfit, primal]).cpu().numpy()
        return relative(float(found[0]), float(found[1]))

    def _intercept(self, r: Any) -> Any:
        """The b of least loss at r - b: the slope rises by an end of the interval at every r -+ kink."""
        places, order = torch.sort(torch.cat([r - self.kink, r + self.kink]))
        slopes = torch.cumsum(torch.cat([self.upper, -self.lower])[order], dim=0) - self.upper.sum()
        rounding = 1e-12 * (self.upper.sum() - self.lower.sum())
        edges = torch.searchsorted(slopes, torch.stack([-rounding, rounding]), right=True)
        return places[edges.clamp(max=len(places) - 1)].mean()

    def machine(self, n_iter: int) -> Machine:
        """The point on the host, its sum right to the last bit, and its predictions."""
        lower, upper = (bound[:, 0] for bound in self.problem.box())
        point, Ka = self.a.cpu().numpy(), self.Ka
        alpha = np.clip(point, lower, upper)
        if self.tied:
            alpha = self._with_sum(alpha, lower, upper)
        if np.abs(alpha - point).max() > MOVED * np.abs(alpha).max():
            Ka = Ka + self._product(self._tensor(alpha - point))
        fitted = Ka.cpu().numpy()[:, None]
        if self.tied:
            fitted = fitted + self.K.shift * alpha.sum()  # left out by `_product`
        return Machine(alpha[:, None], fitted, n_iter)

    def _with_sum(self, alpha: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The sum made right by free samples only: those at a bound, or at zero, stay there."""
        room = np.minimum(alpha - lower, upper - alpha) * (alpha != 0.0)
        missing = self.project.total - float(alpha.sum())
        if not room.sum() > 2.0 * abs(missing):
            return self.problem.feasible(alpha[:, None])[:, 0]
        return np.asarray(alpha + missing * room / room.sum())


#: multipliers tried at a time, and how often their interval is cut to one between two of them
TRIED, CUTS = 129, 3


class BoxProjection:
    """argmin_x 1/2 |x - v|^2 + step kink |x|_1,  lower <= x <= upper,  sum(x) = total when tied.

    The sum of x(mu) = clip(shrink(v - mu)) falls with the multiplier mu of the constraint: an
    interval around its root is cut `CUTS` times, all multipliers of a cut in one pass, and the sum
    is linear on what is left.

    Parameters
    ----------
    lower, upper : tensor of shape (n,)
    kink, total : float
    tied : bool
    """

    def __init__(self, lower: Any, upper: Any, kink: float, total: float, tied: bool) -> None:
        self.lower, self.upper, self.kink, self.total, self.tied = lower, upper, kink, total, tied
        self.shares = torch.linspace(0.0, 1.0, TRIED, device=lower.device, dtype=lower.dtype)

    def __call__(self, v: Any, step: Any) -> Any:
        """The projection of v; without a `step`, the kink is left out."""
        shrink = None if step is None or self.kink == 0.0 else self.kink * step
        if not self.tied:
            return self._point(v, shrink, self.lower, self.upper)
        mu = self._multiplier(v, shrink)
        return self._point(v - mu, shrink, self.lower, self.upper)

    def _multiplier(self, v: Any, shrink: Any) -> Any:
        """The mu at which the sum is right."""
        wide = torch.zeros_like(v[0]) if shrink is None else shrink
        low, high = (v - self.upper).min() - wide, (v - self.lower).max() + wide
        for _ in range(CUTS):
            tried = low + (high - low) * self.shares
            sums = self._sums(v, shrink, tried)
            # sums fall: the last one that is large enough, and the next
            place = ((sums >= self.total).sum() - 1).clamp(0, TRIED - 2)
            ends, edges = tried[place + self._pair], sums[place + self._pair]
            low, high = ends[0], ends[1]
        fall = edges[0] - edges[1]
        share = torch.where(fall > 0.0, (edges[0] - self.total) / fall, torch.zeros_like(fall))
        return low + share.clamp(0.0, 1.0).to(v.dtype) * (high - low)

    @property
    def _pair(self) -> Any:
        return torch.arange(2, device=self.lower.device)

    def _sums(self, v: Any, shrink: Any, tried: Any) -> Any:
        moved = v[None, :] - tried[:, None]
        return self._point(moved, shrink, self.lower, self.upper).sum(dim=1, dtype=torch.float64)

    @staticmethod
    def _point(v: Any, shrink: Any, lower: Any, upper: Any) -> Any:
        if shrink is not None:
            v = torch.sign(v) * torch.clamp(v.abs() - shrink, min=0.0)
        return torch.clamp(v, lower, upper)


#: steps recorded together
RECORDED = 2

Step = Callable[..., tuple[Any, ...]]


class Repeat:
    """Repeats state <- step(*state); on a GPU the steps are recorded once and replayed as a graph.

    Parameters
    ----------
    like : tensor
        On the device.
    """

    def __init__(self, like: Any) -> None:
        self.on_gpu = like.is_cuda
        self.graph: Any = None
        self.state: tuple[Any, ...] = ()

    def __call__(self, step: Step, state: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        """The state after so many steps (rounded up to whole recordings)."""
        if not self.on_gpu:
            for _ in range(count):
                state = step(*state)
            return state
        if self.graph is None:
            self._record(step, state)
        for held, value in zip(self.state, state, strict=True):
            held.copy_(value)
        for _ in range(-(-count // RECORDED)):
            self.graph.replay()
        return tuple(held.clone() for held in self.state)

    def _record(self, step: Step, state: tuple[Any, ...]) -> None:
        self.state = tuple(value.clone() for value in state)
        apart = torch.cuda.Stream()
        apart.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(apart):
            step(*self.state)  # libraries take their memory before the recording
        torch.cuda.current_stream().wait_stream(apart)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            new = self.state
            for _ in range(RECORDED):
                new = step(*new)
            for held, value in zip(self.state, new, strict=True):
                held.copy_(value)
