"""The nearest point of a box with a fixed sum, on a device and without waiting for the host."""

from __future__ import annotations

from typing import Any

from ..._backend import torch

#: multipliers tried at a time, and how often their interval is cut to one between two of them
TRIED, CUTS = 33, 4


class Projection:
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
