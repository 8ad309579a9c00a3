"""All Gram matrices in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Normalization
from ._workers import map_tiles, mirror_lower
from .base import MOST_DIAGONALS, Gram
from .blocked import Unrounded
from .blocks import tiles, with_rules
from .choice import EngineChoice, Needs, Task
from .some_rows import RowsOnDemand

if TYPE_CHECKING:
    from .dictionary import Kernels

ROW_BLOCK_BYTES = 1 << 18  # rows of the sum that stay in the cache while M matrices are added
OUTER_BYTES = 1 << 20  # rows of outer products that are multiplied with the same rows of M matrices
SMALL_SUPPORT = 0.12  # below this share of non-zero alpha, single entries are read instead of rows
OFTEN = 2  # from this many columns of alpha per sample on average, their outer products are summed first
CACHED_BYTES = 1 << 24  # matrices this small stay in the cache from one model to the next
MOST_RELEASED = 16  # weighted sums whose memory is kept for the next ones
ROWS_EACH = 64  # rows of sums that one call makes
MATRICES_EACH = 8  # matrices that one call multiplies
FEW_KERNELS = 8  # up to this many, rows of a sum are made when they are needed
NOTHING_KEPT: tuple[FloatArray, dict[int, FloatArray]] = (np.empty(0), {})  # an alpha, and products with it
MANY_ROWS = 0.25  # from this share of the samples on, whole rows are summed instead of single entries


class DenseGram(Gram):
    """M symmetric matrices held in memory, each with a scalar factor.

    Symmetry halves the traffic: sums and quadratic forms read one triangle, and quadratic forms
    only the rows of non-zero alpha.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n, n), or ndarray of shape (M, n, n)
        Not copied when their rows are contiguous.
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * matrices[m]; normalisation needs no copy of the matrices.
    unrounded : Unrounded, optional
        The kernels themselves, if the matrices are rounded.

    Examples
    --------
    >>> import numpy as np
    >>> gram = DenseGram([np.eye(2), np.ones((2, 2))])
    >>> gram.quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "dense"
    bounded = False
    parts_in_place = True

    def __init__(
        self,
        matrices: Sequence[FloatArray] | FloatArray,
        scales: FloatArray | None = None,
        unrounded: Unrounded | None = None,
    ) -> None:
        # a symmetric matrix in column order is the same matrix in row order
        self.matrices = [K.T if K.flags.f_contiguous else np.ascontiguousarray(K) for K in matrices]
        self.n_kernels = len(self.matrices)
        self.n_samples = self.matrices[0].shape[0]
        self.scales = np.ones(self.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        self.unrounded, self.n_passes = unrounded, 0.0
        self.single = any(K.dtype == np.float32 for K in self.matrices)
        self.released: list[FloatArray] = []
        self.spare: list[FloatArray] = []
        self._kept = NOTHING_KEPT
        self.first: tuple[IntArray, list[FloatArray]] | None = None  # samples, and the matrices between them

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.careful and task.light:
            return Needs(None, "kernels are computed as fast as they could be read.")
        return Needs(task.dense, "all matrices are in memory")

    @classmethod
    def build(cls, kernels: Kernels, choice: EngineChoice) -> tuple[Gram, Sequence[Normalization], IntArray]:
        """One matrix after another, normalised in place."""
        from ._matrix_loops import mirror

        found: dict[int, Normalization] = {}
        matrices: dict[int, FloatArray] = {}
        pairs: Iterable[tuple[int, FloatArray]] = kernels.source.train_all()
        guess = None
        if kernels.foresee is not None:
            pairs = list(pairs)
            guess = kernels.guess([K for _, K in pairs], cls)
        for m, K in pairs:
            found[m] = kernels.normalised(m, K)
            matrices[m] = found[m].train(K)
        rules = [found[m] for m in range(len(found))]
        scales = np.array([rule.scale_ for rule in rules])
        live = kernels.live(scales)
        kind, unrounded = type(rules[0]), None
        single = any(K.dtype != np.float64 for K in matrices.values())
        if single and kind.train is not Normalization.train and kind.entries is not Normalization.entries:
            # a rule that changes entries wrote them in single precision
            unrounded = Unrounded(with_rules(kernels.source.blocks(), rules), kernels=live)
        gram = cls([matrices[m] for m in live], scales[live], unrounded)
        seen = [kernels.diagonals[m] for m in live.tolist() if m in kernels.diagonals]
        if kind.train is Normalization.train and len(seen) == len(live) <= MOST_DIAGONALS:
            found_on = np.array(seen)
            if (found_on == found_on[:, :1]).all():  # as of Gaussian kernels
                found_on = found_on[:, :1]
            gram.cached_diagonals = np.maximum(gram.scales[:, None] * found_on, 0.0)
        gram.centred = any(rule.entries()[1] is not None for rule in rules)
        guess = guess.at(scales) if guess is not None and len(live) == len(scales) else None
        factor = None if guess is None else kernels.foresee.multiple(guess.weights)
        if guess is not None and factor is not None:
            if guess.start is None:
                mirror_lower(guess.matrix, factor)
                guess = guess._replace(weights=factor * guess.weights)
            else:
                guess = guess._replace(squares=scales * [kernels.squares[m] for m in live.tolist()])
            gram.guess, gram.n_passes = guess, guess.n_passes
        parts = [kernels.parts[m] for m in live.tolist() if m in kernels.parts]
        if kernels.first is not None and kind.train is Normalization.train and len(parts) == len(live):
            for part in parts:
                mirror(part, 0, len(part))
            gram.first = (kernels.first, parts)
        return gram, rules, live

    @property
    def nbytes(self) -> int:
        return sum(K.nbytes for K in self.matrices)

    def combine(self, weights: FloatArray) -> FloatArray:
        (out,) = self._empty(1, self.n_samples)

        def add(rows: slice) -> None:
            self._add_lower(out[rows], np.arange(rows.start, rows.stop), kinds)

        kinds = self._by_kind(weights[None], 4)
        deque(map_tiles(add, tiles(self.n_samples, ROWS_EACH)), maxlen=0)
        mirror_lower(out)
        self._count(0.5 * np.count_nonzero(weights * self.scales))
        return out

    def rows_on_demand(self, weights: FloatArray) -> RowsOnDemand | None:
        kinds = self._by_kind(weights[None], 4)
        if len(kinds) != 1 or np.count_nonzero(weights) > FEW_KERNELS:
            return None
        (room,), (places, kind, factors) = self._empty(1, self.n_samples), kinds[0]
        return RowsOnDemand(self, weights, room, places, kind, factors[0])

    def _add_lower(self, out: FloatArray, rows: IntArray, kinds: list[Kind]) -> None:
        """Rows of one weighted sum, up to the diagonal."""
        from ._matrix_loops import add_lower

        if not kinds:
            out[:] = 0.0
        for place, (places, kind, (w,)) in enumerate(kinds):
            add_lower(out, rows, places, kind, w, place == 0)

    def combine_each(self, weights: FloatArray) -> list[FloatArray]:
        return self._sums(weights) if self._pays(weights) else [self.combine(own) for own in weights]

    def square_each(self, samples: IntArray, weights: FloatArray) -> list[FloatArray]:
        if self._pays(weights):
            return self._sums(weights, np.asarray(samples))
        return [self.square(samples, own) for own in weights]

    def _pays(self, weights: FloatArray) -> bool:
        """Whether several sums are made faster together than one after another."""
        return len(weights) > 1 and self.nbytes > CACHED_BYTES

    def _sums(self, weights: FloatArray, samples: IntArray | None = None) -> list[FloatArray]:
        """All sums at once: rows of eight matrices at a time are added to the rows of every sum."""
        n, count = self.n_samples if samples is None else len(samples), len(weights)
        sums, every = self._empty(count, n), np.arange(n)
        targets = np.array([K.ctypes.data for K in sums], dtype=np.intp) + 8 * n * every[:, None]
        cuts, lists = count * np.arange(n + 1), np.tile(np.arange(count), n)
        chosen = np.arange(0) if samples is None else samples
        live = self._add_each(weights, every, cuts, lists, targets.ravel(), chosen, lower=True)
        for total in sums:
            if not live:
                total[:] = 0.0
            mirror_lower(total)
        self._count(0.5 * live * (n / max(self.n_samples, 1)) ** 2)
        return sums

    def rows_each(self, indices: Sequence[IntArray], weights: FloatArray) -> list[FloatArray]:
        """All rows in one pass: a row of eight matrices is added to those of every sum that asks for it."""
        lists, n = ByRow.of([np.asarray(some, dtype=int) for some in indices]), self.n_samples
        found = self._empty_rows(lists.sizes)
        starts = np.cumsum([0, *lists.sizes[:-1]])  # places count through all lists
        bases = np.array([out.ctypes.data for out in found], dtype=np.intp) - 8 * n * starts
        targets = bases[lists.lists] + 8 * n * lists.places
        live = self._add_each(weights, *lists[:3], targets, np.arange(0), lower=False)
        for out in found:
            if not live:
                out[:] = 0.0
        self._count(len(lists.rows) / n * live)
        return found

    def _add_each(
        self,
        weights: FloatArray,
        rows: IntArray,
        cuts: IntArray,
        lists: IntArray,
        targets: IntArray,
        samples: IntArray,
        lower: bool,
    ) -> int:
        """Rows of several sums, with the arguments of `add_each`; how many matrices have weight in any."""
        from ._matrix_loops import add_each

        parts = self._by_kind(weights, 8)

        def fill(some: slice) -> None:
            for place, (places, kind, w) in enumerate(parts):
                given = (rows, cuts, lists, targets, places, kind, w, samples, self.n_samples, lower)
                add_each(*given, place == 0, some.start, some.stop)

        deque(map_tiles(fill, tiles(len(rows), ROWS_EACH)), maxlen=0)
        return int(np.count_nonzero((weights * self.scales).any(axis=0)))

    def _by_kind(self, weights: FloatArray, at_once: int) -> list[Kind]:
        """The matrices with weight, by precision; the last one, with factor 0, fills the last group."""
        found: list[Kind] = []
        factors = weights * self.scales
        live = np.asarray(factors.any(axis=0))
        for kind, members in self._kinds.items():
            own = members[live[members]]
            if len(own):
                w = np.zeros((len(weights), len(own) + -len(own) % at_once))
                w[:, : len(own)] = factors[:, own]
                places = np.append(self._places[own], np.repeat(self._places[own[-1:]], -len(own) % at_once))
                found.append(Kind(places, np.empty(0, kind), w))
        return found

    def __getstate__(self) -> dict[str, Any]:
        own = ("_places", "spare", "released", "_kept")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, spare=[], released=[], _kept=NOTHING_KEPT)

    @cached_property
    def _places(self) -> IntArray:
        """Addresses of the matrices, which a copy in another process has elsewhere."""
        return np.array([K.ctypes.data for K in self.matrices], dtype=np.intp)

    @cached_property
    def _kinds(self) -> dict[np.dtype, IntArray]:
        """Which matrices have which precision."""
        kinds = [K.dtype for K in self.matrices]
        return {kind: np.flatnonzero([own == kind for own in kinds]) for kind in dict.fromkeys(kinds)}

    def _empty(self, count: int, n: int) -> list[FloatArray]:
        """Memory for weighted sums: that of earlier sums that were released, and one new block."""
        found: list[FloatArray] = []
        while self.released and n == self.n_samples and len(found) < count:
            found.append(self.released.pop())
        return [*found, *np.empty((count - len(found), n, n))]

    def _empty_rows(self, sizes: Sequence[int]) -> list[FloatArray]:
        """Memory for rows: that of sums that were released, as far as it goes."""
        found: list[FloatArray] = []
        room: FloatArray = np.empty((0, self.n_samples))
        for size in sizes:
            if size > len(room) and self.released:
                room = self.released.pop()
            enough = size <= len(room)
            found.append(room[:size] if enough else np.empty((size, self.n_samples)))
            room = room[size if enough else 0 :]
        return found

    def release(self, K: FloatArray) -> None:
        """Keep the memory for the next sum: memory that was used before is faster than new memory."""
        room = K.room if isinstance(K, RowsOnDemand) else K
        again = any(room is other for other in self.released)
        if isinstance(room, np.ndarray) and len(self.released) < MOST_RELEASED and not again:
            self.released.append(room)

    def square(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        chosen = np.asarray(samples)
        many = len(chosen) >= MANY_ROWS * self.n_samples and (np.diff(chosen) > 0).all()
        out = (self._square_of_rows if many else self._square_of_entries)(chosen, weights)
        mirror_lower(out)
        live = np.count_nonzero(weights * self.scales)
        self._count(0.5 * live * (len(chosen) / max(self.n_samples, 1)) ** 2)
        return out

    def _square_of_rows(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        """The lower triangle of `square`, from whole rows up to the diagonal; samples increase."""
        from ._matrix_loops import take_block

        columns, kinds = samples.astype(np.uintp), self._by_kind(weights[None], 4)
        out = np.empty((len(samples), len(samples)))

        def add(some: slice) -> None:
            size = some.stop - some.start
            rows = np.empty((size, self.n_samples))
            self._add_lower(rows, samples[some], kinds)
            take_block(rows, np.arange(size), columns[: some.stop], out[some])

        deque(map_tiles(add, tiles(len(samples), ROWS_EACH)), maxlen=0)
        return out

    def _square_of_entries(self, samples: IntArray, weights: FloatArray) -> FloatArray:
        """The lower triangle of `square`, entry by entry."""
        from ._matrix_loops import add_square_eight

        size, chosen, (factors, matrices) = len(samples), samples.astype(np.uintp), self._live(weights)
        out, eights = np.zeros((size, size)), _eights(matrices, factors)

        def add(start: int) -> None:
            for eight, w in eights:
                add_square_eight(out, *eight, chosen, w, start, min(start + step, size))

        step = max(1, ROW_BLOCK_BYTES // (8 * max(size, 1)))
        deque(map_tiles(add, range(0, size, step)), maxlen=0)
        return out

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        from ._matrix_loops import add_product

        columns = np.ascontiguousarray(alpha.reshape(self.n_samples, -1).T, dtype=np.float64)
        if rows is None:
            live = np.flatnonzero(weights * self.scales)
            if len(columns) == 1 and len(live) <= FEW_KERNELS:
                out = weights[live] @ self._kept_products(columns[0], live)
                return np.asarray(out.reshape(alpha.shape))
        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        out = np.zeros((len(columns), len(chosen)))
        for factor, K in zip(*self._live(weights), strict=True):
            for column, total in zip(columns, out, strict=True):
                add_product(total, K, chosen, factor, column)
            self._count(len(chosen) / self.n_samples)
        return out.T.reshape(len(chosen), *alpha.shape[1:])

    def _kept_products(self, alpha: FloatArray, kernels: IntArray) -> FloatArray:
        """K_m alpha on all samples, kept until another alpha is asked for."""
        kept = self._kept
        if not np.array_equal(kept[0], alpha):
            kept = self._kept = (alpha.copy(), {})
        known = kept[1]  # other models may keep theirs meanwhile
        new = [m for m in kernels.tolist() if m not in known]
        if new:
            known.update(zip(new, self._products_of_all(alpha[None], np.array(new))[0], strict=True))
        return np.array([known[m] for m in kernels.tolist()]).reshape(len(kernels), self.n_samples)

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        return self.products_each(alpha[:, None], kernels, [rows])[0]

    def products_each(
        self, alpha: FloatArray, kernels: IntArray | None, rows: Sequence[IntArray | None]
    ) -> list[FloatArray]:
        from ._matrix_loops import multiply_many_rows

        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        columns = np.ascontiguousarray(alpha.T, dtype=np.float64)
        if all(some is None for some in rows):
            return self._products_of_all(columns, chosen)
        every = np.arange(self.n_samples)
        lists = ByRow.of([every if some is None else np.asarray(some) for some in rows])
        found = np.empty((len(chosen), len(lists.places)))
        for kind, members in self._kinds.items():
            own = np.flatnonzero(np.isin(chosen, members))
            part = np.empty((len(own), found.shape[1]))
            given = (self._places[chosen[own]], np.empty(0, kind), *lists[:3], lists.places)
            multiply_many_rows(part, *given, columns)
            found[own] = part
        self._count(len(lists.rows) / self.n_samples * len(chosen))
        found *= self.scales[chosen][:, None]
        return np.split(found, np.cumsum(lists.sizes)[:-1], axis=1)

    def _products_of_all(self, columns: FloatArray, chosen: IntArray) -> list[FloatArray]:
        """K_m alpha on all samples, from the rows where alpha is not zero."""
        from ._matrix_loops import add_rows

        out = np.zeros((len(columns), len(chosen), self.n_samples))
        supports = [np.flatnonzero(column) for column in columns]
        for place, m in enumerate(chosen):
            for own, column, support in zip(out, columns, supports, strict=True):
                add_rows(own[place], self.matrices[m], support, self.scales[m] * column[support])
        read = np.count_nonzero(columns.any(axis=0)) / self.n_samples
        self._count(read * len(chosen))
        return list(out)

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        columns = alpha.reshape(self.n_samples, -1)
        known = self._known_products(columns)
        if not known:
            return self._quad(columns, kernels)
        # predictions came from these products: both values of a certificate are to be those of one matrix,
        # also if that is symmetric up to rounding only
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        new = [m for m in chosen.tolist() if m not in known]
        squares = dict(zip(new, self._quad(columns, np.array(new, dtype=int)).tolist(), strict=True))
        squares.update({m: float(product @ columns[:, 0]) for m, product in known.items()})
        return np.array([squares[m] for m in chosen.tolist()])

    def _known_products(self, columns: FloatArray) -> dict[int, FloatArray]:
        """The products K_m alpha that are kept, if they are those of the only column."""
        alpha, products = self._kept
        same = columns.shape[1] == 1 and products and np.array_equal(alpha, columns[:, 0])
        return products if same else {}

    def _quad(self, columns: FloatArray, kernels: IntArray | None) -> FloatArray:
        support = np.flatnonzero(columns.any(axis=1))
        if np.count_nonzero(columns) < OFTEN * len(support) or len(support) == 0:
            return np.asarray(self.quad_each(columns, kernels).sum(axis=0))
        return self._quad_of_all(columns, support, kernels)

    def _quad_of_all(self, alpha: FloatArray, support: IntArray, kernels: IntArray | None) -> FloatArray:
        """sum_c a_c' K_m a_c = <K_m, A A'>: one product per entry, of lower rows of A A' and of every K_m."""
        from ._matrix_loops import inner_lower_eight

        chosen, eights = self._chosen(kernels)
        step = max(1, OUTER_BYTES // (8 * self.n_samples))

        def add(some: slice) -> FloatArray:
            rows, total = support[some], np.zeros((len(eights), 8))
            P = alpha[rows] @ alpha[: rows[-1] + 1].T
            for own, (eight, _) in zip(total, eights, strict=True):
                inner_lower_eight(own, *eight, rows, P)
            return total.ravel()[: len(chosen)]

        total = sum(map_tiles(add, tiles(len(support), step)), np.zeros(len(chosen)))
        self._count(0.5 * len(support) / self.n_samples * len(chosen))
        return np.asarray(self.scales[chosen] * total)

    def quad_each(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        """Eight matrices at a time: their rows come from memory side by side, and alpha once for all."""
        from ._matrix_loops import quad_eight, quad_gather

        chosen, eights = self._chosen(kernels)
        columns = np.ascontiguousarray(alpha.T, dtype=np.float64)
        lists = ByRow.of([np.flatnonzero(column) for column in columns])

        def forms(eight: Eight) -> FloatArray:
            out = np.zeros((len(columns), 8))
            quad_eight(out, *eight.matrices, *lists[:3], columns)
            return out

        if len(columns) == 1 and len(lists.rows) < SMALL_SUPPORT * self.n_samples:
            matrices = [self.matrices[m] for m in chosen]
            found = np.array([[quad_gather(K, lists.rows, columns[0]) for K in matrices]])
        else:
            found = np.hstack([*map_tiles(forms, eights), np.empty((len(columns), 0))])[:, : len(chosen)]
        self._count(0.5 * len(lists.rows) / self.n_samples * len(chosen))
        return np.asarray(self.scales[chosen] * found)

    def quad_and_products(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Both in one reading, where alpha has one column, often not zero, and there are few kernels."""
        from ._matrix_loops import multiply_lower

        support = np.flatnonzero(alpha)
        few = len(support) < SMALL_SUPPORT * self.n_samples
        if alpha.size != self.n_samples or few or self.n_kernels > self.n_samples:
            return super().quad_and_products(alpha)
        column = alpha.ravel().astype(np.float64)
        if self.n_kernels <= FEW_KERNELS:
            found = self._kept_products(column, np.arange(self.n_kernels))
            return found @ column, found
        found = np.empty((self.n_kernels, self.n_samples))
        for kind, members in self._kinds.items():

            def multiply(some: slice, kind: np.dtype = kind, members: IntArray = members) -> None:
                own = np.empty((some.stop - some.start, self.n_samples))
                multiply_lower(own, self._places[members[some]], np.empty(0, kind), support, column)
                found[members[some]] = own

            deque(map_tiles(multiply, tiles(len(members), MATRICES_EACH)), maxlen=0)
        self._count(0.5 * len(support) / self.n_samples * self.n_kernels)
        found *= self.scales[:, None]
        for m, product in self._known_products(column[:, None]).items():
            found[m] = product  # as in `quad`
        return found @ column, found

    def _chosen(self, kernels: IntArray | None) -> tuple[IntArray, list[Eight]]:
        """Kernels, all by default, and their matrices eight by eight."""
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        return chosen, _eights([self.matrices[m] for m in chosen], np.ones(len(chosen)))

    def inner(self, A: FloatArray) -> FloatArray:
        flat = np.ascontiguousarray(A).ravel()
        self._count(self.n_kernels)
        return np.asarray(self.scales * np.array([float(flat @ K.ravel()) for K in self.matrices]))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return self.rows_each([indices], weights[None])[0]

    def diag(self, weights: FloatArray) -> FloatArray:
        known = self.cached_diagonals
        if known is not None and len(known) == self.n_kernels > 1:
            return np.asarray(np.broadcast_to(weights @ known, self.n_samples).copy())
        out = np.zeros(self.n_samples)
        for factor, K in zip(*self._live(weights), strict=True):
            out += factor * K.diagonal()
        return out

    def _diagonals(self) -> FloatArray:
        if self.n_kernels > MOST_DIAGONALS:
            return super()._diagonals()
        return np.asarray(self.scales[:, None] * np.array([K.diagonal() for K in self.matrices]))

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        if samples is not None and self.first is not None and np.array_equal(samples, self.first[0]):
            matrices = [self.first[1][m] for m in chosen]
        elif samples is not None:
            matrices = self._square_parts([self.matrices[m] for m in chosen], np.asarray(samples))
        else:
            matrices = [self.matrices[m] for m in chosen]
        unrounded = None if self.unrounded is None else self.unrounded.take(samples, chosen)
        return type(self)(matrices, self.scales[chosen], unrounded)

    def _square_parts(self, matrices: list[FloatArray], samples: IntArray) -> list[FloatArray]:
        from ._matrix_loops import take_square

        size, kinds, chosen = len(samples), {K.dtype for K in matrices}, samples.astype(np.uintp)
        self._count(0.5 * len(matrices) * (size / self.n_samples) ** 2)
        kind, count = max(kinds, key=lambda kind: kind.itemsize), len(matrices) * size**2
        if kind == np.float64 and self.released and self.released[-1].size >= count:
            room = self.released.pop().reshape(-1)[:count]
        else:  # one array for all of them: its memory comes in large pages
            room = np.empty(count, kind)
        parts = room.reshape(len(matrices), size, size)

        def take(m: int) -> None:
            take_square(matrices[m], chosen, parts[m])

        deque(map_tiles(take, range(len(matrices))), maxlen=0)
        return list(parts)

    def _live(self, weights: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Factors and matrices of the kernels whose factor is not zero."""
        factors = weights * self.scales
        live = np.flatnonzero(factors)
        return factors[live], [self.matrices[m] for m in live]


class ByRow(NamedTuple):
    """Lists of samples turned into samples and the lists they are in.

    Attributes
    ----------
    rows : ndarray of int
        The samples that are in some list, in order.
    cuts, lists : ndarray of int
        Sample rows[r] is in lists[cuts[r]:cuts[r + 1]].
    places : ndarray of int
        Position of each of these when the lists are put one after another.
    sizes : list of int
        Sizes of the lists.
    """

    rows: IntArray
    cuts: IntArray
    lists: IntArray
    places: IntArray
    sizes: list[int]

    @classmethod
    def of(cls, lists: Sequence[IntArray]) -> ByRow:
        """Samples of lists; a sample may be in a list twice."""
        if len(lists) == 1 and (np.diff(lists[0]) > 0).all():
            every = np.arange(len(lists[0]) + 1)
            return cls(lists[0], every, np.zeros_like(every[1:]), every[:-1], [len(lists[0])])
        samples, sizes = np.concatenate(lists), [len(some) for some in lists]
        places = np.argsort(samples, kind="stable")
        rows, first = np.unique(samples[places], return_index=True)
        owners = np.repeat(np.arange(len(lists)), sizes)
        return cls(rows, np.append(first, len(samples)), owners[places], places, sizes)


class Kind(NamedTuple):
    """Matrices of one precision: their addresses, an empty array like them, and their factors (k, M)."""

    places: IntArray
    like: FloatArray
    factors: FloatArray


class Eight(NamedTuple):
    """Eight matrices that are read side by side, and their factors."""

    matrices: list[FloatArray]
    factors: FloatArray


def _eights(matrices: list[FloatArray], factors: FloatArray) -> list[Eight]:
    """Matrices eight by eight; the last one, with factor 0, fills the last eight.

    Examples
    --------
    >>> [len(eight.matrices) for eight in _eights([np.eye(2)] * 9, np.ones(9))]
    [8, 8]
    """
    found = []
    for some in tiles(len(matrices), 8):
        part, w = matrices[some], np.zeros(8)
        w[: len(part)] = factors[some]
        found.append(Eight(part + part[-1:] * (8 - len(part)), w))
    return found
