"""`info` and `inspect`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kernelweave
from kernelweave.app.cli._explaining import listing

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


@pytest.mark.system
def test_inspect_explains_samples_by_the_names_of_the_file(kw: Kw, table: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "green"], size=60).tolist()
    data = table(patient=[f"P{i}" for i in range(60)], colour=colour)
    out, written, picture = tmp_path / "out", tmp_path / "why.csv", tmp_path / "why.svg"
    kw("fit", data, "--out", out, "--no-report", "--no-tune", "-q", "--method", "lp", "--id", "patient",
       "--categorical", "colour")  # fmt: skip
    asked = ("inspect", out, "--explain", data, "--sample", "P7", "--background", "9")
    found = json.loads(kw(*asked, "--json", "--out", written, "--plot", picture).out)
    names = {"a", "b", "colour=green", "colour=red"}
    sample = found["sample"]
    assert sample["id"] == "P7"
    assert {part["name"] for part in sample["features"]} == names
    assert found["samples"] == "60 samples, against 9 training samples"
    rows = dict(zip([f"P{i}" for i in range(60)], range(60), strict=True))
    model = kernelweave.load_model(out / "model.kw")
    value = model.decision_function(pd.read_csv(data))[rows["P7"]]
    for parts in ("kernels", "features"):
        total = sample["base_value"] + sum(part["adds"] for part in sample[parts])
        np.testing.assert_allclose([total, sample["value"]], value, atol=1e-8)
    header, *lines = written.read_text().splitlines()
    assert set(header.split(",")) == {"patient", "base value", *names}
    cells = next(line for line in lines if line.startswith("P7,")).split(",")
    np.testing.assert_allclose(sum(map(float, cells[1:])), value, atol=1e-8)
    assert "colour=red" in picture.read_text()
    one = tmp_path / "one.csv"  # a sample alone is compared with those of the training, not with itself
    pd.read_csv(data).iloc[[7]].to_csv(one, index=False)
    alone = json.loads(kw("inspect", out, "--explain", one, "--background", "9", "--json").out)
    assert alone["samples"] == "1 sample, against 9 training samples"
    assert max(alone["importance"]["features"], key=lambda part: part["mean"])["mean"] > 0.0
    shown = kw("inspect", out, "--explain", "--sample", "P7").out  # of the file that fit read
    assert {name for name in names if name in shown} == names
    assert "What kernels add to sample P7" in shown
    assert "Mean size of what features add" in shown
    assert not re.search(r"\bx\d+\b", shown + json.dumps(found) + header)
    assert "--explain" in kw("inspect", out, "--sample", "P7").err
    assert "there is none among the samples;" in kw(*asked[:4], "--sample", "P99").err
    both = kw("inspect", out, "--explain", "--sample", "P99").err  # of the file that fit read
    assert "there is none among the held-out and training samples;" in both
    base, total = sample["base_value"], sample["value"]
    told = kw(*asked).out
    assert (
        f"value {total:.4g} (above 0: yes, below: no) = mean of the comparison samples {base:.4g} + " in told
    )
    assert kw(*asked[:-1], "1").out.count("60 samples, against 1 training sample") == 1
    assert ", against 1 training sample." in kw("inspect", out, "--explain", "--background", "1").out


@pytest.mark.parametrize(("n", "others"), [(15, None), (16, "1 other"), (17, "2 others")])
def test_what_adds_rounding_only_is_not_listed(n: int, others: str | None) -> None:
    rows = [{"name": f"f{k}", "adds": 1.0 / (k + 1)} for k in range(n)]
    noise = [{"name": f"noise {k}", "adds": 1e-17} for k in range(9)]
    names = list(listing("Features", "feature", rows + noise).columns[0].cells)
    assert [str(name) for name in names] == [f"f{k}" for k in range(15)] + (
        [] if others is None else [others]
    )
