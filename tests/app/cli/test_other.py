"""`info` and `inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kernelweave

Kw = Callable[..., Any]


def test_info_says_versions_threads_and_memory(kw: Kw) -> None:
    facts = json.loads(kw("info", "--json").out)
    assert facts["versions"]["kernelweave"] == kernelweave.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert any(pool["user_api"] == "blas" and pool["num_threads"] >= 1 for pool in facts["thread pools"])
    assert facts["cores"]["usable"] >= 1
    assert facts["free memory"]["bytes"] > 0
    assert "GPU" in facts
    assert kernelweave.__version__ in kw("info").out


def test_inspect_shows_weights_certificate_and_settings(kw: Kw, table: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kw("fit", table(), "--out", out, "--no-report", "--no-tune", "-q", "--method", "lp")
    shown = kw("inspect", out).out
    for text in ("MKLClassifier", "Kernel weights", "rbf a", "Certified", "target: y", "accuracy", "numpy"):
        assert text in shown
    document = json.loads(kw("inspect", out / "model.kw", "--json").out)
    model = kernelweave.load_model(out / "model.kw")[-1]
    weights = {row["kernel"]: row["weight"] for row in document["weights"]}
    assert weights == dict(zip(model.kernel_names_, model.weights_.tolist(), strict=True))
