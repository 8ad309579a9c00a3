"""What the data sets are, whom to cite, and where they come from: the records of ``catalogue.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from . import readers


@dataclass(frozen=True)
class Dataset:
    """A data set: what it is, and where it comes from.

    Parameters
    ----------
    name : str
        Name of the set, and of its file without ``.npz``.
    description : str
        What the samples and the targets are.
    citation : str
        Who made it.
    target : str, optional
        For sets with several targets, the one `load` predicts unless told otherwise.
    real : bool
        Whether samples are returned as float64; large sets keep the type they are stored in.
    openml : int, optional
        Data id on OpenML.
    urls : tuple of str
        Original addresses, where it is not OpenML.
    reader : callable, optional
        Turns what was downloaded into arrays; None for sets without a public address.
    sha256 : str
        Checksum of samples and targets in single precision.

    Examples
    --------
    >>> Dataset("tiny", "two samples", "nobody").target is None
    True
    """

    name: str
    description: str
    citation: str
    target: str | None = None
    real: bool = True
    openml: int | None = None
    urls: tuple[str, ...] = ()
    reader: Callable[..., dict[str, np.ndarray]] | None = None
    sha256: str = ""


def names() -> list[str]:
    """Names of all data sets.

    Examples
    --------
    >>> from kernelweave.datasets import names
    >>> names()[:3]
    ['bbcsport', 'corn_nir', 'gasoline']
    """
    return sorted(_BY_NAME)


def info(name: str) -> Dataset:
    """What a data set is, whom to cite, where it comes from.

    Parameters
    ----------
    name : str
        One of `names()`.

    Examples
    --------
    >>> from kernelweave.datasets import info
    >>> info("tecator").target
    'fat'
    """
    if name not in _BY_NAME:
        raise ValueError(f"name={name!r} is not a data set; there are {', '.join(names())}.")
    return _BY_NAME[name]


def _record(name: str, reader: Any = None, urls: Any = (), **facts: Any) -> Dataset:
    """A table of the file as a data set; a reader followed by words is made by calling it with them."""
    if reader is not None:
        function, *words = reader
        reader = getattr(readers, function)
        reader = reader(*words) if words else reader
    return Dataset(name, reader=reader, urls=tuple(urls), **facts)


_FILE = tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
_BY_NAME = {name: _record(name, **facts) for name, facts in _FILE.items()}
