"""A primal active-set method for small box programs: exact, from a point that is nearly right."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ._box_qp import BoxQP


class ActiveSet:
    """Which entries are free, each between its bounds (or between a bound and the kink at zero).

    Every round moves the free entries towards the minimum over them, as far as all stay
    inside; an entry that is stopped is held, and at the minimum the pair of entries that gains
    most is freed. The objective never rises, and the point stays feasible.

    Parameters
    ----------
    qp : BoxQP
    a : ndarray of shape (n,)
        A feasible point.
    """

    def __init__(self, qp: BoxQP, a: FloatArray) -> None:
        self.qp, self.a = qp, a.copy()
        kinked = qp.kink > 0.0
        self.lower = np.where(kinked & (a > 0.0), 0.0, qp.lower)
        self.upper = np.where(kinked & (a < 0.0), 0.0, qp.upper)
        self.free = (a > self.lower) & (a < self.upper) & ~(kinked & (a == 0.0))
        rounding = 1e-14 * float(qp.K.diagonal().max()) * self._size()
        self.slack = max(1e-10 * qp.size(a, qp.K @ a - qp.linear), rounding)
        self.n_rounds = 0

    def run(self, max_rounds: int) -> FloatArray | None:
        """The exact solution, or None when it is not reached in `max_rounds` or by rounding."""
        total = float(self.a.sum())
        for self.n_rounds in range(1, max_rounds + 1):
            if self._move() and not self._release():
                kept = not self.qp.tied or abs(float(self.a.sum()) - total) <= 1e-12 * self._size()
                return self.a if kept else None
        return None

    def _size(self) -> float:
        return float(np.abs(self.a).sum())

    def _move(self) -> bool:
        """Towards the minimum over the free entries; whether it was reached."""
        free = np.flatnonzero(self.free)
        if len(free) <= int(self.qp.tied):
            return True
        step = self.qp.minimum_over(free, self.a) - self.a[free]
        if not np.isfinite(step).all():
            return True
        ends = np.where(step > 0.0, self.upper[free], self.lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step == 0.0, np.inf, (ends - self.a[free]) / step)
        t = min(1.0, float(reach.min()))
        self.a[free] += t * step
        stopped = reach <= t if t < 1.0 else np.zeros(len(free), dtype=bool)
        self.a[free[stopped]] = ends[stopped]
        self.free[free[stopped]] = False
        return not stopped.any()

    def _release(self) -> bool:
        """Free the entries that gain most by moving up and down; whether there are any."""
        rise, fall = self.qp.gains(self.a)
        up, down = int(rise.argmax()), int(fall.argmax())
        gain = rise[up] + fall[down] if self.qp.tied else max(rise[up], fall[down])
        if not gain > self.slack:
            return False
        before = self.free.copy()
        if self.qp.tied or rise[up] >= fall[down]:
            self._open(up, upwards=True)
        if self.qp.tied or fall[down] > rise[up]:
            self._open(down, upwards=False)
        return bool((self.free != before).any())

    def _open(self, i: int, upwards: bool) -> None:
        self.free[i] = True
        if self.qp.kink > 0.0 and self.a[i] == 0.0:
            self.lower[i] = 0.0 if upwards else self.qp.lower[i]
            self.upper[i] = self.qp.upper[i] if upwards else 0.0
