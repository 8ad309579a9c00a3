"""The code on the page makes the model again, whatever its parts take."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.app.report.given import Subject
from kernelweave.app.report.settings import code


def views() -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    tables = {"rna": 5.0 + 3.0 * rng.normal(size=(24, 3)), "prot": rng.normal(size=(24, 2))}
    return tables, tables["rna"][:, 0] > 5.0


def run(text: str, X: Any, y: Any) -> Any:
    names: dict[str, Any] = {"X": X, "y": y}
    exec(text, names)
    return names["model"]


def test_a_transformer_that_needs_an_argument() -> None:
    X, y = views()
    model = make_pipeline(kw.ViewTransformer(StandardScaler()), kw.MKLClassifier("rbf")).fit(X, y)
    again = run(code(Subject(model, X, y)), X, y)
    assert np.allclose(again[-1].weights_, model[-1].weights_)
