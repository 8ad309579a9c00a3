from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reproduce import METHODS, Standing, standings
from reproduce.blocks import Block, against_uniform, largest_block, p_value
from reproduce.learned import learned, write_learned
from reproduce.sentences import sentences
from scipy import stats

FOUR = ["uniform sum", "best single kernel", "l1-MKL", "SMKL"]


def made(scores: np.ndarray, methods: list[str] = FOUR, higher: bool = True) -> list[Standing]:
    return [
        Standing(f"set{i}", f"set{i}", method, float(scores[i, j]), higher)
        for i in range(len(scores))
        for j, method in enumerate(methods)
    ]


@pytest.fixture
def found() -> dict[str, list[Standing]]:
    """Two experiments: a block of 8 sets where SMKL is always last, and one more problem of set0."""
    rng = np.random.default_rng(0)
    scores = 80.0 + rng.normal(size=(8, 4)) - [0.0, 1.0, 0.0, 20.0]
    more = [Standing("set0", "half of it", m, s, False) for m, s in (("uniform sum", 9.0), ("GMKL", 7.5))]
    return {"many": made(scores), "other": more, "without any": []}


def test_means_by_problem_and_method() -> None:
    rows = [{"data": "a", "method": m, "x": x} for m, x in (("MKL", 1.0), ("MKL", 3.0), ("odd", 5.0))]
    assert standings(rows, "x", names={"MKL": "l1-MKL"}) == [Standing("a", "a", "l1-MKL", 2.0)]
    assert standings(rows, "x") == []
    with pytest.raises(ValueError, match="use one of 'uniform sum'"):
        Standing("a", "a", "my MKL", 1.0)


def test_the_block_is_complete_and_errors_are_turned_round() -> None:
    errors = np.arange(20.0).reshape(5, 4)
    block = largest_block({"e": [*made(errors, higher=False), Standing("set0", "set0", "GMKL", 1.0, False)]})
    assert block is not None
    assert block.methods == [m for m in METHODS if m in FOUR]
    assert block.scores[:, block.methods.index("SMKL")].tolist() == (-errors[:, 3]).tolist()


@pytest.mark.parametrize("lacking", ["a baseline", "sets", "independence"])
def test_there_is_no_block_without_baselines_or_enough_independent_sets(lacking: str) -> None:
    found = made(np.ones((6, 4)))
    found = {
        "a baseline": [one for one in found if one.method != "uniform sum"],
        "sets": [one for one in found if one.data in ("set0", "set1")],
        "independence": [Standing("same", one.problem, one.method, one.score) for one in found],
    }[lacking]
    assert largest_block({"e": found}) is None


def test_what_is_significant_is_said_and_what_is_not_as_well(found: dict[str, list[Standing]]) -> None:
    block = largest_block(found)
    assert block is not None
    text = "\n".join(sentences(block))
    assert "Friedman's test rejects" in text
    assert "the last is SMKL (4.00)" in text
    assert "Beside the uniform sum, better: none; worse: SMKL; no significant difference: " in text
    assert "never: SMKL." in text
    same = Block("e", block.data, block.methods, np.random.default_rng(3).normal(size=block.scores.shape))
    said = "\n".join(sentences(same))
    assert "does not reject" in said
    assert "no difference between any two methods is shown" in said


def test_pairs_are_compared_within_a_problem_and_tested_over_sets(found: dict[str, list[Standing]]) -> None:
    pairs = {pair.method: pair for pair in against_uniform(found)}
    assert pairs["GMKL"].gains == [1.5]  # an error that is lower
    assert np.isnan(p_value(pairs["GMKL"]))
    smkl = pairs["SMKL"]
    assert p_value(smkl) == pytest.approx(stats.wilcoxon(smkl.gains, method="approx").pvalue)


def test_the_page_is_made_of_the_standings_alone(found: dict[str, list[Standing]], tmp_path: Path) -> None:
    page = write_learned(tmp_path, found)
    assert page is not None
    text = page.read_text(encoding="utf-8")
    assert text == learned(found)
    assert "| [other](other.md) | half of it (error) | 9.0 |" in text
    assert "**7.5**" in text
    assert (tmp_path / "what-we-learned.png").stat().st_size < 150_000
    assert write_learned(tmp_path, {"none": []}) is None


def test_without_enough_sets_there_are_no_ranks() -> None:
    text = learned({"one": made(np.ones((2, 4)))})
    assert "| [one](one.md) | set1 |" in text
    assert "## Ranks" not in text
