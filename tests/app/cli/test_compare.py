"""`compare`: nested cross-validation, ranked, with a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelweave.app.cli import _comparing, _methods
from kernelweave.app.cli._comparing import Contender, verdict

pytestmark = pytest.mark.system  # whole commands

Kw = Callable[..., Any]


@pytest.fixture
def views(tmp_path: Path, rng: np.random.Generator) -> Path:
    """One view decides, three are noise of a larger scale."""
    X = rng.normal(size=(90, 12))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 1).astype(int)
    np.savez(tmp_path / "v.npz", good=X[:, :3], n1=X[:, 3:6], n2=X[:, 6:9], n3=X[:, 9:], y=y)
    return tmp_path / "v.npz"


def test_ranked_table_with_errors_times_and_certificates(
    kw: Kw, views: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_comparing, "TREES", 20)
    monkeypatch.setattr(_methods, "COSTS", (0.1, 10.0))
    methods = "lp,gomp,uniform sum,best single kernel,random forest,linear model"
    result = kw("compare", views, "--methods", methods, "--folds", "3", "--kernel", "rbf", "--json", "-q")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    means = [row["score"] for row in document["methods"]]
    assert means == sorted(means, reverse=True)
    assert {row["method"] for row in document["methods"]} == set(methods.split(","))
    by_name = {row["method"]: row for row in document["methods"]}
    for row in document["methods"]:
        assert len(row["scores"]) == 3
        assert row["score"] == pytest.approx(np.mean(row["scores"]))
        assert row["error"] == pytest.approx(np.std(row["scores"], ddof=1) / np.sqrt(3))
        assert row["seconds"] > 0
    assert by_name["lp"]["certified"] == "yes"
    assert by_name["best single kernel"]["kernels_used"] == [1, 1, 1]
    assert by_name["uniform sum"]["kernels_used"] == [4, 4, 4]
    assert by_name["random forest"]["certified"] == "-"


def test_the_table_ends_with_the_verdict(kw: Kw, views: Path) -> None:
    result = kw("compare", views, "--methods", "gomp,linear model", "--folds", "2", "--kernel", "rbf", "-q")
    assert result.code == 0, result.err
    assert "linear model (baseline)" in result.out
    assert "helps" in result.out or "does not help" in result.out


def entry(name: str, scores: list[float], baseline: bool) -> Contender:
    return Contender(name, baseline, scores)


@pytest.mark.parametrize(
    ("learned", "simple", "helps", "word"),
    [
        ([0.9, 0.92, 0.94], [0.8, 0.81, 0.85], True, "Learning the weights helps"),
        ([0.9, 0.8, 0.9], [0.85, 0.9, 0.84], False, "within one standard error"),
        ([0.95, 0.9, 0.9], [0.9, 0.9, 0.9], False, "within one standard error"),  # one fold alone differs
        ([0.5, 0.51, 0.52], [0.9, 0.9, 0.91], False, "worse than"),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], False, "lp, is as good as the best baseline"),
        ([0.9, 0.9, 0.8999], [0.9001, 0.9001, 0.9], False, "is as good as"),
    ],
)
def test_verdict_is_paired_over_folds(learned: Any, simple: Any, helps: bool, word: str) -> None:
    entries = [entry("lp", learned, False), entry("linear model", simple, True)]
    found = verdict(sorted(entries, key=lambda e: -e.mean))
    assert found is not None
    assert found.helps is helps
    assert word in str(found)
    difference = np.subtract(learned, simple)
    assert found.difference == pytest.approx(difference.mean())
    assert found.error == pytest.approx(difference.std(ddof=1) / np.sqrt(3))


def test_gram_matrices_are_compared_without_columns(kw: Kw, tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 4))
    K = np.stack([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T], axis=2)
    np.savez(tmp_path / "k.npz", K=K, y=X[:, 0] + 0.1 * X[:, 2])
    options = ["--folds", "2", "--json", "-q", "--methods", "lp,best single kernel,uniform sum"]
    result = kw("compare", tmp_path / "k.npz", *options)
    assert result.code == 0, result.err
    assert all(row["score"] > 0.5 for row in json.loads(result.out)["methods"])
    refused = kw("compare", tmp_path / "k.npz", "--methods", "random forest", "-q")
    assert refused.code == 2
    assert "random forest" in refused.err


def test_too_many_folds_are_refused(kw: Kw, table: Any) -> None:
    result = kw("compare", table(rows=12), "--folds", "20", "-q")
    assert result.code == 2
    assert "--folds 20" in result.err
