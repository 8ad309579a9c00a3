"""What every Gram engine is: M Gram matrices on n samples behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Normalization
from .blocks import Blocks, normalised, tiles
from .choice import EngineChoice, Needs, Task

if TYPE_CHECKING:
    from .blocked import Unrounded
    from .dictionary import Guess, Kernels
    from .some_rows import RowsOfSum

Result = TypeVar("Result")

#: up to this many kernels each diagonal is looked at on its own, and up to this many entries all are kept
MOST_DIAGONALS, MOST_ON_DIAGONALS = 1000, 10**7

#: what a view of an engine has from it, and never changes
OF_ENGINE = (
    "name",
    "words",
    "n_samples",
    "n_kernels",
    "scales",
    "unrounded",
    "centred",
    "single",
    "streams",
    "most_combined",
)


#: rows of one kernel computed at a time
ROWS_AT_ONCE = 256


class Gram(ABC):
    """M Gram matrices K_1 .. K_M on the training samples.

    These methods are all a solver may ask of the kernels; where the numbers live (memory, cache, low-rank
    factors, another device) is the engine's business. An engine in the registry `GRAMS` says what it `needs`
    for a task, and how it is made: by `build`, or by `of_blocks` alone. By default it is constructed from
    matrices in memory and their scales.

    Attributes
    ----------
    n_samples, n_kernels : int
    n_passes : float
        Bytes of kernel matrices read so far, in units of all M full matrices. This is what a fit costs in
        memory traffic, on any computer.
    """

    name: str
    n_samples: int
    n_kernels: int
    n_passes: float
    #: whether the value of a pair of samples is computed again whenever it is asked for
    streams = False
    #: whether `square` and `quad` on some of the samples take only a proportional share of the time, and no
    #: memory
    parts_in_place = False
    #: most samples on which `combine` leaves memory for the rest of a fit; None: any number
    most_combined: int | None = None
    #: cosines between the matrices, once somebody has asked for them
    cached_alignments: FloatArray | None = None
    #: the diagonals of the matrices, once somebody has asked for them
    cached_diagonals: FloatArray | None = None
    #: whether entries are differences of larger numbers, and so carry the rounding of those
    centred = False
    #: whether some entries were given in single precision, and so carry its rounding
    single = False
    #: whether matrices are positive semidefinite only for vectors of sum zero
    conditional = False
    #: whether the free memory of this computer bounds the engine where no limit is given
    bounded = True
    #: where the kernels are, in words, if that is known only once they are there
    words: str | None = None
    #: whether other processes can be given a copy
    portable = True
    #: whether a solver may hold on to a weighted sum for which it has no use yet
    spares_sums = True
    #: factors of the kernels, beside their weights
    scales: FloatArray
    #: where a fit begins, if that was found when the kernels were read
    guess: Guess | None = None
    #: the kernels themselves, if the values held are rounded
    unrounded: Unrounded | None = None

    @classmethod
    def needs(cls, task: Task) -> Needs:
        """The bytes that this engine needs for a task, or why it cannot serve it."""
        return Needs(task.dense, "it is made of matrices in memory")

    @classmethod
    def build(cls, kernels: Kernels, choice: EngineChoice) -> tuple[Gram, Sequence[Normalization], IntArray]:
        """The engine of the kernels that vary, the normalisations of all, and which kernels vary."""
        blocks, rules = normalised(kernels.checked(), kernels.normalize, kernels.sample_weight)
        scales = np.array([rule.scale_ for rule in rules])
        live = kernels.live(scales)
        gram = cls.of_blocks(blocks.take(kernels=live), scales[live], choice.task, choice.needs)
        gram.centred = blocks.means is not None
        gram.single = blocks.single
        return gram, rules, live

    @classmethod
    def of_blocks(cls, blocks: Blocks, scales: FloatArray, task: Task, needs: Needs) -> Gram:
        """The engine of kernels that are normalised except for their scales."""
        every = slice(0, blocks.n_samples)
        matrices = dict(blocks.each(every, every))
        make: Any = cls
        return make([matrices[m] for m in range(blocks.n_kernels)], scales, **needs.options)  # type: ignore[no-any-return]

    @property
    def engine(self) -> Gram:
        """The engine that has the kernels: this one, except for views of an engine that models share."""
        return self

    @property
    def n_models(self) -> int:
        """Number of models that are trained together on the kernels: one, except for views of an engine."""
        return 1

    @property
    def rounds(self) -> bool:
        """Whether values are kept or multiplied in fewer digits than predictions have."""
        return self.unrounded is not None

    @property
    def nbytes(self) -> int:
        """Bytes of kernel values in memory."""
        return 0

    def component_norms(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        """Norms of the functions Z_m w_m in the spaces of their kernels, for engines of factors."""
        raise NotImplementedError(f"the {self.name} engine has no factors.")

    def values_of(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        """Values sum_m Z_m w_m of the same functions on the samples, shape (n, c)."""
        raise NotImplementedError(f"the {self.name} engine has no factors.")

    def in_double(self) -> Gram | None:
        """The same kernels as predictions compute them, again in every pass; None if nothing is rounded."""
        return None if self.unrounded is None else self.unrounded.gram(self.scales)

    def _count(self, read: float, factors: FloatArray | None = None) -> None:
        """Count this many matrices, or this share of the matrices whose factor is not zero."""
        read = read if factors is None else read * np.count_nonzero(factors)
        self.n_passes += float(read) / self.n_kernels

    @abstractmethod
    def combine(self, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m, shape (n, n)."""

    def some_rows(self, weights: FloatArray, samples: IntArray) -> RowsOfSum:
        """sum_m d_m K_m, of which only the rows of some samples are computed, and others when needed."""
        from .some_rows import RowsOfSum

        return RowsOfSum(self, weights, samples)

    def rows_on_demand(self, weights: FloatArray) -> RowsOfSum | None:
        """The same, and a row is made when a machine first reads it; None where that would not be faster."""
        return None

    def release(self, K: Any) -> None:  # noqa: B027
        """Note that nobody needs a weighted sum any more: the next one may take its memory."""

    def shared(self, weights: FloatArray, K: Any) -> Any:
        """A weighted sum that all models begin with: each releases it once, and the last one for good."""
        return K

    def at_hand(self, weights: FloatArray) -> Any:
        """The weighted sum that was released last, if it was made with `weights` and still exists."""
        return None

    def once(self, task: Callable[[Gram], Result]) -> Result:
        """What a task makes of the kernels: once for all models that are trained together and ask for it."""
        return task(self)

    def square(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m on some samples, shape (n_chosen, n_chosen)."""
        return self.subset(samples).combine(weights)

    @abstractmethod
    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Entries `rows` (all by default) of sum_m d_m K_m alpha, for alpha (n,) or (n, c)."""

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        """Entries `rows` of K_m alpha for every m, or for `kernels` only, alpha (n,); shape (M, n_rows).

        Only the rows of non-zero alpha are read, or only the rows asked for.
        """
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        if rows is not None:
            out = np.zeros((len(chosen), len(rows)))
            for m, own in zip(chosen, out, strict=True):
                own[:] = self.dot(self._unit(m), alpha, rows)
            return out
        support, out = np.flatnonzero(alpha), np.zeros((len(chosen), self.n_samples))
        for m, own in zip(chosen, out, strict=True):
            for some in tiles(len(support), ROWS_AT_ONCE):
                own += alpha[support[some]] @ self.rows(support[some], self._unit(m))
        return out

    def _unit(self, m: int) -> FloatArray:
        """Weights of kernel m alone."""
        return np.asarray(np.eye(1, self.n_kernels, m)[0])

    @abstractmethod
    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        """alpha' K_m alpha for every m, or for `kernels` only, summed over the columns of `alpha`."""

    def quad_and_products(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """`quad` of alpha (n, c), and K_m alpha (M, n) where alpha is not zero, if that costs hardly more.

        Otherwise None in place of the products.
        """
        return self.quad(alpha), None

    # -- for several models: kernel values are the same, and an engine may read or compute them once ----

    def combine_each(self, weights: FloatArray) -> Sequence[Any]:
        """`combine` for every row of weights, of shape (k, M)."""
        return [self.combine(own) for own in weights]

    def square_each(self, samples: IntArray, weights: FloatArray) -> Sequence[Any]:
        """`square` for every row of weights, of shape (k, M)."""
        return self.subset(samples).combine_each(weights)

    def rows_each(self, indices: Sequence[IntArray], weights: FloatArray) -> list[FloatArray]:
        """`rows` for every entry of indices and row of weights, k of them and (k, M)."""
        return [self.rows(some, own) for some, own in zip(indices, weights, strict=True)]

    def dot_each(
        self, weights: FloatArray, alpha: FloatArray, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        """`dot` for every row of weights, column of alpha and entry of rows, (k, M), (n, k) and k of them."""
        return [self.dot(*own) for own in zip(weights, alpha.T, rows, strict=True)]

    def quad_each(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        """`quad` for every column of alpha, (n, k); shape (k, M)."""
        return np.array([self.quad(column, kernels) for column in alpha.T])

    def products_each(
        self, alpha: FloatArray, kernels: IntArray | None, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        """`products` for every column of alpha and entry of rows, (n, k) and k of them."""
        return [self.products(own, kernels, some) for own, some in zip(alpha.T, rows, strict=True)]

    @abstractmethod
    def inner(self, A: FloatArray) -> FloatArray:
        """tr(A K_m) for every m, with A symmetric of shape (n, n); shape (M,)."""

    @abstractmethod
    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        """Rows `indices` of sum_m d_m K_m, shape (len(indices), n)."""

    @abstractmethod
    def diag(self, weights: FloatArray) -> FloatArray:
        """Diagonal of sum_m d_m K_m, shape (n,)."""

    def diagonals(self) -> FloatArray:
        """K_m(i, i), or upper bounds in less memory: shape (M, n) or (M, 1), or (1, 1) for all kernels."""
        if self.cached_diagonals is None:
            self.cached_diagonals = np.maximum(self._diagonals(), 0.0)
        return self.cached_diagonals

    def _diagonals(self) -> FloatArray:
        if self.n_kernels > MOST_DIAGONALS:
            return np.full((1, 1), self.diag(np.ones(self.n_kernels)).max())
        whole = self.n_kernels * self.n_samples <= MOST_ON_DIAGONALS
        found = [
            self.diag(unit) if whole else self.diag(unit).max(keepdims=True)
            for unit in np.eye(self.n_kernels)
        ]
        return np.array(found)

    @abstractmethod
    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        """The same matrices on some samples, or some of the matrices."""
