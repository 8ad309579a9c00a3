"""What every Gram engine is: M Gram matrices on n samples behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Normalization
from .blocks import Blocks, normalised, tiles
from .choice import EngineChoice, Needs, Task

if TYPE_CHECKING:
    from .blocked import Unrounded
    from .dictionary import Kernels

#: kernels up to which each diagonal is looked at on its own, and entries up to which all of them are kept
MOST_DIAGONALS, MOST_ON_DIAGONALS = 1000, 10**7


#: rows of one kernel computed at a time
ROWS_AT_ONCE = 256


class Gram(ABC):
    """M Gram matrices K_1 .. K_M on the training samples.

    These methods are all a solver may ask of the kernels; where the numbers live (memory,
    cache, low-rank factors, another device) is the engine's business. An engine in the registry `GRAMS`
    says what it `needs` for a task and how it is made, by `build` or only `of_blocks`; by default it is
    called with matrices in memory and their scales.

    Attributes
    ----------
    n_samples, n_kernels : int
    n_passes : float
        Bytes of kernel matrices read so far, in units of all M full matrices: what a fit costs
        in memory traffic, whatever machine it runs on.
    """

    name: str
    n_samples: int
    n_kernels: int
    n_passes: float
    #: whether a pair of samples costs anew whenever it is asked for
    streams = False
    #: whether `square` and `quad` on some of the samples take their share of the time, and no room
    parts_in_place = False
    #: samples on which `combine` leaves memory for the rest of a fit; None: any number
    most_combined: int | None = None
    #: cosines between the matrices, once somebody has asked for them
    cached_alignments: FloatArray | None = None
    #: the diagonals of the matrices, once somebody has asked for them
    cached_diagonals: FloatArray | None = None
    #: whether entries are differences of larger ones, whose rounding they have
    centred = False
    #: whether matrices are positive semidefinite for vectors of sum zero alone
    conditional = False
    #: whether the free memory of this machine bounds it where no limit is given
    bounded = True
    #: where the kernels are, in words, where that is known only when they are there
    words: str | None = None
    #: whether other processes can be given a copy
    portable = True
    #: factors of the kernels, beside their weights
    scales: FloatArray
    #: the kernels, where values are rounded from them
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
        return gram, rules, live

    @classmethod
    def of_blocks(cls, blocks: Blocks, scales: FloatArray, task: Task, needs: Needs) -> Gram:
        """The engine of kernels that are normalised but for their scales."""
        every = slice(0, blocks.n_samples)
        matrices = dict(blocks.each(every, every))
        make: Any = cls
        return make([matrices[m] for m in range(blocks.n_kernels)], scales, **needs.options)  # type: ignore[no-any-return]

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
        """The same kernels as predictions compute them, anew in every pass; None where nothing is rounded."""
        return None if self.unrounded is None else self.unrounded.gram(self.scales)

    def _count(self, read: float, factors: FloatArray | None = None) -> None:
        """Count so many matrices, or such a share of those whose factor is not zero."""
        self.n_passes += (read if factors is None else read * np.count_nonzero(factors)) / self.n_kernels

    @abstractmethod
    def combine(self, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m, shape (n, n)."""

    def square(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m on some samples, shape (n_chosen, n_chosen)."""
        return self.subset(samples).combine(weights)

    @abstractmethod
    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Entries `rows` (all by default) of sum_m d_m K_m alpha, for alpha (n,) or (n, c)."""

    def dots(self, weights: FloatArray, alpha: FloatArray, rows: IntArray) -> FloatArray:
        """Entries `rows` of sum_m weights[k, m] K_m alpha for every k; shape (n_rows, k), alpha (n,)."""
        return np.column_stack([self.dot(own, alpha, rows) for own in weights])

    def products(self, alpha: FloatArray, kernels: IntArray) -> FloatArray:
        """K_m alpha for every m of `kernels`, alpha (n,); shape (len(kernels), n).

        Only the rows of non-zero alpha are read: what a step of a decomposition method changes.
        """
        support, out = np.flatnonzero(alpha), np.zeros((len(kernels), self.n_samples))
        for m, own in zip(kernels, out, strict=True):
            unit = np.eye(1, self.n_kernels, m)[0]  # weight on kernel m alone
            for some in tiles(len(support), ROWS_AT_ONCE):
                own += alpha[support[some]] @ self.rows(support[some], unit)
        return out

    @abstractmethod
    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        """alpha' K_m alpha for every m, or for `kernels` only, summed over the columns of `alpha`."""

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
        """K_m(i, i), or upper bounds in less room: shape (M, n) or (M, 1), or (1, 1) for all kernels."""
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
