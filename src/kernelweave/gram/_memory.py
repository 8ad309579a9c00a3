"""Memory that is used in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

#: by how much memory may be larger than what it is first used for, as the next use may need a little more
SPARE = 1 / 64


class Memory:
    """New arrays in the memory of earlier ones that nobody refers to any more.

    Memory that the system has to find first may cost more than what is written to it.

    Examples
    --------
    >>> memory = Memory()
    >>> first = memory.empty((2, 3), np.dtype(float))
    >>> place = first.ctypes.data
    >>> part = first[1]
    >>> del first
    >>> memory.empty((2, 3), np.dtype(float)).ctypes.data == place  # `part` still refers to it
    False
    >>> del part
    >>> memory.empty((3, 2), np.dtype(float)).ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._free: list[npt.NDArray[np.uint8]] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[Any]:
        """Like `numpy.empty`."""
        size = int(np.prod(shape)) * dtype.itemsize
        try:
            block = self._free.pop()
        except IndexError:
            block = np.empty(0, np.uint8)
        if len(block) < size:
            block = np.empty(size + int(SPARE * size), np.uint8)
        return np.asarray(_Loan(block, self._free))[:size].view(dtype).reshape(shape)

    def __reduce__(self) -> tuple[Any, ...]:  # a copy in another process has memory of its own
        return Memory, ()


class _Loan:
    """What all arrays in some memory refer to; the memory is free once none is left."""

    def __init__(self, block: npt.NDArray[np.uint8], free: list[npt.NDArray[np.uint8]]) -> None:
        self._block, self._free = block, free
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        self._free.append(self._block)
