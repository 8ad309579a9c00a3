"""Where kernel values come from: kernels on data, given matrices, or the folds of a search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from .._typing import BoolArray, FloatArray, IntArray
from ..kernels import Kernel, Normalization, ParametricKernel, Views, WeightedSum
from ..kernels.base import LARGEST, in_double, known_finite, largest_size
from ..kernels.columns import tables_of
from ..kernels.subsets import Subsets
from ..kernels.views import named_view
from ._memory import Memory
from .blocks import Blocks
from .games import NotByFeatureError
from .sharing import Batch, batch_of, grouped, is_positive, share
from .stack import KernelStack, default_names


class Gaps(NamedTuple):
    """Which samples have what each kernel reads.

    Attributes
    ----------
    views : list of str
        The view that each kernel reads.
    observed : ndarray of bool, shape (n, M)
    """

    views: list[str]
    observed: BoolArray

    def take(self, samples: IntArray) -> Gaps:
        """The gaps of some samples."""
        return Gaps(self.views, self.observed[samples])

    @property
    def names(self) -> list[str]:
        """Names of the views, as in `Views`; a given matrix is its own view."""
        return self.views


class KernelSource(ABC):
    """Where kernel values come from: kernels applied to data, or matrices given by the user."""

    names: list[str]
    n_samples: int

    #: whether the matrices are in memory already, so that `train` computes nothing
    given = False

    #: whether `train` makes new matrices
    copies = True

    #: whether the matrices are triangles in a file that an engine can read in place
    mapped = False

    #: number of matrices of kernel values of new samples that are kept at a time
    held = 1

    #: which training samples lack which views; None where kernels do not read views
    gaps: Gaps | None = None

    #: which training samples have each kernel, (n, M), if values of the others may be missing; set by the
    #: source that masks or completes them
    owned: BoolArray | None = None

    def observed_in(self, X: Any) -> BoolArray:
        """Which new samples have what each kernel reads, shape (n_new, M)."""
        return np.ones((X.shape[0], len(self.names)), dtype=bool)

    @property
    def n_kernels(self) -> int:
        """Number of kernels that the source evaluates."""
        return len(self.names)

    def component(self, m: int) -> int:
        """Which of the `names` kernel m is a summand of."""
        return m

    @abstractmethod
    def train(self, m: int) -> FloatArray:
        """Gram matrix of kernel m on the training samples."""

    def train_all(self) -> Iterator[tuple[int, FloatArray]]:
        """All pairs (m, train(m)), in an order that suits the source."""
        for m in range(len(self.names)):
            yield m, self.train(m)

    def train_on(self, kernels: Sequence[int], rows: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Gram matrices of some kernels on some of the training samples."""
        for m in kernels:
            yield m, take_square(self.train(m), rows)

    def blocks(self) -> Blocks:
        """The kernels on the training samples, to be computed a tile at a time."""
        return Blocks.of_matrices([self.train(m) for m in range(len(self.names))])

    @property
    def n_bases(self) -> int:
        """How many quantities of two samples (distances, inner products) a cache could keep."""
        return len(self.names)

    def is_positive(self, m: int) -> bool:
        """Whether kernel m is known to be positive semidefinite, whatever the data."""
        return False

    def low_rank(self, m: int, max_rank: int) -> FloatArray | None:
        """Phi of shape (n, r) with K_m = Phi Phi' on the training samples, r <= `max_rank`, if known."""
        return None

    def term(self, m: int, rule: Normalization, factors: FloatArray, alpha: FloatArray) -> Any:
        """What kernel m adds to a predictor: factors[j] sum_i k'(x, x_i) alpha_ij / scale to function j."""
        from .terms import KernelTerm

        return KernelTerm(m, rule, factors)

    def kernel_of_columns(self, m: int) -> Kernel:
        """Kernel m, a function of columns; `NotByFeatureError` where there is none."""
        raise NotByFeatureError("its values are given, not computed from columns")

    @abstractmethod
    def restrict(self, support: IntArray) -> None:
        """Forget the training samples outside `support`, which prediction does not need."""

    @abstractmethod
    def rows(self, X: Any, part: slice) -> Any:
        """Some rows of new data."""

    @abstractmethod
    def cross(self, m: int, X: Any) -> FloatArray:
        """Values of kernel m between new samples and the remaining training samples."""

    @abstractmethod
    def diag(self, m: int, X: Any) -> FloatArray:
        """Values k(x, x) of kernel m on new samples."""

    @property
    def together(self) -> IntArray:
        """Kernels that `cross_sum` takes, all of them with k(x, x) = 1."""
        return np.empty(0, dtype=int)

    def cross_sum(self, factors: FloatArray, X: Any) -> FloatArray:
        """sum_k factors[k] K_k over the kernels `together`, between new and remaining training samples."""
        raise NotImplementedError


class FeatureSource(KernelSource):
    """Kernels evaluated on data, in double precision whatever the precision of the data.

    Parameters
    ----------
    kernels : sequence of (name, Kernel)
        Unfitted; they are fitted on `X` here.
    X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features)
        Where kernels take their parameters from. With views, a kernel takes them from the samples that have
        the view it sees.
    sample_weight : ndarray of shape (n,), optional
    values : array-like, sparse matrix, DataFrame or Views, optional
        The training rows, such as the rows of `X` with positive weight, or the numbers of a DataFrame `X`,
        converted once for all kernels; by default `X`.
    """

    def __init__(
        self,
        kernels: Sequence[tuple[str, Kernel]],
        X: Any,
        sample_weight: FloatArray | None = None,
        values: Any = None,
    ) -> None:
        own = values is None or values is X
        X = in_double(X)
        self.X = X if own else in_double(values)
        self.n_samples = self.X.shape[0]
        self.kernels: Sequence[Kernel]
        tables = tables_of(self.X)
        finite = [table for table in tables if _can_be_squared(table)]
        with known_finite(finite):
            if isinstance(kernels, Subsets):
                self.names, self.kernels = kernels.labels(), kernels.fit(X, sample_weight)
            else:
                self.names = [name for name, _ in kernels]
                self.kernels = [_fitted(kernel, X, sample_weight) for _, kernel in kernels]
            self._batch: Batch | None = batch_of(self.kernels, self.X)
        self._looked = len(finite) == len(tables)  # whether the values were found finite

    @property
    def gaps(self) -> Gaps | None:  # type: ignore[override]
        if not isinstance(self.X, Views):
            return None
        names = [self.X.names[self.X.view_of(kernel)] for kernel in self.kernels]
        return Gaps(names, self.observed_in(self.X))

    def observed_in(self, X: Any) -> BoolArray:
        if not isinstance(X, Views):
            return super().observed_in(X)
        return np.asarray(X.observed[:, [X.view_of(kernel) for kernel in self.kernels]])

    def train(self, m: int) -> FloatArray:
        return self.kernels[m](self.X)

    def train_all(self) -> Iterator[tuple[int, FloatArray]]:
        yield from self._train(np.arange(len(self.kernels)))

    def train_on(self, kernels: Sequence[int], rows: IntArray) -> Iterator[tuple[int, FloatArray]]:
        part = self if len(rows) == self.n_samples else self.part(rows)
        yield from part._train(np.asarray(kernels))

    def _train(self, kernels: IntArray) -> Iterator[tuple[int, FloatArray]]:
        every = slice(0, self.n_samples)
        for members in grouped(self.kernels, kernels).values():
            if len(members) == 1:
                yield members[0], self.train(members[0])
                continue
            (part,), _ = share([self.kernels[m] for m in members], self.X)
            base = part.base(every, every)  # computed once
            for k, m in enumerate(members):
                K = part.values(base, k)
                yield m, K.copy() if K is base else K

    def blocks(self) -> Blocks:
        with known_finite(tables_of(self.X) if self._looked else ()):
            return Blocks.of_kernels(self.kernels, self.X)

    @property
    def n_bases(self) -> int:
        if len(self.together) == len(self.kernels):
            return 0
        apart = without(np.ones(len(self.kernels), dtype=bool), self.together)
        return len(grouped(self.kernels, apart))

    def is_positive(self, m: int) -> bool:
        return is_positive(self.kernels[m])

    def low_rank(self, m: int, max_rank: int) -> FloatArray | None:
        return self.kernels[m].low_rank(self.X, max_rank)

    @property
    def together(self) -> IntArray:
        return super().together if self._batch is None else self._batch.members

    def cross_sum(self, factors: FloatArray, X: Any) -> FloatArray:
        assert self._batch is not None
        return self._batch.cross_sum(X, factors)

    def restrict(self, support: IntArray) -> None:
        self.X = _safe_indexing(self.X, support)
        if self._batch is not None:
            self._batch = self._batch._replace(part=self._batch.part.take(support, None))

    def part(self, rows: IntArray) -> FeatureSource:
        """The same kernels, with parameters from all samples, on some of them."""
        part = copy(self)
        part.restrict(rows)
        part.n_samples = len(rows)
        return part

    def rows(self, X: Any, part: slice) -> Any:
        return in_double(_safe_indexing(X, part))

    def cross(self, m: int, X: Any) -> FloatArray:
        return self.kernels[m](X, self.X)

    def diag(self, m: int, X: Any) -> FloatArray:
        return self.kernels[m].diag(X)

    def kernel_of_columns(self, m: int) -> Kernel:
        return self.kernels[m]


def _can_be_squared(table: Any) -> bool:
    """Whether a table is an array of numbers that are finite and have finite squares."""
    return isinstance(table, np.ndarray) and table.dtype.kind == "f" and largest_size(table) <= LARGEST


def _fitted(kernel: Kernel, X: Any, sample_weight: FloatArray | None) -> Kernel:
    """A kernel fitted on the samples that have the view it sees."""
    if not isinstance(X, Views):
        return kernel.fit(X, sample_weight=sample_weight)
    v = X.view_of(kernel)
    if not X.observed[:, v].all():
        rows = np.flatnonzero(X.observed[:, v])
        X, sample_weight = X[rows], None if sample_weight is None else sample_weight[rows]
    with named_view(X.names[v]):
        return kernel.fit(X, sample_weight=sample_weight)


def without(chosen: BoolArray, members: IntArray) -> IntArray:
    """Positions of the chosen items that are not members; fast even for a million of them."""
    rest = chosen.copy()
    rest[members] = False
    return np.flatnonzero(rest)


class StackSource(KernelSource):
    """Matrices given by the user; prediction takes new ones.

    A sample whose row and column of a matrix are all NaN lacks that kernel.

    Parameters
    ----------
    stack : KernelStack of shape (n, n, M)
    columns : ndarray of shape (n,), optional
        Columns of these samples in new matrices; in order by default.
    """

    given = True

    def __init__(self, stack: KernelStack, columns: IntArray | None = None) -> None:
        n_rows, n_columns, n_kernels = stack.shape
        if n_rows != n_columns:
            raise ValueError(
                f"precomputed training kernels must be square, got {stack.shape}: pass an array of shape "
                "(n_samples, n_samples, n_kernels)."
            )
        self.names = stack.names or default_names(n_kernels)
        self.n_samples = n_rows
        self.support: IntArray = np.arange(n_rows) if columns is None else np.asarray(columns)
        self._stack: KernelStack | None = stack

    @cached_property
    def gaps(self) -> Gaps | None:  # type: ignore[override]
        if self._stack is None or self.mapped:
            return None
        observed = np.ones((self.n_samples, len(self.names)), dtype=bool)
        for m in range(len(self.names)):
            # the first row has NaN wherever a sample lacks the kernel, and is read faster than the diagonal
            head = self._stack.part(m, slice(0, 1), slice(None))[0]
            if np.isnan(head).any():
                observed[self._lacking(m, np.flatnonzero(np.isnan(head))), m] = False
        return Gaps(self.names, observed)

    def _lacking(self, m: int, suspects: IntArray) -> IntArray:
        """Those of some training samples that lack kernel m."""
        assert self._stack is not None
        suspects = suspects[np.isnan(self._stack.diagonal(m)[suspects])]
        if len(suspects) == 0:
            return suspects
        rows, columns = self._stack[suspects].matrix(m), self._stack[:, suspects].matrix(m)
        return suspects[np.isnan(rows).all(axis=1) & np.isnan(columns).all(axis=0)]

    def observed_in(self, X: KernelStack) -> BoolArray:
        if self.owned is None:
            return super().observed_in(X)
        return np.column_stack([self._rows_of(m, X)[1] for m in range(len(self.names))])

    def _rows_of(self, m: int, X: KernelStack) -> tuple[FloatArray, BoolArray]:
        """New rows of matrix m, 0 where a sample lacks it, and which of the new samples have it."""
        K = X[:, self.support].matrix(m)
        assert self.owned is not None
        own = self.owned[:, m]
        there = np.asarray(~np.isnan(K[:, own]).all(axis=1))
        if not (there.all() and own.all()):
            K = np.where(np.outer(there, own), K, 0.0)
        return K, there

    def train(self, m: int) -> FloatArray:
        assert self._stack is not None
        K = self._stack.matrix(m)
        if self.gaps is None or self._whole:
            return K
        own = self.gaps.observed[:, m]
        return K if own.all() else np.where(np.outer(own, own), K, 0.0)

    @cached_property
    def _whole(self) -> bool:
        """Whether no sample lacks a kernel, of those whose gaps are known."""
        return self.gaps is None or bool(self.gaps.observed.all())

    @property
    def copies(self) -> bool:  # type: ignore[override]
        return self._stack is not None and not self._stack.whole

    @property
    def mapped(self) -> bool:  # type: ignore[override]
        return getattr(self._stack, "triangles", None) is not None

    def blocks(self) -> Blocks:
        assert self._stack is not None
        return Blocks.of_matrices(self._stack)

    def restrict(self, support: IntArray) -> None:
        self.support, self._stack = self.support[support], None
        for name in ("gaps", "_whole"):
            vars(self).pop(name, None)
        if self.owned is not None:
            self.owned = self.owned[support]

    def rows(self, X: KernelStack, part: slice) -> KernelStack:
        return X[part]

    def cross(self, m: int, X: KernelStack) -> FloatArray:
        K = X[:, self.support].matrix(m) if self.owned is None else self._rows_of(m, X)[0]
        if not np.isfinite(K).all():
            raise ValueError(
                f"X: test kernel {self.names[m]!r} has NaN or infinite entries: fill them, or leave these "
                "samples out. Models fitted with missing='complete' or 'mask' take rows that are all NaN."
            )
        return K

    def diag(self, m: int, X: KernelStack) -> FloatArray:
        raise ValueError(
            "normalize='spherical' needs k(x, x) of new samples, and so does form='svdd'; precomputed test "
            "matrices do not contain it: use Precomputed kernels by sample index; or, for 'spherical', "
            "normalise the matrices beforehand and pass normalize=None."
        )


class FoldSource(KernelSource):
    """Matrices on all samples of a cross-validation; a fold trains on some of these samples.

    New data are row numbers of the matrices.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n, n)
    names : list of str
    rows : ndarray of int
        The training samples.
    gaps : Gaps, optional
        Of all samples.
    memory : Memory, optional
        Where the matrices of the fold go.
    """

    given = True

    def __init__(
        self,
        matrices: Sequence[FloatArray],
        names: list[str],
        rows: IntArray,
        gaps: Gaps | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.matrices, self.names = list(matrices), names
        self.support, self.n_samples = np.asarray(rows), len(rows)
        self._gaps, self._memory = gaps, memory or Memory()
        if gaps is not None:
            self.gaps = gaps.take(self.support)

    def observed_in(self, X: IntArray) -> BoolArray:
        return super().observed_in(X) if self._gaps is None else self._gaps.observed[X]

    def train(self, m: int) -> FloatArray:
        return take_square(self.matrices[m], self.support)

    def train_all(self) -> Iterator[tuple[int, FloatArray]]:
        if len({K.dtype for K in self.matrices}) > 1:
            yield from super().train_all()
            return
        # one array for all of them: its memory comes in large pages
        shape = (len(self.matrices), self.n_samples, self.n_samples)
        parts = self._memory.empty(shape, self.matrices[0].dtype)
        for m, part in enumerate(parts):
            yield m, take_square(self.matrices[m], self.support, part)

    def train_on(self, kernels: Sequence[int], rows: IntArray) -> Iterator[tuple[int, FloatArray]]:
        part = copy(self)
        part.restrict(rows)
        for m in kernels:
            yield m, part.train(m)

    def blocks(self) -> Blocks:
        return Blocks.of_matrices(KernelStack(self.matrices)[self.support, self.support])

    def restrict(self, support: IntArray) -> None:
        self.support = self.support[support]

    def rows(self, X: IntArray, part: slice) -> IntArray:
        return X[part]

    def cross(self, m: int, X: IntArray) -> FloatArray:
        from ._matrix_loops import take_block

        K = self.matrices[m]
        if not K.flags.c_contiguous:
            return np.asarray(K[np.ix_(X, self.support)])
        part = np.empty((len(X), len(self.support)), K.dtype)
        take_block(K, X, self.support, part)
        return part

    def diag(self, m: int, X: IntArray) -> FloatArray:
        return np.asarray(self.matrices[m][X, X])


class StackFoldSource(FoldSource):
    """`FoldSource` over matrices that are read piece by piece, such as the matrices of a store.

    Parameters
    ----------
    stack : KernelStack of shape (n, n, M)
    names : list of str
    rows : ndarray of int
        The training samples.
    """

    def __init__(self, stack: KernelStack, names: list[str], rows: IntArray) -> None:
        super().__init__([], names, rows)
        self.stack = stack

    def train(self, m: int) -> FloatArray:
        return self.stack[self.support, self.support].matrix(m)

    def train_all(self) -> Iterator[tuple[int, FloatArray]]:
        return KernelSource.train_all(self)

    def blocks(self) -> Blocks:
        return Blocks.of_matrices(self.stack[self.support, self.support])

    def cross(self, m: int, X: IntArray) -> FloatArray:
        return self.stack[X, self.support].matrix(m)

    def diag(self, m: int, X: IntArray) -> FloatArray:
        return self.stack[X, X].diagonal(m)


class ParametricSource(KernelSource):
    """One kernel k_d at the learned parameters d of every model; for a `WeightedSum`, its summands.

    Kernel ``j * len(names) + m`` is summand m at the parameters of model j.

    Parameters
    ----------
    kernel : ParametricKernel
        Fitted.
    parameters : ndarray of shape (J, n_parameters)
    X : ndarray of shape (n, n_features)
    """

    def __init__(self, kernel: ParametricKernel, parameters: FloatArray, X: FloatArray) -> None:
        self.kernel, self.parameters, self.X, self.n_samples = kernel, parameters, X, len(X)
        summed = isinstance(kernel, WeightedSum)
        self.names = kernel.names_[: len(kernel.kernels_)] if summed else [type(kernel).__name__]

    @property
    def n_kernels(self) -> int:
        return len(self.names) * len(self.parameters)

    def component(self, m: int) -> int:
        if not isinstance(self.kernel, WeightedSum):
            raise ValueError(
                f"{type(self.kernel).__name__} is not a sum of kernels, so its prediction has no components: "
                "use kernel=WeightedSum([...])."
            )
        return m % len(self.names)

    def weight(self, m: int) -> float:
        """The weight of kernel m in the sum; 1.0 if the kernel is not a sum."""
        j, own = divmod(m, len(self.names))
        return float(self.parameters[j, own]) if isinstance(self.kernel, WeightedSum) else 1.0

    def restrict(self, support: IntArray) -> None:
        self.X = self.X[support]

    def rows(self, X: FloatArray, part: slice) -> FloatArray:
        return X[part]

    def _kernel(self, m: int) -> tuple[ParametricKernel, FloatArray]:
        j, own = divmod(m, len(self.names))
        d = self.parameters[j]
        if not isinstance(self.kernel, WeightedSum):
            return self.kernel, d
        return self.kernel.kernels_[own], self.kernel._parts(d)[own]

    def kernel_of_columns(self, m: int) -> Kernel:
        kernel, d = self._kernel(m)
        found = kernel.frozen(d)
        if found is None:
            raise NotByFeatureError(f"{type(kernel).__name__} is no product over columns")
        return found

    def square(self, m: int, X: FloatArray) -> FloatArray:
        """Gram matrix of kernel m on any samples."""
        kernel, d = self._kernel(m)
        return kernel(X, None, d)

    def train(self, m: int) -> FloatArray:
        return self.square(m, self.X)

    def cross(self, m: int, X: FloatArray) -> FloatArray:
        kernel, d = self._kernel(m)
        return kernel(X, self.X, d)

    def diag(self, m: int, X: FloatArray) -> FloatArray:
        return np.array([float(self.square(m, x[None])[0, 0]) for x in X])


def take_square(K: FloatArray, rows: IntArray, part: FloatArray | None = None) -> FloatArray:
    """K on some samples, both axes; in the memory of `part` if that is given."""
    from ._matrix_loops import take_square as compiled

    part = np.empty((len(rows), len(rows)), K.dtype) if part is None else part
    if K.flags.c_contiguous:
        compiled(K, rows.astype(np.uintp), part)
    else:
        part[:] = K[np.ix_(rows, rows)]
    return part
