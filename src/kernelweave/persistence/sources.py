"""Where a loaded model takes kernel values from: its kernels with weight and its training rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import IntArray
from ..gram.sharing import Batch
from ..gram.sources import FeatureSource, KernelSource, StackSource
from ..gram.squares import SharedSquares
from ..kernels import RBF, Kernel
from ..kernels.base import as_numeric
from ..kernels.columns import as_table, take_columns
from .codec import Reader, Writer, count_of, entries, listed, pair_of
from .errors import ModelFileError


def write_source(source: KernelSource, kernels: Iterable[int], writer: Writer) -> dict[str, Any]:
    """A source with the training rows it still has, and some of its kernels."""
    head = {"names": writer.value(list(source.names)), "n_samples": int(source.n_samples)}
    if type(source) is StackSource:
        return {"stack": {**head, "support": writer.array(source.support)}}
    if type(source) is not FeatureSource:
        writer.refuse(f"kernel values come from a {type(source).__name__}", "fit with another engine")
    assert isinstance(source, FeatureSource)
    live = [[m, writer.value(source.kernels[m], f"kernel {source.names[m]!r}")] for m in kernels]
    return {"features": {**head, "rows": writer.value(source.X, "training rows"), "kernels": live}}


def read_source(json: Any, reader: Reader) -> Any:
    """A source that evaluates the kernels stored, and cannot train."""
    if isinstance(json, dict) and set(json) == {"stack"}:
        return _read_stack(json["stack"], reader)
    names, n_samples, rows, kernels = entries(
        *entries(json, "features"), "names", "n_samples", "rows", "kernels"
    )
    source = object.__new__(FeatureSource)
    source.names, source.n_samples = reader.value(names, list), count_of(n_samples)
    source.X, source._batch = reader.value(rows), None
    if len(getattr(source.X, "shape", ())) != 2:
        raise ModelFileError("it is damaged: its training rows are not a table.")
    size = len(source.names)
    pairs = map(pair_of, listed(kernels))
    source.kernels = LiveKernels(size, {kernel_index(m, size): reader.value(k, Kernel) for m, k in pairs})
    return source


class LiveKernels(Sequence[Any]):
    """The kernels with weight of a loaded model, at their places among all of them; None at the others.

    Those that are computed together are made from the bits of their columns when they are asked for.

    Parameters
    ----------
    size : int
        Number of kernels of the fit.
    kept : dict of int to Kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> list(LiveKernels(3, {1: Linear()}))
    [None, Linear(), None]
    """

    def __init__(self, size: int, kept: dict[int, Kernel]) -> None:
        self.size, self.kept = size, kept
        self.batch: Batch | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return [self[k] for k in range(*m.indices(self.size))]
        m = range(self.size)[m]
        return self.kept[m] if m in self.kept else self._together(m)

    def holds(self, m: int) -> bool:
        """Whether kernel m is there; does not make it."""
        return m in self.kept or self._place(m) is not None

    def _place(self, m: int) -> int | None:
        """The place of kernel m among those computed together."""
        if self.batch is None:
            return None
        k = int(np.searchsorted(self.batch.members, m))
        return k if k < len(self.batch.members) and self.batch.members[k] == m else None

    def _together(self, m: int) -> RBF | None:
        k = self._place(m)
        if k is None or self.batch is None:
            return None
        mask = np.unpackbits(self.batch.part.subsets[k], count=len(self.batch.columns), bitorder="little")
        kernel = RBF(float(self.batch.part.gammas[k]), columns=self.batch.columns[mask > 0].tolist())
        kernel.columns_, kernel.gamma_ = self.batch.columns[mask > 0], float(self.batch.part.gammas[k])
        return kernel


def _read_stack(json: Any, reader: Reader) -> StackSource:
    names, n_samples, support = entries(json, "names", "n_samples", "support")
    source = object.__new__(StackSource)
    source.names, source.n_samples = reader.value(names, list), count_of(n_samples)
    source.support, source._stack = reader.array(support, "i", 1), None
    return source


def n_rows(source: Any) -> int:
    """Training rows that a source still has."""
    return len(source.support) if isinstance(source, StackSource) else source.X.shape[0]


def kernel_index(m: Any, size: int) -> int:
    """A position among `size` kernels."""
    if count_of(m) >= size:
        raise ModelFileError(f"it refers to kernel {m} of {size}.")
    return m


def check_kernel(source: Any, m: int) -> None:
    """Refuse a kernel with weight that was not stored."""
    if isinstance(source, FeatureSource) and not source.kernels.holds(m):  # type: ignore[attr-defined]
        raise ModelFileError(f"it weighs kernel {m}, which is not there.")


def check_shape(array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise ModelFileError(f"it is damaged: coefficients have shape {array.shape} in place of {shape}.")


# -- Gaussian kernels computed together -------------------------------------------------------


def write_batch(source: Any, together: IntArray, writer: Writer) -> dict[str, Any]:
    """The kernels with a weight; the samples of all of them are rows of the source."""
    batch = source._batch
    arrays = (
        batch.members[together],
        batch.columns,
        batch.part.subsets[together],
        batch.part.gammas[together],
    )
    return dict(zip(("members", "columns", "subsets", "gammas"), map(writer.array, arrays), strict=True))


def read_batch(json: Any, source: Any, reader: Reader) -> None:
    """Give a source of features the kernels that it computes together."""
    members, columns, subsets, gammas = entries(json, "members", "columns", "subsets", "gammas")
    which, seen = reader.array(members, "i", 1), reader.array(columns, "i", 1)
    bits, widths = reader.array(subsets, "u", 2), reader.array(gammas, "f", 1)
    table = as_table(source.X)
    if sparse.issparse(table):
        raise ModelFileError("it is damaged: kernels on sparse rows are not computed together.")
    reader.spend(8 * table.shape[0] * len(seen) + 8 * bits.nbytes + which.nbytes)
    if len(seen) == 0 or not 0 <= seen.min() <= seen.max() < table.shape[1]:
        raise ModelFileError("it is damaged: a kernel sees columns that are not there.")
    check_shape(bits, (len(which), -(-len(seen) // 8)))
    check_shape(widths, (len(which),))
    # bits beyond the columns would make compiled loops read beyond their tables
    beyond = np.unpackbits(bits.astype(np.uint8, copy=False), axis=1, bitorder="little")[:, len(seen) :]
    if bits.dtype != np.uint8 or beyond.any() or len(which) == 0:
        raise ModelFileError("it is damaged: a kernel sees columns that are not there.")
    if (np.diff(which) <= 0).any() or which[0] < 0 or which[-1] >= len(source.names):
        raise ModelFileError("it is damaged: it weighs kernels that are not there.")
    batch = Batch(SharedSquares(as_numeric(take_columns(table, seen)), bits, widths), which, seen)
    source._batch = source.kernels.batch = batch
