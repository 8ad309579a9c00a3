"""A primal-dual interior-point method for box programs, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..._backend import is_tensor, torch

#: most steps, and share of the way to the boundary that is taken
MOST_STEPS, SHARE = 60, 0.995

#: after this many looks in a row that find more than this share of the least gap, only rounding is left
PROGRESS, MOST_IDLE = 0.9, 5

#: width given to an empty part of a box, as a share of the widest part
NARROW = 1e-15

#: steps between two looks at the gap: on a device every look waits for it
LOOK_HOST, LOOK_DEVICE = 1, 5


class Steps(NamedTuple):
    """A direction of the variables, of their multipliers, and of the multiplier of the sum."""

    x: Any
    z: Any
    w: Any
    b: Any


class Interior:
    """min_a 1/2 a' K a - linear' a + kink |a|_1,  lower <= a <= upper,  sum(a) = total when tied.

    Mehrotra's predictor-corrector steps, each with one Cholesky factor of I + D K D, D > 0 diagonal: their
    number hardly depends on the conditioning of K. With a kink, a = x_1 - x_2, both between zero and a bound.

    Parameters
    ----------
    K : array or tensor of shape (n, n), double precision
    linear, lower, upper : array or tensor of shape (n,)
    kink, total : float
    tied : bool
    ridge : float, default=0.0
        Added to the diagonal of the factored matrix, if rounding may have left K indefinite.

    Examples
    --------
    >>> one = np.ones(2)
    >>> Interior(np.eye(2), np.array([3.0, 0.5]), 0.0 * one, one, 0.0, 0.0, False).solve(1e-9).round(6)
    array([1. , 0.5])
    """

    def __init__(
        self,
        K: Any,
        linear: Any,
        lower: Any,
        upper: Any,
        kink: float,
        total: float,
        tied: bool,
        ridge: float = 0.0,
    ) -> None:
        self.K, self.linear, self.kink, self.total, self.tied = K, linear, kink, total, tied
        self.ridge = ridge
        self.xp = xp = torch if is_tensor(K) else np
        one, split = xp.ones_like(lower[:1]), kink > 0.0
        self.low = xp.stack([0.0 * lower, 0.0 * lower]) if split else lower[None]
        self.high = xp.stack([upper, -lower]) if split else upper[None]
        if split:  # one part of a one-sided box is empty and has no interior: it gets a tiny one
            self.high = xp.where(self.high > 0.0, self.high, NARROW * self.high.max())
        self.sign = xp.stack([one, -one]) if split else one[None]

    @np.errstate(all="ignore")
    def solve(self, tol: float) -> Any:
        """a at a complementarity gap of `tol`, with entries put on bounds; `inside` is a before that."""
        width, look = self.high - self.low, LOOK_DEVICE if is_tensor(self.K) else LOOK_HOST
        x, b = self.low + 0.5 * width, 0.0 * self.low.sum()
        level = float(abs(self._slope(x, b)).mean()) or 1.0
        z, w = self.xp.full_like(x, level), self.xp.full_like(x, level)
        kept, least, idle = (x, z, w), np.inf, 0
        for step in range(MOST_STEPS):
            s, t = x - self.low, self.high - x
            if step % look == 0:
                left = float((s * z + t * w).sum())  # NaN after a factor that failed
                kept = (x, z, w) if left < least else kept
                idle = 0 if left < PROGRESS * least else idle + 1
                least = min(left, least)
                if not tol < left < np.inf or idle >= MOST_IDLE:
                    break
            x, z, w, b = self._advance(x, z, w, b, s, t)
        self.inside = (self.sign * kept[0]).sum(axis=0)
        return self._rounded(*kept, width)

    def _slope(self, x: Any, b: Any) -> Any:
        """Derivatives in x of the objective plus b sum(a)."""
        a = (self.sign * x).sum(axis=0)
        return self.sign * (self.K @ a - self.linear + b) + self.kink

    def _advance(self, x: Any, z: Any, w: Any, b: Any, s: Any, t: Any) -> tuple[Any, Any, Any, Any]:
        """One predictor-corrector step."""
        residual = self._slope(x, b) - z + w
        missing = self.total - (self.sign * x).sum()
        theta = z / s + w / t
        room = (1.0 / theta).sum(axis=0)
        D = self.xp.sqrt(room)
        A = self.K * D[:, None] * D
        solve = _inverse(A, 1.0 + self.ridge * room)
        ones = D * solve(D)

        def direction(for_z: Any, for_w: Any) -> Steps:
            q = -residual + for_z / s - for_w / t
            h = (self.sign * q / theta).sum(axis=0)
            da = D * solve(D * h / room)
            db = (da.sum() - missing) / ones.sum() if self.tied else 0.0 * missing
            da = da - db * ones
            dx = (q - self.sign * ((h - da) / room)) / theta
            return Steps(dx, (for_z - z * dx) / s, (for_w + w * dx) / t, db)

        mu, count = ((s * z).sum() + (t * w).sum()), 2 * len(x) * x.shape[1]
        first = direction(-s * z, -t * w)
        far = self._reach(first, s, t, z, w)
        ahead = ((s + far * first.x) * (z + far * first.z)).sum()
        ahead = ahead + ((t - far * first.x) * (w + far * first.w)).sum()
        aim = mu / count * (ahead / mu) ** 3
        full = direction(aim - s * z - first.x * first.z, aim - t * w + first.x * first.w)
        reach = SHARE * self._reach(full, s, t, z, w)
        return x + reach * full.x, z + reach * full.z, w + reach * full.w, b + reach * full.b

    def _reach(self, step: Steps, s: Any, t: Any, z: Any, w: Any) -> Any:
        """Largest share of a step, up to 1, that keeps everything positive."""
        fall = self.xp.stack([-step.x / s, step.x / t, -step.z / z, -step.w / w]).max()
        return 1.0 / self.xp.where(fall > 1.0, fall, self.xp.ones_like(fall))

    def _rounded(self, x: Any, z: Any, w: Any, width: Any) -> Any:
        """a with each variable put onto a bound if it is nearer to it than the multiplier is to zero."""
        size = (z + w).mean() + 1e-300
        below, above = (x - self.low) / width, (self.high - x) / width
        x = self.xp.where((below < 1e-3) & (below < z / size), self.low, x)
        x = self.xp.where((above < 1e-3) & (above < w / size), self.high, x)
        return (self.sign * x).sum(axis=0)


def _inverse(A: Any, diagonal: Any) -> Callable[[Any], Any]:
    """The map v -> (A + diag(diagonal))^-1 v, by Cholesky; A is overwritten, and NaN marks a failure."""
    if is_tensor(A):
        A.diagonal().add_(diagonal)
        factor = torch.linalg.cholesky_ex(A)[0]
        return lambda v: torch.cholesky_solve(v[:, None], factor)[:, 0]
    A.flat[:: len(A) + 1] += diagonal
    try:
        found = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return lambda v: np.full_like(v, np.nan)
    return lambda v: cho_solve(found, v, check_finite=False)
