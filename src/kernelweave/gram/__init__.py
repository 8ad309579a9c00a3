"""Gram engines: M kernel matrices on n samples behind one interface.

Read in this order: `base` (what an engine is); `shared` and `sharing` (what kernels share, and which kernels
share it), `blocks` (tiles of all kernels, normalised); the engines `dense`, `packed`, `blocked` and `cached`,
then `lowrank`, `torch` and `dask`; `choice` (which engine a fit gets); `sources` and `dictionary` (the
kernels of one fit); `predictor`, `terms` and `games` (what remains of a fit, and how its values are split
among features). `stack`, `store`, `tables` and `parquet` hold what users pass in.
"""

from .._registry import Registry
from .base import Gram
from .blocked import BlockedGram
from .cached import CachedGram
from .dask import DaskGram
from .dense import DenseGram
from .dictionary import Dictionary, parse_memory
from .lowrank import LowRankGram
from .packed import PackedGram, StoreGram
from .parquet import ParquetTable
from .predictor import Predictor, Spread
from .sources import FeatureSource, FoldSource, KernelSource, ParametricSource, StackFoldSource, StackSource
from .stack import KernelStack
from .store import GramStore
from .torch import TorchGram

#: the engines; "auto" takes the first that can serve a fit within its memory
GRAMS = Registry(
    "gram",
    (DenseGram, PackedGram, CachedGram, StoreGram, BlockedGram, LowRankGram, TorchGram, DaskGram),
)

__all__ = [
    "GRAMS",
    "BlockedGram",
    "CachedGram",
    "DenseGram",
    "Dictionary",
    "FeatureSource",
    "FoldSource",
    "Gram",
    "GramStore",
    "KernelSource",
    "KernelStack",
    "PackedGram",
    "ParametricSource",
    "ParquetTable",
    "Predictor",
    "Spread",
    "StackFoldSource",
    "StackSource",
    "StoreGram",
    "parse_memory",
]
