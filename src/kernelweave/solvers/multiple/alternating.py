"""Alternating minimisation over machine and weights, accelerated."""

from __future__ import annotations

import numpy as np

from ..._typing import FloatArray
from ...gram import Gram
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..problem import Problem
from ..single import SingleSolver


class Alternating(MKLSolver):
    """Machine at fixed weights, then the closed-form weights of its norms, in turn.

    Each half-step minimises the joint objective, which therefore never rises; for the lp norm
    with p > 1 every limit point is optimal (Kloft et al. 2011, Algorithm 1 and Theorem 4).
    Two things make it fast: machines are solved only as well as the current gap deserves, and
    the fixed point of log d -> log weights(norms(d)) is extrapolated from the last iterates
    (Anderson acceleration), falling back to the plain step whenever the objective rises.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    memory : int, default=5
        Iterates used to extrapolate; 0 is the plain algorithm.
    """

    name = "alternating"

    def __init__(self, single: str | SingleSolver = "auto", memory: int = 5) -> None:
        super().__init__(single)
        self.memory = memory

    def can_handle(self, regularizer: Regularizer) -> bool:
        return not getattr(regularizer, "sparse", False)

    def init(self, problem: Problem, gram: Gram, regularizer: Regularizer, norms: FloatArray) -> FloatArray:
        self._points = [_log(norms)]  # log norms whose weights were tried
        self._images: list[FloatArray] = []  # log norms the machine gave back
        self._best = np.inf  # upper bound of the lowest objective so far
        self._leapt = False  # whether the last proposal was more than the plain step
        return super().init(problem, gram, regularizer, norms)

    def next_weights(self, state: State) -> FloatArray:
        price = 0.5 * self._regularizer.price(state.weights)
        if self._leapt and state.certificate.machine_dual + price > self._best:
            # certainly worse than where it leapt from: take the plain step from there, start afresh
            self._points, self._images = self._points[-2:-1], self._images[-1:]
        else:
            self._best = min(self._best, state.certificate.machine_primal + price)
            self._images = [*self._images, _log(state.certificate.norms)]
        proposal = extrapolate(self._points, self._images)
        self._leapt = len(self._images) > 1
        self._points = _last([*self._points, proposal], self.memory + 1)
        self._images = _last(self._images, self.memory)
        return self._regularizer.weights(np.exp(proposal - proposal.max()))


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


def _last(items: list[FloatArray], count: int) -> list[FloatArray]:
    return items[max(0, len(items) - count) :]


def _log(norms: FloatArray) -> FloatArray:
    return np.log(np.maximum(norms, 1e-100 * max(float(norms.max()), 1e-200)))
