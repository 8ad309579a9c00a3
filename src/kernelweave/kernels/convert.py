"""The kernels by name, and everything that stands for a kernel turned into one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .._registry import Registry, did_you_mean
from .bandwidth import RBF, Chi2, Laplacian
from .base import Kernel
from .function import FunctionKernel, GPKernel, is_gp_kernel
from .matern import Matern
from .precomputed import Precomputed
from .products import Constant, HistogramIntersection, Linear, Polynomial, Tanimoto
from .pyramid import SpatialPyramid
from .strings import Spectrum, WeightedDegree

KERNELS = Registry(
    "kernel",
    (
        Chi2,
        Constant,
        FunctionKernel,
        GPKernel,
        HistogramIntersection,
        Laplacian,
        Linear,
        Matern,
        Polynomial,
        Precomputed,
        RBF,
        SpatialPyramid,
        Spectrum,
        Tanimoto,
        WeightedDegree,
    ),
)


EXPECTED = (
    "a kernel such as RBF(), its name, a scikit-learn Gaussian-process kernel, a function of (X, Z) "
    "or a square Gram matrix"
)


def as_kernel(value: Any, argument: str = "kernels") -> Kernel:
    """The kernel that `value` stands for; `argument` is the parameter to name in errors.

    Examples
    --------
    >>> as_kernel("linear")
    Linear()
    """
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return _by_name(value, argument)
    if inspect.isclass(value):
        raise ValueError(f"{argument}: {value.__name__} is a class, pass an object: {value.__name__}(...).")
    if is_gp_kernel(value):
        return GPKernel(value)
    if hasattr(value, "__array__"):
        return _by_matrix(value, argument)
    if callable(value):
        return FunctionKernel(value)
    raise ValueError(
        f"{argument}: {value!r} is not a kernel, expected {EXPECTED}; several go into a list or a dict."
    )


def _by_name(name: str, argument: str) -> Kernel:
    if name not in KERNELS:
        known = ", ".join(repr(key) for key in ["auto", *sorted(KERNELS)])
        raise ValueError(
            f"{argument}: {name!r} is not a kernel, the names are {known}; or pass a Kernel object."
            f"{did_you_mean(name, ['auto', *KERNELS])}"
        )
    kernel_class = KERNELS[name]
    needed = [p.name for p in inspect.signature(kernel_class).parameters.values() if p.default is p.empty]
    if needed:
        call = f"{kernel_class.__name__}({', '.join(needed)})"
        raise ValueError(f"{argument}: {name!r} needs {' and '.join(needed)}, pass {call}.")
    result: Kernel = kernel_class()
    return result


def _by_matrix(value: Any, argument: str) -> Kernel:
    shape = tuple(value.shape)
    if len(shape) == 3 and shape[0] == shape[1]:
        raise ValueError(
            f"{argument}: an array of shape {shape} is not a Gram matrix but several: pass "
            "kernels='precomputed', and the array as X to `fit`."
        )
    if getattr(value, "dtype", np.dtype(float)).kind == "O":
        raise ValueError(f"{argument}: an array of objects is not a kernel; several kernels go into a list.")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{argument}: an array of shape {shape} is not a Gram matrix, which is square; pass data to "
            "`fit` and kernels here."
        )
    return Precomputed(value)
