"""A primal-dual interior-point method for box programs on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._backend import torch

#: most steps, steps between two looks at the gap, and share of the way to the boundary that is taken
MOST_STEPS, LOOK, SHARE = 60, 5, 0.995


class Steps(NamedTuple):
    """A direction of the variables, their multipliers, and that of the sum."""

    x: Any
    z: Any
    w: Any
    b: Any


class Interior:
    """min_a 1/2 a' K a - linear' a + kink |a|_1,  lower <= a <= upper,  sum(a) = total when tied.

    Mehrotra's predictor-corrector steps, each with one Cholesky factor of I + D K D, D > 0 diagonal:
    their number hardly depends on the conditioning of K. With a kink, a = x_1 - x_2 with both of
    them from zero to a bound.

    Parameters
    ----------
    K : tensor of shape (n, n), double precision
    linear, lower, upper : tensor of shape (n,)
    kink, total : float
    tied : bool
    ridge : float, default=0.0
        Added to the diagonal of what is factored, where rounding may have left K indefinite.
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
        zero = torch.zeros_like(lower)
        split = kink > 0.0
        self.low = torch.stack([zero, zero]) if split else lower[None]
        self.high = torch.stack([upper, -lower]) if split else upper[None]
        self.sign = torch.tensor([[1.0], [-1.0]][: len(self.low)], dtype=K.dtype, device=K.device)

    def solve(self, tol: float) -> Any:
        """a at a complementarity gap of `tol`, those at a bound exactly there."""
        width = self.high - self.low
        x, b = self.low + 0.5 * width, torch.zeros((), dtype=self.K.dtype, device=self.K.device)
        level = float(self._slope(x, b).abs().mean()) or 1.0
        z, w = torch.full_like(x, level), torch.full_like(x, level)
        kept = (x, z, w)
        for step in range(MOST_STEPS):
            s, t = x - self.low, self.high - x
            if step % LOOK == 0:
                left = float((s * z + t * w).sum())
                kept = (x, z, w) if left < np.inf else kept  # a factor that failed gives NaN
                if not tol < left < np.inf:
                    break
            x, z, w, b = self._advance(x, z, w, b, s, t)
        return self._rounded(*kept, width)

    def _slope(self, x: Any, b: Any) -> Any:
        """Derivatives of the objective and b sum(a) in x."""
        a = (self.sign * x).sum(dim=0)
        return self.sign * (self.K @ a - self.linear + b) + self.kink

    def _advance(self, x: Any, z: Any, w: Any, b: Any, s: Any, t: Any) -> tuple[Any, Any, Any, Any]:
        """One predictor-corrector step."""
        residual = self._slope(x, b) - z + w
        missing = self.total - (self.sign * x).sum()
        theta = z / s + w / t
        room = (1.0 / theta).sum(dim=0)
        D = room.sqrt()
        A = self.K * D[:, None] * D
        A.diagonal().add_(1.0 + self.ridge * room)
        factor = torch.linalg.cholesky_ex(A)[0]
        ones = D * torch.cholesky_solve(D[:, None], factor)[:, 0]

        def direction(for_z: Any, for_w: Any) -> Steps:
            q = -residual + for_z / s - for_w / t
            h = (self.sign * q / theta).sum(dim=0)
            da = D * torch.cholesky_solve((D * h / room)[:, None], factor)[:, 0]
            db = (da.sum() - missing) / ones.sum() if self.tied else torch.zeros_like(missing)
            da = da - db * ones
            dx = (q - self.sign * ((h - da) / room)) / theta
            return Steps(dx, (for_z - z * dx) / s, (for_w + w * dx) / t, db)

        mu = ((s * z).sum() + (t * w).sum()) / (2 * x.numel())
        first = direction(-s * z, -t * w)
        far = self._reach(first, s, t, z, w)
        ahead = ((s + far * first.x) * (z + far * first.z)).sum()
        ahead = (ahead + ((t - far * first.x) * (w + far * first.w)).sum()) / (2 * x.numel())
        aim = mu * (ahead / mu) ** 3
        full = direction(aim - s * z - first.x * first.z, aim - t * w + first.x * first.w)
        reach = SHARE * self._reach(full, s, t, z, w)
        return x + reach * full.x, z + reach * full.z, w + reach * full.w, b + reach * full.b

    @staticmethod
    def _reach(step: Steps, s: Any, t: Any, z: Any, w: Any) -> Any:
        """Largest share of a step, up to 1, that keeps everything positive."""
        shares = [
            torch.where(change < 0.0, -value / change, torch.ones_like(value)).min()
            for value, change in ((s, step.x), (t, -step.x), (z, step.z), (w, step.w))
        ]
        return torch.stack(shares).min().clamp(max=1.0)

    def _rounded(self, x: Any, z: Any, w: Any, width: Any) -> Any:
        """a with variables nearer to a bound than its multiplier is to zero put onto the bound."""
        size = (z + w).mean() + 1e-300
        below, above = (x - self.low) / width, (self.high - x) / width
        x = torch.where((below < 1e-3) & (below < z / size), self.low, x)
        x = torch.where((above < 1e-3) & (above < w / size), self.high, x)
        return (self.sign * x).sum(dim=0)
