"""The door to the data sets: public ones, found in a folder, in the cache, or downloaded and checked.

Examples
--------
>>> from kernelweave import datasets
>>> "sonar" in datasets.names()
True
"""

from __future__ import annotations

from .app.datasets import ChecksumError, DataNotFoundError, Dataset, find, info, load, load_arrays, names

__all__ = ["ChecksumError", "DataNotFoundError", "Dataset", "find", "info", "load", "load_arrays", "names"]
