"""The engine is the fastest that fits, and says why."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.gram import (
    GRAMS,
    DenseGram,
    Dictionary,
    FeatureSource,
    Gram,
    KernelStack,
    StackSource,
    choice,
)
from kernelweave.gram.blocks import WORK_BYTES
from kernelweave.gram.choice import Needs, Task, choose_engine
from kernelweave.kernels import RBF, Linear

SQUARE = 8 * 1000**2
TASK = Task(n_kernels=40, n_bases=2, n_samples=1000)
WORK = WORK_BYTES  # of one thread
DENSE = TASK.dense

#: engines that any fit on a host may ask for
ENGINES = ("dense", "packed", "cached", "blocked")


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Every thread needs room for its tiles."""
    monkeypatch.setattr(choice, "loop_threads", lambda: 1)


@pytest.mark.parametrize(
    ("limit", "name", "dtype", "words"),
    [
        (DENSE, "dense", None, "take 372 MB dense and memory_limit allows 372 MB: all matrices"),
        (DENSE - 1, "packed", np.float64, "would take 372 MB .* lower triangles are in memory"),
        (23 * SQUARE, "packed", np.float32, "in memory as float32"),
        (13 * SQUARE, "cached", None, "kept in a cache"),
        (int(4.2 * SQUARE) + WORK - 1, "blocked", None, "computed again in every pass"),
        (2 * SQUARE + WORK, "blocked", None, "computed again in every pass"),
    ],
)
def test_auto_takes_the_first_that_fits(limit, name, dtype, words):
    chosen = choose_engine("auto", TASK, limit)
    assert (chosen.name, chosen.needs.options.get("dtype")) == (name, dtype)
    assert re.search(words, chosen.reason)


def test_less_memory_never_gives_a_faster_engine():
    order = ["dense", "packed", "cached", "blocked"]
    for combined in (True, False):
        task = Task(30, 3, 700, combined=combined)
        least = GRAMS["blocked"].needs(task).bytes
        limits = np.linspace(task.dense, least, 200).astype(int)
        found = [order.index(choose_engine("auto", task, int(limit)).name) for limit in limits]
        assert found == sorted(found)
        assert set(found) == {0, 1, 2, 3}


def test_too_little_memory_is_one_clear_error():
    with pytest.raises(
        MemoryError, match=r"40 kernels on 1000 samples need .* memory_limit allows 16 MB: raise"
    ):
        choose_engine("auto", TASK, 2 * SQUARE)
    for name in ENGINES:
        with pytest.raises(MemoryError, match=f"with gram='{name}'"):
            choose_engine(name, TASK, SQUARE)


def test_a_solver_of_rows_needs_no_room_for_the_sum():
    task = Task(40, 2, 60_000, combined=False)
    assert choose_engine("auto", task, 10**9).name == "blocked"
    with pytest.raises(MemoryError):
        choose_engine("auto", Task(40, 2, 60_000), 10**9)


def test_given_matrices_are_not_copied_to_save_memory():
    assert choose_engine("auto", Task(40, 40, 1000, n_new=0, given=True), 4 * SQUARE).name == "dense"
    changed = Task(40, 40, 1000, n_new=40, given=True)
    assert choose_engine("auto", changed, 42 * SQUARE).name == "blocked"
    assert choose_engine("auto", changed, 47 * SQUARE).name == "dense"


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_can_be_asked_for(name):
    chosen = choose_engine(name, TASK, 10**12)
    assert chosen.name == name
    assert chosen.reason.startswith(f"gram='{name}' was asked for: ")


def test_packed_falls_back_on_single_precision():
    assert choose_engine("packed", TASK, 22 * SQUARE).needs.options["dtype"] == np.float64
    assert choose_engine("packed", TASK, 22 * SQUARE - 1).needs.options["dtype"] == np.float32


def test_a_cache_takes_what_is_left():
    limit = 5 * SQUARE + WORK
    assert choose_engine("cached", TASK, limit).needs.options["cache_bytes"] == SQUARE
    assert choose_engine("cached", TASK, 10**12).needs.options["cache_bytes"] == 2 * SQUARE


def test_unknown_engines_are_refused():
    with pytest.raises(ValueError, match="gram='sparse' is not a Gram engine: pass one of 'auto', 'dense'"):
        choose_engine("sparse", TASK, None)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("store", "kernels='precomputed' and a GramStore"),
        ("low_rank", "approximation='nystroem'"),
        ("torch", "device='cuda'"),
    ],
)
def test_what_an_engine_cannot_serve_is_refused_with_a_remedy(name, remedy):
    with pytest.raises(ValueError, match=f"gram='{name}' cannot serve this fit: .*{remedy}"):
        choose_engine(name, TASK, None)
    assert GRAMS[name].needs(TASK).bytes is None


@pytest.fixture(name="sorted_gram")
def an_engine_of_a_user(monkeypatch):
    """An engine of a user's own, which says nothing but how it multiplies."""

    class SortedGram(DenseGram):
        name = "sorted"
        needs = classmethod(Gram.needs.__func__)  # those of any engine
        build = classmethod(Gram.build.__func__)

    monkeypatch.setattr(GRAMS, "_parts", dict(GRAMS._parts))
    return GRAMS.add(SortedGram)


def test_an_engine_of_a_user_has_a_name(sorted_gram, rng):
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    kernels, options = [RBF(0.1), RBF(1.0), Linear()], {"normalize": "center", "tol": 1e-5}
    own, dense = (kw.MKLClassifier(kernels, gram=name, **options).fit(X, y) for name in ("sorted", "dense"))
    assert own.gram_ == "sorted"
    assert own.gram_reason_ == "gram='sorted' was asked for: it is made of matrices in memory."
    assert own.dual_gap_ <= 1e-5
    np.testing.assert_allclose(own.decision_function(X), dense.decision_function(X), atol=1e-6)


def test_auto_walks_the_registry(sorted_gram, monkeypatch):
    assert choose_engine("auto", TASK, DENSE).name == "dense"
    for name in ENGINES:
        monkeypatch.setattr(GRAMS[name], "needs", classmethod(lambda cls, task: Needs(None, "not today.")))
    monkeypatch.setattr(sorted_gram, "needs", classmethod(lambda cls, task: Needs(10, "it needs nothing")))
    found = choose_engine("auto", TASK, DENSE)
    assert found.engine is sorted_gram
    assert found.reason.endswith("it needs nothing.")


def test_without_a_limit_free_memory_decides(monkeypatch):
    monkeypatch.setattr(choice, "free_memory", lambda: 10**12)
    assert choose_engine("auto", TASK, None).name == "dense"
    monkeypatch.setattr(choice, "free_memory", lambda: 100 * 10**6)
    chosen = choose_engine("auto", TASK, None)
    assert (chosen.name, chosen.task.limit) == ("cached", 80 * 10**6)
    assert "free memory allows 80 MB" in chosen.reason
    assert choose_engine("dense", TASK, None).task.limit is None
    monkeypatch.setattr(choice, "free_memory", lambda: None)
    assert choose_engine("auto", TASK, None).name == "dense"


@pytest.mark.parametrize(
    ("share", "name"), [(1.0, "dense"), (0.7, "packed"), (0.35, "packed"), (0.2, "cached")]
)
def test_a_dictionary_follows(rng, share, name):
    X = rng.normal(size=(200, 3))
    kernels = [(f"k{m}", RBF(0.1 * (m + 1))) for m in range(40)]
    limit = int(share * 47 * 8 * 200**2)
    dictionary = Dictionary(FeatureSource(kernels, X), "variance", memory_limit=limit, gram="auto")
    assert dictionary.gram.name == name
    assert "40 kernels on 200 samples" in dictionary.gram_reason


def test_a_dictionary_of_given_matrices(matrices):
    stack, limit = KernelStack(list(matrices(60, 9))), 6 * 8 * 60**2
    for part, normalize, name in (
        (stack, "variance", "dense"),
        (stack, "center", "blocked"),
        (stack[:50, :50], "variance", "blocked"),
    ):
        dictionary = Dictionary(StackSource(part), normalize, memory_limit=limit, gram="auto")
        assert dictionary.gram.name == name


# -- how much memory is free ------------------------------------------------------------------


@pytest.fixture
def files(monkeypatch):
    """Files of a machine, as far as they are given."""

    def pretend(**contents):
        known = {path: text for path, text in contents.items()}
        monkeypatch.setattr(choice, "_read", lambda path: known.get(path.rsplit("/", 1)[-1], ""))

    return pretend


def test_free_memory_of_a_machine(files):
    files(meminfo="MemTotal: 16000 kB\nMemAvailable:    8000 kB\n")
    assert choice.free_memory() == 8000 * 1024


def test_free_memory_of_a_container(files):
    files(
        **{
            "meminfo": "MemAvailable: 8000 kB\n",
            "memory.max": "5000000\n",
            "memory.current": "3000000\n",
            "memory.stat": "anon 5\ninactive_file 1000000\n",
        }
    )
    assert choice.free_memory() == 3_000_000


def test_a_container_without_a_limit(files):
    files(**{"meminfo": "MemAvailable: 8000 kB\n", "memory.max": "max\n", "memory.current": "3000000\n"})
    assert choice.free_memory() == 8000 * 1024


def test_free_memory_of_other_systems(files, monkeypatch):
    files()
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(choice.os, "sysconf", pages.__getitem__)
    assert choice.free_memory() == 4096 * 500
    monkeypatch.delattr(choice.os, "sysconf")
    assert choice.free_memory() is None


def test_this_machine_has_memory():
    assert choice.free_memory() is None or choice.free_memory() > 10**6
