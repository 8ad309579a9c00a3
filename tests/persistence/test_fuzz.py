"""Spoiled model files: nothing is executed, nothing hangs, memory stays bounded, one error comes back.

A file with a wrong checksum is refused whatever else is in it. One whose checksum was made right again
is refused too, or describes another model of kernelweave, which is then all that loading has made.
"""

from __future__ import annotations

import random
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Spectrum
from kernelweave.persistence import ModelFileError
from kernelweave.persistence.classes import gp_classes
from kernelweave.persistence.objects import is_model
from kernelweave.persistence.pipelines import CLASSES, class_of

from .cases import labels, numbers, strings, targets
from .conftest import answers, fitted
from .mutations import BROKEN, SEALED

#: 10,000 files in all with the slow tests, the first fifth of each part without
PARTS, EACH, FIRST = 5, 2_000, 150

#: processor seconds for one file, and bytes beside a multiple of its size
MOST_SECONDS, MULTIPLE, SLACK = 2.0, 48, 1 << 18

_watched: list[tuple[str, Any]] | None = None


def _watch(event: str, details: tuple[Any, ...]) -> None:
    # what other threads do, such as a Dask worker of another test that looks at its memory, is their own
    if _watched is not None and threading.current_thread() is threading.main_thread():
        _watched.append((event, details[:1]))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, Any, Any]]:
    """Small files of several kinds: content, new data, and what the model says of them."""
    n = 10
    X = numbers(n, 0)
    table = np.hstack([X.astype(object), strings(n, 0)])
    columns = ColumnTransformer([("n", StandardScaler(), [1, 2, 3]), ("c", OneHotEncoder(), [0])])
    scaled, views = kw.ViewTransformer({"a": StandardScaler()}), {"a": RBF(), "dna": Spectrum(2)}
    several = {"a": X, "dna": table[:, [4]]}
    models: list[tuple[Any, Any, Any]] = [
        (kw.MKLClassifier([RBF() + Linear(), RBF(columns=[1])], max_iter=2), X, labels(n)),
        (kw.MKLClassifier([Spectrum(2, columns=[4]), RBF(columns=[1, 2])], max_iter=2), table, labels(n)),
        (kw.MKLRegressor([RBF(columns=[k % 4, (k // 4) % 4]) for k in range(16)], max_iter=2), X, targets(n)),
        (kw.GroupOMPRegressor([RBF(), Linear()], n_kernels=2), sparse.csr_array(X), targets(n)),
        (kw.EmpiricalBayesRegressor([RBF(), Linear()], max_iter=2), X, targets(n)),
        (kw.GMKLClassifier(max_iter=2, tol=1.0), X, labels(n) == "ash"),
        (make_pipeline(columns, kw.MKLClassifier([RBF(), Linear()], max_iter=2)), X, labels(n)),
        (make_pipeline(scaled, kw.MKLClassifier(views, max_iter=2)), several, labels(n)),
    ]
    path, found = tmp_path_factory.mktemp("originals") / "model.kw", []
    for model, data, y in models:
        kw.save_model(fitted(model, data, y), path)
        found.append((path.read_bytes(), data, answers(model, data)))
    return found


class Fuzz:
    """Loads spoiled files under watch and counts what became of them."""

    def __init__(self, originals: Any, path: Path) -> None:
        self.originals, self.path = originals, path
        self.refused = self.same = self.other = 0
        self.largest = self.longest = 0.0

    def one(self, rng: random.Random) -> None:
        raw, data, said = rng.choice(self.originals)
        broken = rng.random() < 0.5
        content = rng.choice(BROKEN if broken else SEALED)(raw, rng)
        self.path.write_bytes(content)
        model = self.load(len(content))
        if model is None:
            self.refused += 1
        elif content == raw:
            assert all(np.array_equal(said[name], values) for name, values in answers(model, data).items())
            self.same += 1
        else:
            assert not broken, "a file with a wrong checksum was loaded"
            assert is_model(model)
            self.other += 1

    def load(self, size: int) -> Any:
        """The model, or None for `ModelFileError`; anything else that happens is a failure."""
        global _watched
        model, said = None, str(self.path)
        tracemalloc.start()
        start, _watched = time.process_time(), []
        try:
            model = kw.load_model(self.path)
        except ModelFileError as error:
            said = str(error)
        finally:
            events, _watched = _watched, None
            seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        self.longest, self.largest = max(self.longest, seconds), max(self.largest, peak)
        assert str(self.path) in said
        assert len(said) < 600
        assert seconds < MOST_SECONDS
        assert peak < MULTIPLE * size + SLACK
        self.check(events)
        return model

    def check(self, events: list[tuple[str, Any]]) -> None:
        """Nothing happened but that the file was opened, and functions were looked at."""
        opened = [details[0] for event, details in events if event == "open"]
        assert {str(name) for name in opened} <= {str(self.path)}
        assert {event for event, _ in events} <= {"open", "object.__getattr__", "builtins.id"}


@pytest.fixture
def fuzz(originals: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fuzz:
    monkeypatch.chdir(tmp_path)
    gp_classes()
    for name in CLASSES:
        class_of(name)
    if _watch not in _hooks:
        sys.addaudithook(_watch)
        _hooks.append(_watch)
    return Fuzz(originals, tmp_path / "spoiled.kw")


_hooks: list[Any] = []


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [FIRST, pytest.param(EACH, marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", range(PARTS))
def test_spoiled_files(part: int, count: int, fuzz: Fuzz) -> None:
    rng = random.Random(f"kernelweave {part}")
    for _ in range(count):
        fuzz.one(rng)
    assert fuzz.refused + fuzz.same + fuzz.other == count
    assert PARTS * EACH == 10_000
    assert not Path("executed").exists()
    assert fuzz.refused > 0.8 * count
    print(
        f"{count} spoiled files of {PARTS * EACH}: {fuzz.refused} refused, {fuzz.other} other models, "
        f"{fuzz.same} unchanged; "
        f"at most {fuzz.longest:.3f} s and {fuzz.largest / 1e3:.0f} kB for one"
    )


def test_the_watch_sees_what_it_should(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzz.path.write_bytes(fuzz.originals[0][0])

    def hostile(path: Any) -> None:
        with open(fuzz.path.with_name("elsewhere"), "w"):
            pass

    monkeypatch.setattr(kw, "load_model", hostile)
    with pytest.raises(AssertionError):
        fuzz.load(100)
