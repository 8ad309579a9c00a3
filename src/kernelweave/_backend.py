"""Arrays that are not NumPy's: which device a fit runs on, and results that follow their input."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

#: what `device` may be, in words
DEVICES = "'cuda', 'cuda:1', ..., or 'torch:cpu'; None or 'cpu' for NumPy"


class Lazy:
    """A module that is imported when something of it is asked for.

    Names in double underscores do not count: they are what `inspect`, `doctest`, `copy` and `pickle` ask of
    anything they meet, and looking at a module must neither import another nor fail without it.
    """

    def __init__(self, name: str, remedy: str) -> None:
        self._name, self._remedy = name, remedy

    def __getattr__(self, attribute: str) -> Any:
        module = sys.modules.get(self._name)
        if module is None and attribute.startswith("__"):
            raise AttributeError(f"{self._name}.{attribute}: {self._name} has not been imported yet")
        try:
            module = importlib.import_module(self._name) if module is None else module
        except ImportError as error:
            raise ImportError(self._remedy) from error
        return getattr(module, attribute)


#: torch, imported at its first use
torch: Any = Lazy(
    "torch",
    'device needs torch: pip install "kernelweave[torch]" (choose the build for your GPU as pytorch.org '
    "says), or leave device=None.",
)


def resolve_device(device: Any) -> Any:
    """The torch device of a `device` parameter, or None for NumPy.

    Parameters
    ----------
    device : None, str or torch.device
        "cuda" (or "cuda:1", ...) is a GPU; "torch:cpu" runs the same code on torch's CPU device;
        None and "cpu" mean NumPy.

    Examples
    --------
    >>> resolve_device(None), resolve_device("cpu")
    (None, None)
    """
    if device is None or device == "cpu":
        return None
    name = str(device)
    name = name.removeprefix("torch:") if name.startswith("torch:") else name
    if name.split(":")[0] not in ("cuda", "cpu"):
        raise ValueError(f"device={device!r} is not known: pass {DEVICES}.")
    found = torch.device(name)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}: torch {torch.__version__} sees no CUDA device; install a CUDA build of "
            "torch and a driver, or leave device=None (device='torch:cpu' runs the same code on the CPU)."
        )
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device={device!r}: there are {torch.cuda.device_count()} CUDA devices.")
    return found


def device_of(X: Any) -> str | None:
    """The `device` that data are on; None for NumPy data.

    Examples
    --------
    >>> device_of(np.zeros(2)) is None
    True
    """
    if is_tensor(X):
        return f"torch:{X.device}" if X.device.type == "cpu" else str(X.device)
    return f"cuda:{X.device.id}" if is_cupy(X) else None


def is_tensor(X: Any) -> bool:
    """Whether X is a tensor of torch; torch is not imported to find out."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(X, module.Tensor)


def is_cupy(X: Any) -> bool:
    """Whether X is an array of CuPy."""
    return type(X).__module__.split(".")[0] == "cupy"


def to_host(X: Any) -> Any:
    """A tensor or CuPy array as a NumPy array; anything else as it is.

    Examples
    --------
    >>> to_host([1, 2])
    [1, 2]
    """
    if is_tensor(X):
        return X.detach().cpu().numpy()
    return X.get() if is_cupy(X) else X


def follow(values: Any, X: Any) -> Any:
    """NumPy `values` moved to where X is: a tensor on its device, an array of CuPy, or as they are.

    Values that neither can hold, such as text labels, stay as they are.

    Examples
    --------
    >>> follow(np.ones(2), [1.0])
    array([1., 1.])
    """
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        return values
    if is_tensor(X):
        return torch.from_numpy(np.ascontiguousarray(values)).to(X.device)
    if is_cupy(X):
        cupy = importlib.import_module("cupy")
        with X.device:
            return cupy.asarray(values)
    return values


def free_bytes(device: Any) -> int | None:
    """Bytes still free on a device, including those that torch holds for reuse; None on the CPU."""
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + held)
