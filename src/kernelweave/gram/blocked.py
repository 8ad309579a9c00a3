"""Nothing kept: every pass computes the kernels anew, a tile at a time."""

from __future__ import annotations

from .._typing import FloatArray, IntArray
from .blocks import Blocks
from .streamed import StreamedGram


class BlockedGram(StreamedGram):
    """M Gram matrices computed a tile at a time whenever they are asked for.

    Memory is that of the data and a few tiles, whatever the number of samples and kernels.
    `combine` and `quad` cost one computation of the kernels on half of the pairs.

    Parameters
    ----------
    kernels : Blocks, or matrices of shape (n, n)
    scales : ndarray of shape (M,), optional
        K_m = scales[m] * kernels[m].
    memory_limit : int, optional
        Bytes that `combine` may take for its result.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram.blocks import Blocks
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> gram = BlockedGram(Blocks.of_kernels([RBF(gamma).fit(X) for gamma in (0.1, 1.0)], X))
    >>> gram.rows(np.array([1]), np.array([0.5, 0.5])).round(3)
    array([[0.636, 1.   , 0.344]])
    """

    name = "blocked"


class Unrounded:
    """How kernels are computed whose values an engine keeps in single precision.

    Parameters
    ----------
    blocks : Blocks
        Normalised but for their scale.
    samples, kernels : ndarray of int, optional
        Those of the engine; all by default.
    """

    def __init__(
        self, blocks: Blocks, samples: IntArray | None = None, kernels: IntArray | None = None
    ) -> None:
        self.blocks, self.samples, self.kernels = blocks, samples, kernels

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Unrounded:
        """The same for some of these samples and kernels; nothing is copied yet."""
        return Unrounded(self.blocks, _among(self.samples, samples), _among(self.kernels, kernels))

    def found(self) -> Blocks:
        """The kernels meant."""
        everything = self.samples is None and self.kernels is None
        return self.blocks if everything else self.blocks.take(self.samples, self.kernels)

    def gram(self, scales: FloatArray) -> BlockedGram:
        """An engine that does not round."""
        return BlockedGram(self.found(), scales)


def _among(known: IntArray | None, chosen: IntArray | None) -> IntArray | None:
    """Positions among all, from positions among those known."""
    if known is None or chosen is None:
        return chosen if known is None else known
    return known[chosen]
