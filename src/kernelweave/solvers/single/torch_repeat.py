"""Many small steps on a device without waiting for the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._backend import torch

#: steps recorded together
RECORDED = 5

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
