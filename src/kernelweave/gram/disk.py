"""The lower triangles of all Gram matrices in a file: as many as fit on disk."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ._files import map_triangles, temporary_triangles
from .blocks import Blocks
from .packed import PackedGram, triangle_size
from .single import SingleMatrix

#: what helps when the disk is full
REMEDY = "set TMPDIR to a folder on a larger disk, use fewer kernels, or gram='blocked'"

#: bytes of a file which the system is likely to keep in memory
KEPT = 1 << 28


class DiskGram(PackedGram):
    """`PackedGram` with its triangles in a file that is mapped into memory.

    A pass reads the file once, in order; what the system keeps of it in memory is memory that
    nobody else asks for. The file is in the folder for temporary files (TMPDIR) and is gone with
    the engine, unless the kernels are all of a `GramStore`, which is read where it lies.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    dtype : dtype, optional
        How entries are stored; the kernels' own precision by default. ``gram="disk"`` of the
        estimators stores float32.

    Examples
    --------
    >>> gram = DiskGram([np.eye(2), np.ones((2, 2))], dtype=np.float32)
    >>> gram.quad(np.array([1.0, 1.0]))
    array([2., 4.])
    >>> gram.nbytes  # in memory
    0
    """

    name = "disk"

    def _known(self, blocks: Blocks) -> tuple[FloatArray, IntArray] | None:
        return _as_stored(blocks)

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def portable(self) -> bool:  # type: ignore[override]
        """Whether the file has a name by which others find it."""
        return os.path.exists(getattr(self.triangles, "filename", ""))

    def __getstate__(self) -> dict[str, Any]:
        if not self.portable:
            raise TypeError("gram='disk' on a temporary file is of this process alone: share a GramStore.")
        found: Any = self.triangles  # whoever unpickles reads the same file
        where = (found.filename, found.shape, found.dtype.str, found.offset)
        return {**self.__dict__, "triangles": where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.triangles = map_triangles(*state["triangles"])

    def _empty(self, n_kernels: int, n_samples: int, dtype: Any) -> FloatArray:
        return temporary_triangles((n_kernels, triangle_size(n_samples)), dtype, REMEDY)

    def _many(self, n_rows: int) -> bool:
        if self.triangles.nbytes <= KEPT:
            return super()._many(n_rows)
        # an entry beyond the diagonal costs a page: a few columns touch as much as there is
        return n_rows * mmap.PAGESIZE > self.triangles.itemsize * self.n_samples / 2


def _as_stored(blocks: Blocks) -> tuple[FloatArray, IntArray] | None:
    """Triangles of a store, and which of them these kernels are; None unless they are all as stored."""
    first = blocks.parts[0]
    store = first.stack if isinstance(first, SingleMatrix) else None
    triangles = getattr(store, "triangles", None)
    if triangles is None or blocks.roots is not None or blocks.means is not None:
        return None
    places = np.empty(blocks.n_kernels, dtype=int)
    for part, members in zip(blocks.parts, blocks.members, strict=True):
        if not (isinstance(part, SingleMatrix) and part.stack is store):
            return None
        places[members] = part.m
    return triangles, places
