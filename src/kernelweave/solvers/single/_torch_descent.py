"""Descent of a quadratic on a box, on a device: gradient, exchange, Newton and interior-point steps."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ...gram.torch.parts import loops_for
from ..certificate import relative
from ..problem import Problem
from . import _triton_box
from ._interior import Interior
from .base import Machine
from .torch_smooth import solve_shifted

#: steps of the power method
POWERS = 12

#: most free samples whose matrix is factored, and most factors of a round; with more samples the system is
#: solved by this many steps, to this residual
MOST_FREE, MOST_FACTORS, SOLVE_STEPS, SOLVE_TOL = 20_000, 3, 30, 1e-2

#: most exchanges of free and fixed samples, and most in a row that do not lower the objective
MOST_EXCHANGES, IDLE_EXCHANGES = 10, 1

#: share of the largest dual variable by which the others may move without a new product
MOVED = 1e-13


class DualBox(NamedTuple):
    """A linear term, and the range of the dual variables, as tensors in double precision: see `TorchBox`.

    Sums over a matrix cancel, so they are in double precision, whatever the precision of the matrix.
    """

    linear: Any
    lower: Any
    upper: Any
    kink: float
    total: float
    tied: bool

    @classmethod
    def of(cls, problem: Problem, device: Any) -> DualBox:
        """The box of a problem with one output."""
        linear, kink = problem.loss.linear_dual(problem.y)
        given = (problem.centred(linear), *problem.box())
        total = float(problem.loss.alpha_sum) if problem.fit_intercept else 0.0
        linear, lower, upper = (_double(v[:, 0], device) for v in given)
        return cls(linear, lower, upper, float(kink), total, problem.fit_intercept)

    def take(self, rows: Any) -> DualBox:
        """The box of some samples, if all others are at zero."""
        return self._replace(**{name: getattr(self, name)[rows] for name in ("linear", "lower", "upper")})


def _double(values: FloatArray, device: Any) -> Any:
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64), device=device)


class Descent:
    """A point of the box, its product with K, and ways down from it; all on the device of K.

    Parameters
    ----------
    K : Matrix
    box : DualBox
    alpha : ndarray or tensor of shape (n,)
        The point to start from.
    """

    def __init__(self, K: Any, box: DualBox, alpha: Any) -> None:
        self.K, self.box, (self.linear, self.lower, self.upper, self.kink, _, self.tied) = K, box, box
        self.project = BoxProjection(self.lower, self.upper, self.kink, box.total, self.tied)
        self.state: tuple[Any, ...] | None = None  # state of the gradient steps, until something else moves a
        self._seen: tuple[Any, ...] = (None,)  # the last point whose residual was computed
        self._settle(_double(alpha, K.like.device) if isinstance(alpha, np.ndarray) else alpha)

    def _settle(self, a: Any) -> None:
        """Move to a point, most of whose entries may be zero."""
        support = a.nonzero()[:, 0]
        self.a, self.Ka = a, self.K.multiply_from(support, a[support])
        if not self.tied:
            self.Ka = self.Ka + self.K.shift * a.sum()
        self.state = None

    def part(self, rows: Any) -> Descent:
        """The same on some samples, with all others at zero."""
        return Descent(self.K.part(rows), self.box.take(rows), self.a[rows])

    def take(self, rows: Any, part: Descent) -> None:
        """Move to the point of a part."""
        self._settle(torch.zeros_like(self.a).index_copy_(0, rows, part.a))

    def concerned(self, least: int) -> Any:
        """Samples that have a dual variable, and twice as many of the others, with the largest loss."""
        own = self.a != 0.0
        losses = torch.where(own, 0.0, self._losses(self._residual()[0]))
        most = max(2 * int(own.sum()), least)
        if int((losses > 0.0).sum()) > most:
            own[torch.topk(losses, most).indices] = True
        else:
            own |= losses > 0.0
        return own.nonzero()[:, 0]

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
        v = v - v.mean() if self.tied else v
        size = torch.linalg.vector_norm(v)
        for _ in range(POWERS):
            v = self._product(v / size)
            v = v - v.mean() if self.tied else v
            size = torch.linalg.vector_norm(v)
        return 1.05 * size + 1e-30

    def steps(self, count: int) -> None:
        """Accelerated projected gradient steps, restarted where they turn back; none waits for the host."""
        start = torch.stack([torch.ones_like(self.a[0]), torch.zeros_like(self.a[0])])
        state = self.state or (self.a, self.Ka, self.a, self.Ka, start)
        advance = self._advance if loops_for(self.a) is None else self._advance_compiled
        for _ in range(count):
            a, Ka = state[:2]
            new, sequence = advance(*state)
            state = (new, self._product(new), a, Ka, sequence)
        self.state = state
        self.a, self.Ka = state[:2]

    def _advance(self, a: Any, Ka: Any, before: Any, Kbefore: Any, sequence: Any) -> tuple[Any, Any]:
        """The next point, extrapolated along its last move, and t of Nesterov's sequence."""
        t = sequence[0]
        longer = 0.5 * (1.0 + torch.sqrt(1.0 + 4.0 * t * t))
        push = (t - 1.0) / longer
        y = a + push * (a - before)
        G = Ka + push * (Ka - Kbefore) - self.linear
        new = self.project(y - self.step * G, self.step)
        back = torch.dot(y - new, new - a) > 0.0
        return new, torch.where(back, torch.ones_like(t), longer)[None]

    def _advance_compiled(self, a: Any, Ka: Any, before: Any, Kbefore: Any, sequence: Any) -> Any:
        """The same in one launch; the next projection starts from the multiplier of the last."""
        box = (self.linear, self.lower, self.upper)
        return _triton_box.advance(a, Ka, before, Kbefore, *box, self._given, sequence, self.tied)

    @cached_property
    def _given(self) -> Any:
        """Step length, kink and sum."""
        return torch.cat([self.step.reshape(1), self.a.new_tensor([self.kink, self.box.total])])

    def exchange(self) -> bool:
        """Samples go to the end of their interval that they run into; the others solve K a + b = linear.

        Primal-dual active sets (Hintermueller, Ito & Kunisch 2003). With p = a - (G + b) / k, G the gradient
        and k about K_ii, samples whose p is outside their interval are fixed at its end, the others free;
        After some exchanges of the two either all agree, and this is the solution, or no exchange helps. With
        a kink, free samples change sides too often. Returns whether the objective fell.
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
            d, b = self._solved(free, right, self.box.total - float(a.sum()))
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
        """A point moved into the box; if possible, free samples correct its sum."""
        a = torch.clamp(a, self.lower, self.upper)
        if not self.tied:
            return a
        room = torch.minimum(a - self.lower, self.upper - a) * (a != 0.0)
        share = (self.box.total - a.sum()) / room.sum().clamp(min=1e-300)
        return a + share * room if float(share.abs()) < 0.5 else self.project(a, None)

    def _objective(self) -> float:
        value = 0.5 * torch.dot(self.a, self.Ka) - torch.dot(self.a, self.linear)
        return float(value + self.kink * self.a.abs().sum())

    def newton(self) -> bool:
        """Newton steps on the face of the free samples, as long as the objective falls; whether it fell."""
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
        """Solve to a relative gap, whatever the conditioning; whether n is small enough for it."""
        if len(self.a) > MOST_FREE:
            return False
        every = torch.arange(len(self.a), device=self.a.device)
        A = self.K.rows(every).double()
        A += self._constant(A)
        size = float(torch.maximum(self.upper, -self.lower) @ self.linear.abs()) or float(A.diagonal().mean())
        ridge = self._rounding(len(A)) * float(A.diagonal().mean())
        parts = (self.linear, self.lower, self.upper, self.kink, self.box.total, self.tied, ridge)
        found = Interior(A, *parts).solve(tol * size * 1e-2)
        return bool(torch.isfinite(found).all()) and self._move(self.project(found, None))

    def _rounding(self, n: int) -> float:
        """How far below zero rounding of the entries, and of a factor, may leave eigenvalues."""
        own = torch.finfo(self.K.like.dtype).eps
        return float(n**2 * torch.finfo(torch.float64).eps + (10.0 * n**0.5 * own if own > 1e-10 else 0.0))

    def _move(self, a: Any) -> bool:
        self.a, self.state = a, None
        self.Ka = self._product(a)
        return True

    def _constant(self, A: Any) -> float:
        """What makes S positive semidefinite again: the shift, or the mean diagonal if the sum is fixed."""
        return float(A.diagonal().mean().abs()) if self.tied else self.K.shift

    def _within(self, free: Any, target: Any) -> Any:
        """The point nearest to a target where free samples stay on their side of zero, if that is a kink."""
        a, lower, upper = self.a[free], self.lower[free], self.upper[free]
        if self.kink > 0.0:
            lower, upper = torch.where(a > 0.0, 0.0, lower), torch.where(a < 0.0, 0.0, upper)
        return BoxProjection(lower, upper, 0.0, float(a.sum()), self.tied)(target, None)

    def _free(self) -> Any:
        """Samples strictly inside their interval; if there is a kink, zero is an end of the interval."""
        inside = (self.a > self.lower) & (self.a < self.upper)
        if self.kink > 0.0:
            inside &= self.a != 0.0
        return inside.nonzero()[:, 0]

    def _direction(self, free: Any) -> Any:
        """The step to the minimum over the free samples: K d + b = -G, sum(d) = 0 when tied."""
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
        """Move along a step, staying inside, to the least value on it; the share of the step taken."""
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
        """The relative gap, as `machine_gap` defines it.

        A loss whose dual is linear on a box is C V = max_a a r - kink |a| over the box, r = linear - f; the
        slack in Fenchel's inequality follows from that. `Ka` is K a - shift sum(a) where the sum is fixed.
        """
        r, b = self._residual()
        losses = self._losses(r).sum()
        misfit = losses - torch.dot(self.a, r) + self.kink * self.a.abs().sum()
        total = self.box.total
        primal = losses + 0.5 * torch.dot(self.a, self.Ka) + total * (b - 0.5 * total * self.K.shift)
        found = torch.stack([misfit, primal]).cpu().numpy()
        return relative(float(found[0]), float(found[1]))

    def _residual(self) -> tuple[Any, Any]:
        """linear - f, and the intercept in f."""
        if self._seen[0] is not self.Ka:
            r = self.linear - self.Ka
            b = self._intercept(r) if self.tied else torch.zeros_like(r[0])
            self._seen = self.Ka, r - b, b
        return self._seen[1:]

    def _losses(self, r: Any) -> Any:
        return self.upper * (r - self.kink).clamp(min=0.0) - self.lower * (-r - self.kink).clamp(min=0.0)

    def _intercept(self, r: Any) -> Any:
        """The b with least loss at r - b: where the slope changes sign, or the middle of where it is 0."""
        rises, start, zeros = self._slopes
        places, order = torch.sort(r if self.kink == 0.0 else torch.cat([r - self.kink, r + self.kink]))
        edges = torch.searchsorted(torch.cumsum(rises[order], dim=0) - start, zeros, right=True)
        return places[edges.clamp(max=len(places) - 1)].mean()

    @cached_property
    def _slopes(self) -> tuple[Any, Any, Any]:
        """Rises of the slope in b at every r -+ kink, its first value, and the range that counts as 0."""
        rises = self.upper - self.lower
        zeros = 1e-12 * rises.sum() * rises.new_tensor([-1.0, 1.0])
        rises = rises if self.kink == 0.0 else torch.cat([self.upper, -self.lower])
        return rises, self.upper.sum() - self.box.total, zeros

    def machine(self, problem: Problem, n_iter: int) -> Machine:
        """The point on the host, with its sum right to the last bit, and its predictions."""
        lower, upper = (bound[:, 0] for bound in problem.box())
        point, Ka = self.a.cpu().numpy(), self.Ka
        alpha = np.clip(point, lower, upper)
        if self.tied:
            alpha = self._with_sum(problem, alpha, lower, upper)
        if np.abs(alpha - point).max() > MOVED * np.abs(alpha).max():
            Ka = Ka + self._product(_double(alpha - point, self.a.device))
        fitted = Ka.cpu().numpy()[:, None]
        if self.tied:
            fitted = fitted + self.K.shift * alpha.sum()  # left out by `_product`
        return Machine(alpha[:, None], fitted, n_iter)

    def _with_sum(
        self, problem: Problem, alpha: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> FloatArray:
        """Correct the sum by free samples only: samples at a bound, or at zero, stay there."""
        room = np.minimum(alpha - lower, upper - alpha) * (alpha != 0.0)
        missing = self.box.total - float(alpha.sum())
        if not room.sum() > 2.0 * abs(missing):
            return problem.feasible(alpha[:, None])[:, 0]
        return np.asarray(alpha + missing * room / room.sum())


#: multipliers tried at a time, and how often their interval is cut to the part between two of them
TRIED, CUTS = 129, 3


class BoxProjection:
    """argmin_x 1/2 |x - v|^2 + step kink |x|_1,  lower <= x <= upper,  sum(x) = total when tied.

    The sum of x(mu) = clip(shrink(v - mu)) falls with the multiplier mu of the constraint: an interval around
    the root is cut `CUTS` times, with all multipliers of a cut in one pass, and the sum is linear on the
    interval that is left.

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
        if loops_for(v) is not None:
            given = v.new_tensor([1.0, 0.0 if step is None else self.kink * float(step), self.total])
            return _triton_box.project(v, self.lower, self.upper, given, torch.zeros_like(given), self.tied)
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
