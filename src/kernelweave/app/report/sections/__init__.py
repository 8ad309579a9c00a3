"""The sections of the page, each a function of the report; None where there is nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..html import Html
from .contribution import contribution
from .convergence import convergence, path
from .errors import errors
from .fitted import fitted
from .header import header
from .redundancy import redundancy
from .reproduce import reproduce
from .samples import sample_data, samples
from .score import score
from .weights import weights

#: id, heading and maker of each section, in their order on the page
SECTIONS: list[tuple[str, str, Callable[[Any], Html | None]]] = [
    ("fitted", "What was fitted, and on what", fitted),
    ("score", "Score against baselines", score),
    ("weights", "Kernel weights", weights),
    ("contribution", "What each kernel adds", contribution),
    ("samples", "Sample by sample", samples),
    ("redundancy", "Redundancy", redundancy),
    ("errors", "Where it is wrong", errors),
    ("path", "Path", path),
    ("convergence", "Convergence", convergence),
    ("reproduce", "Settings to reproduce it", reproduce),
]

__all__ = ["SECTIONS", "header", "sample_data"]
