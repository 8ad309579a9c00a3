"""Views of noise, what is lost with them, and the verdict on it."""

from __future__ import annotations

from typing import Any

import noise_views
import numpy as np
import pytest


def rows_of(auto: dict[str, tuple[float, float]], splits: int = 2) -> list[dict[str, Any]]:
    """Rows of MKLAuto: accuracy of each set without noise and with 20 views of it, the same on all splits."""
    return [
        {"data": data, "noise": count, "method": "MKLAuto", "split": s, "accuracy": a, "seconds": 1.0}
        for data, pair in auto.items()
        for count, a in zip((0, 20), pair, strict=True)
        for s in range(splits)
    ]


def test_noise_is_nested_standard_normal_and_as_wide_as_the_median_view() -> None:
    views = {name: np.zeros((2000, width)) for name, width in (("a", 2), ("b", 7), ("c", 90))}
    few, many = (noise_views.with_noise(views, count, split=3) for count in (2, 5))
    assert list(many)[:3] == ["a", "b", "c"]
    assert len(many) == 8
    for name, X in few.items():
        np.testing.assert_array_equal(X, many[name])
    noise = np.hstack(list(many.values())[3:])
    assert noise.shape == (2000, 5 * 7)
    assert np.abs(noise.mean(axis=0)).max() < 5.0 / np.sqrt(2000)
    assert np.abs(np.corrcoef(noise.T) - np.eye(35)).max() < 5.0 / np.sqrt(2000)
    wide = noise_views.with_noise({"a": np.zeros((3, 400))}, 1, split=0)
    assert wide["noise 1"].shape == (3, noise_views.WIDEST)


@pytest.mark.parametrize(("lost", "verdict"), [(1.4, "reproduced"), (1.6, "contradicted")])
def test_the_verdict_is_on_points_lost_on_each_set_and_on_their_mean(lost: float, verdict: str) -> None:
    rows = rows_of({"mfeat": (98.0, 98.0 - lost), "protein fold": (60.0, 60.0), "rosmap": (75.0, 75.0)})
    lines = noise_views.summarise(rows).lines
    assert [line.what.partition(":")[0] for line in lines] == [*noise_views.SETS, "mean of the sets"]
    assert [line.verdict for line in lines] == [verdict, "reproduced", "reproduced", "reproduced"]
    assert lines[-1].ours == f"{lost / 3:.2f} ± 0.00"


def test_the_mean_of_the_sets_needs_all_of_them() -> None:
    rows = rows_of({"mfeat": (98.0, 97.0), "rosmap": (75.0, 75.0)})
    assert noise_views.averaged(rows) == []
    assert all(line.verdict == "undecided" for line in noise_views.summarise(rows[::2]).lines)
