"""Reports of every kind of model, each made once, and a page taken apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.app.report import Report
from kernelweave.kernels import RBF, Linear, bands, per_feature

VOID = {"meta", "br", "hr", "input", "link", "img", "col"}


class Page(HTMLParser):
    """Elements with their attributes; tables as lists of rows of text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.blocks: dict[str, str] = {}
        self.text = ""
        self._open: list[tuple[str, dict[str, Any]]] = []
        self._table: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.elements.append((tag, dict(attrs)))
        if tag in VOID:
            return
        self._open.append((tag, dict(attrs)))
        if tag == "table":
            self._table = self.tables.setdefault(dict(attrs)["id"], [])
        elif tag == "tr":
            self._table.append([])
        elif tag in ("td", "th"):
            self._table[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag in ("script", "style"):
            self.blocks[attributes.get("id") or tag] = data
            return
        self.text += data
        if any(name in ("td", "th") for name, _ in self._open):
            self._table[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def column(self, table: str, head: str) -> dict[str, str]:
        """The cells of a column by the first cell of their row."""
        heads, *rows = self.tables[table]
        place = heads.index(head)
        return {row[0]: row[place] for row in rows}


def number_shown(text: str) -> float:
    """The number that a cell shows."""
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    text = text.replace("\u2212", "-").replace("+", "")
    if "10" in text and text[-1] in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹":
        factor, _, power = text.rpartition("10")
        return float(factor.rstrip("\u00d7") or 1) * 10.0 ** int(power.translate(superscripts))
    return float(text)


@dataclass(frozen=True)
class Case:
    """A fitted model, its data, and the report made of them."""

    model: Any
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    report: Report

    @cached_property
    def html(self) -> str:
        return self.report.html()

    @cached_property
    def page(self) -> Page:
        return Page(self.html)

    @property
    def inner(self) -> Any:
        return self.model[-1] if hasattr(self.model, "steps") else self.model


def made(model: Any, X: Any, y: Any, stability: bool = False, **options: Any) -> Case:
    """Every third sample is held out."""
    held = np.arange(len(y)) % 3 == 0
    parts = X[~held], y[~held], X[held], y[held]
    model.fit(*parts[:2])
    options |= {"X_test": parts[2], "y_test": parts[3], "stability": stability}
    return Case(model, *parts, Report.from_model(model, *parts[:2], **options))


def binary() -> Case:
    X, y = load_breast_cancer(return_X_y=True)
    views = {
        f"{view}, {kind}": kernel(columns=slice(start, start + 10))
        for view, start in (("mean", 0), ("error", 10), ("worst", 20))
        for kind, kernel in (("linear", Linear), ("rbf", RBF))
    }
    labels = np.array(["malignant", "benign"])[y[:180]]
    model = make_pipeline(StandardScaler(), kw.MKLClassifier(views, regularizer=kw.LpNorm(p=4 / 3)))
    source = {"file": "tumours.csv", "columns": ["radius", "texture"], "options": {"tune": False}}
    return made(model, X[:180], labels, stability=True, title="Tumours", source=source)


def multiclass() -> Case:
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::2, :5], y[::2]
    return made(kw.MKLClassifier(per_feature(RBF()), regularizer="elasticnet"), X, y)


def regression() -> Case:
    X, y = load_diabetes(return_X_y=True)
    search = kw.MKLRegressorCV(
        per_feature(RBF()), regularizers=[kw.LpNorm(1), kw.LpNorm(2)], Cs=(0.1, 1.0), cv=3
    )
    return made(search, X[:150], y[:150])


def many_kernels() -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    y = np.where(X[:, 3] + np.sin(2 * X[:, 7]) > 0, "yes", "no")
    return made(kw.MKLClassifier(per_feature(RBF()), regularizer=kw.LpNorm(p=1)), X, y)


def greedy() -> Case:
    X, y = load_diabetes(return_X_y=True)
    model = kw.GroupOMPRegressor(per_feature(Linear()), n_kernels=5, validation_fraction=0.3, random_state=0)
    return made(model, X[:150], y[:150])


def empirical_bayes() -> Case:
    X, y = load_diabetes(return_X_y=True)
    return made(kw.EmpiricalBayesRegressor(per_feature(RBF())), X[:120], y[:120])


def survival() -> Case:
    rng = np.random.default_rng(0)
    X, ends = rng.normal(size=(90, 3)), rng.exponential(size=90)
    times = rng.exponential(np.exp(-2.0 * X[:, 0]))
    y = np.array(list(zip(times <= ends, np.minimum(times, ends), strict=True)), dtype="?, f8")
    names = [f"P{k:02d}" for k in range(30)]
    model = kw.MKLSurvival({"age": RBF(columns=[0]), "dose": RBF(columns=[1]), "all": Linear()}, C=0.3)
    return made(model, X, y, ids_test=names)


def spectra() -> Case:
    """Wavelengths as names, and a band that carries the target."""
    rng = np.random.default_rng(0)
    wave, amount = np.arange(1100, 1500, 10), rng.normal(size=60)
    peak = np.exp(-0.5 * ((wave - 1340) / 15) ** 2)
    X = np.outer(amount, peak) + 0.05 * rng.normal(size=(60, len(wave)))
    names = [str(w) for w in wave]
    return made(kw.MKLRegressor(bands(4), C=10.0), X, amount, feature_names=names)


MAKERS: dict[str, Callable[[], Case]] = {
    "binary": binary,
    "multiclass": multiclass,
    "regression": regression,
    "many_kernels": many_kernels,
    "greedy": greedy,
    "empirical_bayes": empirical_bayes,
    "survival": survival,
}


@pytest.fixture(scope="session")
def cases() -> Callable[[str], Case]:
    """The case of a name, made when first asked for."""
    found: dict[str, Case] = {}

    def get(name: str) -> Case:
        if name not in found:
            found[name] = (spectra if name == "spectra" else MAKERS[name])()
        return found[name]

    return get


@pytest.fixture
def shown() -> Callable[[str], float]:
    """Reads the number that a cell shows."""
    return number_shown


@pytest.fixture(params=list(MAKERS))
def case(request: pytest.FixtureRequest, cases: Callable[[str], Case]) -> Case:
    """Each of the cases."""
    return cases(request.param)


HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(2)>',
    "<!--<script>",
    "$title ${style} {data}",
    "\u202egnp.exe\x00\x1b",
    "' onmouseover='alert(3)",
]


@pytest.fixture(scope="session")
def hostile() -> Case:
    """Kernels, classes, title and source that try to be markup."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(45, len(HOSTILE)))
    y = np.where(X[:, 0] > 0, "</td><script>alert(4)</script>", "<b>bold</b>")
    kernels = {name: Linear(columns=[k]) for k, name in enumerate(HOSTILE)}
    source = {"</dt><script>": "<iframe src='http://example.org'>", "list": ["<img src=x>"]}
    return made(kw.MKLClassifier(kernels), X, y, title="</title><script>alert(5)</script>", source=source)
