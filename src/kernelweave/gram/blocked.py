"""Nothing kept: every pass computes the kernels anew, a tile at a time."""

from __future__ import annotations

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
