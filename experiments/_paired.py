"""Paired differences of two methods over repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from reproduce import mean, standard_error


def differences(
    rows: list[dict[str, Any]], column: str, first: str, second: str, **settings: Any
) -> list[float]:
    """What the first method has more than the second, one value per repetition (seed) that both have."""
    kept = [row for row in rows if all(row.get(name) == wanted for name, wanted in settings.items())]
    values: list[dict[int, float]] = []
    for method in (first, second):
        mine = [row for row in kept if row["method"] == method and column in row]
        seeds = sorted({row["seed"] for row in mine})
        values.append({seed: mean([row[column] for row in mine if row["seed"] == seed]) for seed in seeds})
    return [values[0][seed] - values[1][seed] for seed in values[0] if seed in values[1]]


def clear(found: list[float]) -> bool:
    """Above zero by two standard errors (one repetition has none)."""
    return bool(mean(found) > 2.0 * np.nan_to_num(standard_error(found)))
