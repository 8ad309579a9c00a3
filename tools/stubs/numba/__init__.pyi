"""What kernelweave uses of numba, for mypy: compiled functions are plain functions to their callers."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

_R = TypeVar("_R")

@overload
def njit(function: Callable[..., _R], /) -> Callable[..., _R]: ...
@overload
def njit(**options: object) -> Callable[[Callable[..., _R]], Callable[..., _R]]: ...
def __getattr__(name: str) -> Any: ...
