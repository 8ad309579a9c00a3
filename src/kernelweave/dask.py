"""Fits on a Dask cluster: ``gram="dask"`` spreads the kernels over its workers.

    from dask.distributed import Client
    client = Client()                                   # the cores of this machine, or a cluster's address
    model = kw.MKLClassifier(kernels, gram="dask").fit(X, y)

Nothing else is needed. This module has the engine itself, for your own solvers, and `find_client`.
Install with ``pip install "kernelweave[dask]"``.
"""

from ._cluster import find_client
from .gram.dask import DaskGram

__all__ = ["DaskGram", "find_client"]
