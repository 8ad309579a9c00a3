"""A lazy container of precomputed kernel matrices that survives cross-validation splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import FloatArray, IntArray


class KernelStack:
    """M kernel matrices between the same samples, which a split does not copy.

    It looks like an array of shape (n_rows, n_columns, M): it has a length and a shape, and can be sliced, so
    scikit-learn's model selection takes it as precomputed input; as with `np.ix_`, every axis stays. Slices
    share the matrices and only remember which rows and columns they show.

    Parameters
    ----------
    matrices : sequence of array-like of shape (n_rows, n_columns), or dict of them by name
        Data frames have to name their rows and columns alike; samples are not put into another order.
    names : sequence of str, optional
        Names of the kernels; by default the keys of a dict.

    Examples
    --------
    >>> import numpy as np
    >>> stack = KernelStack([np.eye(3), np.ones((3, 3))])
    >>> stack.shape
    (3, 3, 2)
    >>> stack[np.ix_([0, 2], [1])].matrix(1)
    array([[1.],
           [1.]])
    >>> stack[:, :, 1].shape
    (3, 3, 1)
    """

    ndim = 3

    def __init__(
        self, matrices: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None = None
    ) -> None:
        if len(matrices) == 0:
            raise ValueError("KernelStack: no matrices given; pass at least one.")
        if isinstance(matrices, Mapping):
            names, matrices = list(matrices) if names is None else names, list(matrices.values())
        _check_orders(matrices)
        self.matrices = [_as_matrix(K, m) for m, K in enumerate(matrices)]
        shapes = sorted({K.shape for K in self.matrices})
        if len(shapes) > 1:
            raise ValueError(f"KernelStack: the matrices have different shapes {shapes}; they must agree.")
        if names is not None and len(names) != len(self.matrices):
            raise ValueError(f"KernelStack: {len(names)} names for {len(self.matrices)} matrices.")
        self.names = None if names is None else [str(name) for name in names]
        twice = [name for name, count in Counter(self.names or ()).items() if count > 1]
        if twice:
            raise ValueError(
                f"KernelStack: names of several matrices: {', '.join(twice)}; give each its own."
            )
        self._rows: IntArray | None = None
        self._columns: IntArray | None = None

    @classmethod
    def from_array(cls, array: Any) -> KernelStack:
        """Wrap an array of shape (n_rows, n_columns, M), or (n_rows, n_columns) for one kernel."""
        if sparse.issparse(array):
            raise ValueError("precomputed kernels are sparse: pass dense matrices, `X.toarray()`.")
        _refuse_mask(array)
        array = np.asarray(array)
        if array.ndim == 2:
            array = array[:, :, None]
        if array.ndim != 3:
            raise ValueError(
                f"precomputed kernels must have shape (n_rows, n_columns, n_kernels), got {array.shape}."
            )
        # one kernel after another in memory: each matrix is then read in order
        return cls(list(np.ascontiguousarray(np.moveaxis(array, 2, 0))))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_rows, n_columns, M)."""
        n_rows, n_columns = self.matrices[0].shape
        rows = n_rows if self._rows is None else len(self._rows)
        columns = n_columns if self._columns is None else len(self._columns)
        return rows, columns, len(self.matrices)

    @property
    def whole(self) -> bool:
        """Whether the matrices are shown as a whole, so that `matrix` copies nothing."""
        return self._rows is None and self._columns is None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return np.result_type(*(K.dtype for K in self.matrices))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"KernelStack(shape={self.shape})"

    def __getitem__(self, key: Any) -> KernelStack:
        rows, columns, kernels = _axes(key)
        part = object.__new__(type(self))
        chosen = _compose(None, kernels, len(self.matrices))
        part.matrices, part.names = self.matrices, self.names
        if chosen is not None:
            part.matrices = [self.matrices[m] for m in chosen]
            part.names = None if self.names is None else [self.names[m] for m in chosen]
        if not part.matrices:
            raise IndexError("KernelStack: no kernel is left; choose at least one.")
        part._rows = _compose(self._rows, rows, self.matrices[0].shape[0])
        part._columns = _compose(self._columns, columns, self.matrices[0].shape[1])
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.stack([self.matrix(m) for m in range(len(self.matrices))], axis=2).astype(
            dtype or self.dtype
        )

    def matrix(self, m: int) -> FloatArray:
        """The part of matrix m that this container shows; a view when it shows all of it."""
        K = self.matrices[m]
        if self.whole:
            return K
        rows = slice(None) if self._rows is None else self._rows
        if self._columns is None:
            return K[rows]
        return K[rows][:, self._columns] if isinstance(rows, slice) else K[np.ix_(rows, self._columns)]

    def part(self, m: int, rows: Any, columns: Any) -> FloatArray:
        """matrix(m)[rows][:, columns], reading no more than that; a view for slices of whole matrices."""
        if self.whole and isinstance(rows, slice) and isinstance(columns, slice):
            return self.matrices[m][rows, columns]
        return self[rows, columns].matrix(m)

    def diagonal(self, m: int) -> FloatArray:
        """Diagonal of matrix(m)."""
        rows, columns = (
            np.arange(size) if known is None else known
            for size, known in zip(self.shape, (self._rows, self._columns), strict=False)
        )
        return np.asarray(self.matrices[m][rows, columns])


def _refuse_mask(array: Any) -> None:
    """Refuse masked entries: NumPy forgets the mask on conversion."""
    if np.ma.is_masked(array):
        raise ValueError("precomputed kernels have masked entries: fill them, or leave those samples out.")


def _check_orders(matrices: Sequence[Any]) -> None:
    """Refuse data frames with the same IDs in different orders, on rows and columns or among each other."""
    frames = [K for K in matrices if hasattr(K, "index") and hasattr(K, "columns")]
    sides = [("rows", K.index) for K in frames] + [("columns", K.columns) for K in frames]
    for side, labels in sides:
        first = frames[0].index
        if len(labels) == len(first) and not labels.equals(first) and set(labels) == set(first):
            raise ValueError(
                f"KernelStack: the {side} of a matrix have the IDs of the first rows in another order; take "
                "all of them in one order, `K.loc[ids, ids]`."
            )


def default_names(count: int) -> list[str]:
    """What kernels are called where nobody has named them."""
    return [f"kernel {m}" for m in range(count)]


def _as_matrix(K: Any, m: int) -> FloatArray:
    _refuse_mask(K)
    if sparse.issparse(K):
        raise ValueError(f"KernelStack: matrix {m} is sparse: pass a dense one, `.toarray()`.")
    matrix = np.asarray(K)
    if matrix.ndim != 2:
        raise ValueError(f"KernelStack: matrix {m} has shape {matrix.shape}; a kernel matrix has two axes.")
    if np.iscomplexobj(matrix):
        raise ValueError(f"KernelStack: matrix {m} has complex entries; a kernel matrix holds real numbers.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _axes(key: Any) -> tuple[Any, ...]:
    """What is taken of rows, columns and kernels; all of an axis that is left out, or behind "..."."""
    keys = key if isinstance(key, tuple) else (key,)
    place = next((k for k, one in enumerate(keys) if one is ...), len(keys))
    before, after = keys[:place], keys[place + 1 :]
    left = KernelStack.ndim - len(before) - len(after)
    if left < 0 or any(one is ... for one in after):
        raise IndexError("KernelStack: it has three axes, rows, columns and kernels.")
    return (*before, *[slice(None)] * left, *after)


def _compose(old: IntArray | None, key: Any, size: int) -> IntArray | None:
    """Indices into the matrices after taking `key` from the indices `old` (None: all)."""
    if isinstance(key, slice) and key == slice(None):
        return old
    known = np.arange(size) if old is None else old
    return known[key] if isinstance(key, slice) else known[np.asarray(key).ravel()]


def as_stack(X: Any) -> KernelStack:
    """Precomputed kernels from a stack, an array (n, m, M) or (n, m), or a list or dict of matrices.

    Examples
    --------
    >>> as_stack([np.eye(2), np.ones((2, 2))]).shape
    (2, 2, 2)
    """
    if isinstance(X, KernelStack):
        return X
    if isinstance(X, Mapping) or (isinstance(X, list | tuple) and all(np.ndim(K) == 2 for K in X)):
        return KernelStack(X)
    return KernelStack.from_array(X)
