"""``kernelweave info``: versions, threads, memory and devices."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from typing import Any

from . import _options as opt
from ._errors import guarded

OPTIONAL = ("pyarrow", "matplotlib", "torch")


@guarded
def info(as_json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show versions, BLAS and threads, memory, and the GPU that torch sees if it is installed."""
    from rich.table import Table
    from rich.text import Text

    from ._console import out, print_json

    facts = collect()
    if as_json:
        print_json(facts)
        return
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, Text(words(value)))
    out().print(table)


def collect() -> dict[str, Any]:
    """All there is to know about the installation."""
    from ...gram.choice import free_memory, show_bytes
    from ._facts import versions

    free = free_memory()
    return {
        "versions": versions(),
        "optional": {name: installed(name) for name in OPTIONAL},
        "platform": platform.platform(),
        "cores": {"usable": usable_cores(), "machine": os.cpu_count()},
        "thread pools": thread_pools(),
        "free memory": None if free is None else {"bytes": free, "text": show_bytes(free)},
        "GPU": gpu(),
    }


def usable_cores() -> int | None:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def installed(name: str) -> str | None:
    """Version of an optional package, None without it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def thread_pools() -> list[dict[str, Any]]:
    """BLAS and OpenMP libraries in use, and their threads."""
    import numpy as np
    import scipy.linalg  # noqa: F401  # loads its own BLAS
    from threadpoolctl import threadpool_info

    np.zeros((2, 2)) @ np.zeros((2, 2))
    names = ("internal_api", "version", "num_threads", "user_api")
    return [{name: pool.get(name) for name in names} for pool in threadpool_info()]


def gpu() -> dict[str, Any] | str:
    """Devices that torch sees."""
    if find_spec("torch") is None:
        return "torch is not installed (pip install 'kernelweave[torch]')"
    try:
        import torch

        if not torch.cuda.is_available():
            return f"none seen by torch {torch.__version__}"
        count = torch.cuda.device_count()
        return {f"cuda:{k}": torch.cuda.get_device_name(k) for k in range(count)}
    except Exception as error:  # a broken torch must not hide the rest
        return f"torch cannot be used ({error})"


def words(value: Any) -> str:
    """A value on one or several lines."""
    if isinstance(value, dict):
        return "\n".join(
            f"{key} {'not installed' if inner is None else inner}" for key, inner in value.items()
        )
    if isinstance(value, list):
        return "\n".join(", ".join(str(v) for v in row.values() if v is not None) for row in value)
    return str(value)
