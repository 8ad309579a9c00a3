"""Metrics of survival against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelweave.metrics import concordance_harrell


def harrell_by_pairs(event: Any, time: Any, risk: Any, weight: Any) -> float:
    """The definition, pair by pair."""
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[i] < time[j] or (time[i] == time[j] and not event[j]):
                pairs += weight[i] * weight[j]
                right += weight[i] * weight[j] * np.heaviside(risk[i] - risk[j], 0.5)
    return right / pairs


@pytest.mark.parametrize("seed", range(6))
def test_harrell_is_its_definition(seed: int) -> None:
    """Ties of times and risks, and lengths around powers of 2."""
    rng = np.random.default_rng(seed)
    n = (3, 7, 8, 9, 31, 40)[seed]
    event, time = rng.random(n) < 0.6, rng.integers(0, n // 2 + 1, n).astype(float)
    event[0], time[0] = True, -1.0  # earlier than all others
    risk, weight = rng.integers(0, 5, n) / 4, rng.integers(1, 4, n).astype(float)
    assert concordance_harrell(event, time, risk) == pytest.approx(
        harrell_by_pairs(event, time, risk, np.ones(n)), abs=1e-14
    )
    weighted = concordance_harrell(event, time, risk, weight)
    assert weighted == pytest.approx(harrell_by_pairs(event, time, risk, weight), abs=1e-14)
    copies = np.repeat(np.arange(n), weight.astype(int))
    repeated = concordance_harrell(event[copies], time[copies], risk[copies])
    assert repeated == pytest.approx(weighted, abs=1e-14)


def test_harrell_of_nothing_to_compare() -> None:
    assert np.isnan(concordance_harrell([False, False], [1.0, 2.0], [0.0, 1.0]))
    assert np.isnan(concordance_harrell([True], [1.0], [0.0]))
    assert np.isnan(concordance_harrell([True, True], [1.0, 1.0], [0.0, 1.0]))
    assert concordance_harrell([True, False], [0.0, 0.0], [1.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"event": [0, 2]}, "event must be"),
        ({"time": [1.0, np.nan]}, "time must be"),
        ({"risk": [[1.0], [2.0]]}, "risk must be"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight has negative"),
        ({"risk": [1.0]}, "inconsistent numbers"),
    ],
)
def test_harrell_says_what_is_wrong(wrong: dict[str, Any], message: str) -> None:
    right = {"event": [1, 0], "time": [1.0, 2.0], "risk": [1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        concordance_harrell(**(right | wrong))
