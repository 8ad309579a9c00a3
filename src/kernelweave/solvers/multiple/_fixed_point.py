"""Fixed-point solvers: norms give weights, weights give a machine, the machine gives norms."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..run import Run
from ..single import SingleSolver

#: a step is slow when this share of the gap is left after it; and gaps that are near enough for Newton steps
SLOW, NEAR = 0.3, 0.3

#: most that log norms may change by more than the plain step: what is all but zero is slow to return
LEAP = 4.0

#: share of the largest norm from which plain steps start, where others led astray
LEAST = 1e-3


class FixedPoint(MKLSolver):
    """Iterates a map of log norms to log norms, extrapolated from the last iterates.

    A subclass says which norms (`image`), which weights belong to them (`weights_of`), and when
    an extrapolated step was a mistake (`is_worse`); the plain step is then taken instead.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5
        Iterates used to extrapolate (Anderson acceleration); 0 is the plain iteration.
    """

    def __init__(self, single: str | SingleSolver = "auto", memory: int = 5) -> None:
        super().__init__(single)
        self.memory = memory

    def successor(self, run: Run) -> FixedPoint | None:
        """The plain iteration, which converges; nothing after that."""
        return type(self)(self.single, memory=0) if self.memory > 0 else None

    @abstractmethod
    def image(self, state: State) -> FloatArray:
        """The norms that the machine of `state` gives back."""

    @abstractmethod
    def weights_of(self, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        """The weights that belong to norms."""

    @abstractmethod
    def is_worse(self, run: Run, state: State) -> bool:
        """Whether `state` is certainly worse than the best one so far; remembers it if not."""

    def safe(self, log_norms: FloatArray) -> FloatArray:
        """Log norms kept where their weights are safe to try.

        They are relative to the largest where weights depend on ratios only, as do then all steps.
        """
        return log_norms - log_norms.max() if self._only_ratios else log_norms

    def newton(self, run: Run, state: State) -> FloatArray | None:
        """(I - J)^-1 of the map of log norms at `state`, where steps are slow; None to do without."""
        return None

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        # whether the norms n and 2 n have the same weights, as with a constraint: no unit enters
        some = np.linspace(1.0, 2.0, len(norms))
        once, twice = (self.weights_of(run.regularizer, size * some) for size in (1.0, 2.0))
        self._only_ratios = np.allclose(once, twice, rtol=1e-6)
        self._points = [self.safe(_log(norms))]  # log norms whose weights were tried
        self._images: list[FloatArray] = []  # where the steps from them lead
        self._leapt = False  # whether the last proposal was more than the plain step
        self._before = np.inf  # residual of the last iterate
        self._from = self._plain = self._points[0]  # where the last step started, and its plain end
        self._newton: FloatArray | None = None  # what a residual is multiplied with; nothing: the plain step
        return self.weights_of(run.regularizer, np.exp(self._points[0]))

    def next_weights(self, run: Run, state: State) -> FloatArray:
        if self.is_worse(run, state) and self._leapt:
            # take the plain step from where it leapt, and start afresh
            self._points, self._images, self._newton = [self._from], [self._plain], None
        else:
            self._from, self._plain = self._points[-1], self.safe(_log(self.image(state)))
            slow = SLOW * self._before < state.residual < NEAR
            newton = self.newton(run, state) if slow else None
            if newton is not None:  # Newton steps from here on, as the last step closed little of the gap
                self._newton, self._points, self._images = newton, self._points[-1:], []
            step = self._plain - self._from
            far = self._plain if self._newton is None else self._from + self._newton @ step
            self._images = [*self._images, far]
        self._before = state.residual
        leap = extrapolate(self._points, self._images) - self._plain
        proposal = self.safe(self._plain + np.clip(leap, -LEAP, LEAP))
        self._leapt = len(self._images) > 1 or self._newton is not None
        self._points = [*self._points, proposal][-1 - self.memory :]
        self._images = self._images[-self.memory :] if self.memory else []
        return self.weights_of(run.regularizer, np.exp(np.clip(proposal, -200.0, 200.0)))


def extrapolate(points: list[FloatArray], images: list[FloatArray]) -> FloatArray:
    """Anderson's step for a fixed point of `image(point)`.

    The affine combination of past images whose residuals image - point combine to the least
    length (Walker & Ni 2011); with one image, that image.
    """
    Y = np.array(images)
    residuals = Y - np.array(points)
    changes = np.diff(residuals, axis=0)
    if len(changes) == 0:
        return Y[-1]
    mix = np.linalg.lstsq(changes.T, residuals[-1], rcond=1e-8)[0]
    return Y[-1] - mix @ np.diff(Y, axis=0)


def _log(norms: FloatArray) -> FloatArray:
    return np.log(np.maximum(norms, 1e-80 * max(float(norms.max()), 1e-80)))
