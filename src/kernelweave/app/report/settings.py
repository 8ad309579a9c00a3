"""What it takes to fit the same model again: parameters, code, versions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from inspect import signature
from pprint import pformat
from typing import Any

from ..._words import versions
from .data import Settings
from .given import Subject

#: characters of code beyond which long arguments are cut
LONGEST = 4000

#: parameters that do not change the model
ASIDE = ("checkpoint", "verbose")

#: the packages of parts
MODULES = ("kernels", "regularizers", "losses", "solvers")


def settings(given: Subject) -> Settings:
    """Parameters of the model as it was made, and code that makes it."""
    parameters = {name: readable(value) for name, value in given.model.get_params(deep=False).items()}
    return Settings(parameters, versions(), code(given), now(), given.random_state)


def readable(value: Any) -> Any:
    """A parameter as JSON can hold it: numbers and text as they are, objects by their representation."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, dict):
        return {str(key): readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [readable(item) for item in value]
    return shown(value)


def shown(value: Any) -> str:
    """`repr` on one line."""
    return re.sub(r"\s+", " ", repr(value))


def spelled(value: Any) -> str:
    """`repr` as a person would break it into lines, indented as an argument."""
    text = pformat(value, width=88, sort_dicts=False) if isinstance(value, dict | list) else shown(value)
    return text.replace("\n", "\n    ")


def now() -> str:
    """The time of the report; SOURCE_DATE_EPOCH fixes it for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def code(given: Subject) -> str:
    """Python that makes and fits the model."""
    call = constructor(given.model)
    homes: dict[str, set[str]] = {}
    for part in {type(part) for part in parts_of(given.model)}:
        if re.search(rf"(?<!kw\.)\b{part.__name__}\(", call):
            homes.setdefault(home(part), set()).add(part.__name__)
    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(homes.items())]
    lines += ["from sklearn.pipeline import make_pipeline"] if hasattr(given.model, "steps") else []
    first = ["import numpy as np"] if "np." in call else []
    return "\n".join([*first, "import kernelweave as kw", *lines, "", f"model = {call}", "model.fit(X, y)"])


def parts_of(value: Any) -> Iterator[Any]:
    """The objects that a model was made of: kernels, regularisers, losses, transformers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from parts_of(item)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        yield value
        yield from parts_of(value.get_params(deep=False))


def home(part: type) -> str:
    """The module to import a class from: the public one where it has one."""
    for module in (f"kernelweave.{name}" for name in MODULES):
        if part.__module__.startswith(module) and part.__name__ in import_module(module).__all__:
            return module
    return part.__module__.split("._")[0]


def constructor(model: Any) -> str:
    """The call that makes the model; parameters at their defaults are left out."""
    if hasattr(model, "steps"):
        return f"make_pipeline({', '.join(constructor(step) for _, step in model.steps)})"
    if not type(model).__module__.startswith("kernelweave"):
        return shown(model)
    default = {name: parameter.default for name, parameter in signature(type(model)).parameters.items()}
    given = {k: v for k, v in model.get_params(deep=False).items() if k not in ASIDE}
    changed = {k: v for k, v in given.items() if shown(v) != shown(default[k])}
    arguments = [f"{key}={_cut(spelled(value))}" for key, value in changed.items()]
    one_line = ", ".join(arguments)
    lines = "".join(f"\n    {argument}," for argument in arguments)
    return f"kw.{type(model).__name__}({one_line if len(one_line) <= 70 else lines + chr(10)})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ...  # cut; all of it is in the settings"
