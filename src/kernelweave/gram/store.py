"""Kernel matrices in a file, computed once and read by every fit that follows."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._container import (
    STORE,
    ContainerError,
    Head,
    Layout,
    checksum,
    head_bytes,
    opened,
    read_head,
    replacing,
    sweep,
)
from .._typing import FloatArray, IntArray
from ..kernels import as_views, resolve_kernels
from ..kernels.columns import as_table
from .blocks import normalised
from .choice import show_bytes
from .dictionary import check_parts, with_variance
from .packed import Mapped, map_triangles, pack, triangle_size
from .sources import FeatureSource, KernelSource, StackSource
from .stack import KernelStack, as_stack

ENTRY = np.dtype("<f4")

ANEW = "build it again with GramStore.build"

#: error numbers of a file system that cannot reserve room
NOT_KNOWN = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)


class Triangle:
    """A symmetric matrix whose lower triangle is stored, row after row.

    Parameters
    ----------
    triangle : ndarray of shape (n (n + 1) / 2,)
    n : int

    Examples
    --------
    >>> Triangle(np.array([1.0, 2.0, 3.0]), 2).entries(np.array([0, 1]), np.array([1]))
    array([[2.],
           [3.]])
    """

    def __init__(self, triangle: FloatArray, n: int) -> None:
        self.triangle, self.shape, self.dtype, self.nbytes = triangle, (n, n), triangle.dtype, 0

    def entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """K[np.ix_(rows, columns)], reading no more than that."""
        from ._matrix_loops import entries

        out = np.empty((len(rows), len(columns)), self.dtype)
        entries(self.triangle, rows, columns, out)
        return out

    def pairs(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """K[rows, columns]."""
        i, j = np.maximum(rows, columns), np.minimum(rows, columns)
        return np.asarray(self.triangle[i * (i + 1) // 2 + j])


class GramStore(KernelStack):
    """M kernel matrices in a file, read piece by piece as fits ask for them.

    For repeated fits when the matrices fit on disk but not in memory. `GramStore.build` computes them once,
    in single precision and only the lower triangles, 2 M n (n + 1) bytes. A store is a `KernelStack`: pass
    it, or rows and columns of it, as ``X`` to an estimator with ``kernels="precomputed"``, to scikit-learn's
    model selection or to `MKLClassifierCV`. Pickling stores the path, so that the workers of a search read
    the same file.

    Parameters
    ----------
    path : str or path
        A file that `GramStore.build` wrote.
    verify : bool, default=True
        Whether to compare the checksum of every kernel, which reads the file once.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of the kernels.
    shape : tuple
        (n_rows, n_columns, M).
    fingerprint : str
        Differs between stores of different matrices or names.

    Raises
    ------
    ValueError
        If the file is damaged, unfinished, not a store, or of a newer format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import kernelweave as kw
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.kernels import bandwidths
    >>> X, y = load_iris(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = kw.GramStore.build(pathlib.Path(folder.name) / "iris.gram", bandwidths(3), X)
    >>> store
    GramStore('iris.gram', shape=(150, 150, 3))
    >>> [kw.MKLClassifier("precomputed", C=C).fit(store, y).score(store, y) > 0.9 for C in (1.0, 10.0)]
    [True, True]
    >>> folder.cleanup()
    """

    matrices: list[Any]
    names: list[str]

    def __init__(self, path: str | os.PathLike[str], verify: bool = True) -> None:
        self.path = Path(path).resolve()
        head, triangles = _open(self.path)
        if verify:
            _check_triangles(self.path, head, triangles)
        self.names, n = head.content["names"], head.content["n_samples"]
        known = json.dumps([head.content, [layout.checksum for layout in head.layouts]])
        self.fingerprint = hashlib.sha256(known.encode()).hexdigest()[:16]
        self.matrices = [Triangle(triangle, n) for triangle in np.asarray(triangles)]
        self._triangles, self._rows, self._columns = triangles, None, None

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True) -> GramStore:
        """The store in a file; see the parameters of the class."""
        return cls(path, verify)

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        kernels: Any,
        X: Any,
        *,
        sample_weight: FloatArray | None = None,
        normalize: str | None = None,
    ) -> GramStore:
        """Compute kernels on all pairs of samples, and store them.

        The file is written under another name in the same folder and then moved into place, so an interrupted
        build leaves the earlier file as it was.

        Parameters
        ----------
        path : str or path
            By convention it ends in ``.gram``. An existing file is replaced.
        kernels : list, dict, kernel, family or str
            As in `MKLClassifier`; "precomputed" stores the matrices given as `X`.
        X : array-like, sparse matrix, DataFrame or KernelStack
        sample_weight : array-like of shape (n,), optional
            Used for kernel parameters and normalisations that are taken from the data.
        normalize : {"variance", "dimension", "spherical", "trace", "center"} or None, default=None
            Stores normalised kernels, with constants from all samples. By default kernels are stored as they
            are, and estimators normalise them on their training samples, which is what cross-validation
            needs. "spherical" is possible only here, since it needs k(x, x) of test samples.

        Returns
        -------
        store : GramStore
        """
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        source, target = _source(kernels, X, weight), Path(path).resolve()
        raw = source.blocks()
        check_parts(source, raw)
        blocks, rules = normalised(raw, normalize, weight)
        scales = np.array([rule.scale_ for rule in rules])
        with_variance(scales, source.names)
        with _writing(target, source.names, source.n_samples) as triangles:
            pack(blocks, triangles)
            for triangle, scale in zip(triangles, scales, strict=True):
                if scale != 1.0:
                    triangle *= scale
        return cls(target, verify=False)

    @property
    def triangles(self) -> FloatArray | None:
        """All matrices as they are in the file, shape (M, n (n + 1) / 2); None for a part of the samples."""
        return self._triangles if self._rows is None and self._columns is None else None

    @property
    def whole(self) -> bool:
        """False: `matrix` always makes a new array."""
        return False

    def verify(self) -> None:
        """Raise a ValueError unless every kernel in the file has its checksum."""
        _check_triangles(self.path, *_open(self.path))

    def __repr__(self) -> str:
        return f"GramStore({self.path.name!r}, shape={self.shape})"

    def __getitem__(self, key: Any) -> GramStore:
        part = super().__getitem__(key)
        assert isinstance(part, GramStore)
        part.path, part.fingerprint, part._triangles = self.path, self.fingerprint, self._triangles
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (os.fspath(self.path), self.fingerprint, self._rows, self._columns)

    def matrix(self, m: int) -> FloatArray:
        """The part of matrix m that this container shows, as a new array."""
        found: FloatArray = self.matrices[m].entries(*self._shown())
        return found

    def diagonal(self, m: int) -> FloatArray:
        found: FloatArray = self.matrices[m].pairs(*self._shown())
        return found

    def _shown(self) -> Sequence[IntArray]:
        """Rows and columns as indices."""
        sizes = zip(self.shape, (self._rows, self._columns), strict=False)
        return [np.arange(size) if known is None else known for size, known in sizes]


def _source(kernels: Any, X: Any, weight: FloatArray | None) -> KernelSource:
    if isinstance(kernels, str) and kernels == "precomputed":
        return StackSource(as_stack(X))
    table = as_table(as_views(X))
    return FeatureSource(resolve_kernels(kernels, table), table, weight)


def _reopened(path: str, fingerprint: str, rows: IntArray | None, columns: IntArray | None) -> GramStore:
    """The part of a store that was pickled."""
    store = GramStore(path, verify=False)
    if store.fingerprint != fingerprint:
        raise ValueError(
            f"{path!r} holds other kernel matrices than the store that was pickled: build it again, or "
            "pickle the new store."
        )
    store._rows, store._columns = rows, columns
    return store


# -- the file: the lower triangles, kernel after kernel, row after row, in single precision --------


@contextlib.contextmanager
def _writing(path: Path, names: list[str], n_samples: int) -> Iterator[Mapped]:
    """Triangles to fill; they become the file `path` if nothing fails."""
    content = {"n_samples": n_samples, "names": list(names)}
    layouts = [Layout(ENTRY.str, "C", [triangle_size(n_samples)]) for _ in names]
    start = len(head_bytes(STORE, content, layouts))
    size = start + sum(layout.n_bytes for layout in layouts)
    _check_disk(path.parent, size)
    sweep(path)
    with replacing(path) as file:
        _reserve(file.fileno(), size)
        triangles = map_triangles(file.name, (len(names), triangle_size(n_samples)), ENTRY, start, mode="r+")
        yield triangles
        for name, triangle in zip(names, triangles, strict=True):
            if not np.isfinite(triangle.sum(dtype=np.float64)):
                raise ValueError(
                    f"kernel {name!r} has NaN or infinite entries in single precision: scale or fill it."
                )
        triangles.flush()
        sealed = [
            layout._replace(checksum=checksum(triangle))
            for layout, triangle in zip(layouts, triangles, strict=True)
        ]
        # a file without its head is not a store, so the head is written after everything else
        file.write(head_bytes(STORE, content, sealed))


def _check_disk(folder: Path, needed: int) -> None:
    """Raise unless a folder has room for this many bytes."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"kernel matrices need {needed} bytes ({show_bytes(needed)}) of disk, and {os.fspath(folder)!r} "
            f"has {show_bytes(free)} left: choose a path on a larger disk, or store fewer kernels or "
            "samples.",
        )


def _reserve(descriptor: int, size: int) -> None:
    """Give a file its size and reserve the room: a mapped file with holes crashes when the disk is full."""
    os.truncate(descriptor, size)
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in NOT_KNOWN:
                raise


def _open(path: Path) -> tuple[Head, Mapped]:
    """The head of a store and its triangles; their checksums are not compared yet."""
    try:
        with opened(path) as file:
            head = read_head(file, STORE)
        shape = len(head.content["names"]), triangle_size(head.content["n_samples"])
        if [layout[:3] for layout in head.layouts] != [(ENTRY.str, "C", [shape[1]])] * shape[0]:
            raise ContainerError("it is damaged: its head describes other arrays")
    except (ContainerError, TypeError, KeyError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a GramStore: {error}; {ANEW}.") from error
    return head, map_triangles(path, shape, ENTRY, head.start)


def _check_triangles(path: Path, head: Head, triangles: FloatArray) -> None:
    """Raise unless every kernel has the checksum that the head states."""
    for name, layout, triangle in zip(head.content["names"], head.layouts, triangles, strict=True):
        if checksum(triangle) != layout.checksum:
            raise ValueError(
                f"{os.fspath(path)!r} is damaged: the checksum of kernel {name!r} is wrong; {ANEW}."
            )
