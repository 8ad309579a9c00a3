"""Gram matrices spread over the workers of a Dask cluster; distributed is imported when one is used."""

from .engine import DaskGram

__all__ = ["DaskGram"]
