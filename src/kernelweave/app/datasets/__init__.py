"""Public data sets the experiments use: found in a folder, in the cache, or downloaded and checked.

`load` looks in the folder ``KERNELWEAVE_DATA``, then, in a checkout, in ``../shared/data`` beside it, then in
the cache (``KERNELWEAVE_CACHE``, by default the cache folder of the system), and then asks OpenML or the
original address. What was downloaded is compared with a SHA-256 of its arrays and kept in the cache. With
neither file nor network there is one error, which names the file and where to put it.

Examples
--------
>>> from kernelweave import datasets
>>> "sonar" in datasets.names()
True
>>> datasets.info("sonar").citation
'Gorman & Sejnowski 1988'
"""

from __future__ import annotations

from .catalogue import Dataset, info, names
from .loading import ChecksumError, DataNotFoundError, find, load, load_arrays

__all__ = ["ChecksumError", "DataNotFoundError", "Dataset", "find", "info", "load", "load_arrays", "names"]
