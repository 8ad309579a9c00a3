"""Every kind of file gives the same table."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelweave.app.cli._console import CliError
from kernelweave.app.cli._npz import Grams, read_arrays
from kernelweave.app.cli._read import Sheet, from_text, kind_of, read_table, sniff


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(
        'name,x,flag,"a, b"\nred,1.5,true,3\n,NA,False,-2e3\n"blue ""sky""",7,TRUE,0\n', encoding="utf-8"
    )
    return path


def assert_same(table: Sheet) -> None:
    assert table.names == ["name", "x", "flag", "a, b"]
    assert table.frame["name"].tolist() == ["red", None, 'blue "sky"']
    np.testing.assert_array_equal(table.frame["x"], [1.5, np.nan, 7.0])
    np.testing.assert_array_equal(table.frame["flag"], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(table.frame["a, b"], [3.0, -2000.0, 0.0])


def test_csv_with_quotes_gaps_and_truth_values(original: Path) -> None:
    assert_same(read_table(original))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_do_not_matter(original: Path, newline: str, mark: str) -> None:
    text = mark + original.read_text(encoding="utf-8").replace("\n", newline)
    original.write_bytes(text.encode("utf-8"))
    assert_same(read_table(original))


def test_gzip_and_utf16_and_blank_lines(original: Path, tmp_path: Path) -> None:
    text = original.read_text(encoding="utf-8") + "\n\n"
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "w.csv").write_bytes(text.encode("utf-16"))
    assert_same(read_table(tmp_path / "z.csv.gz"))
    assert_same(read_table(tmp_path / "w.csv"))


@pytest.mark.parametrize(("sep", "name"), [("\t", "data.tsv"), (";", "data.csv"), ("|", "data.txt")])
def test_separators_are_found_out(original: Path, tmp_path: Path, sep: str, name: str) -> None:
    rows = [["name", "x", "flag", '"a, b"'], ["red", "1.5", "true", "3"], ["", "NA", "False", "-2e3"]]
    rows.append(['"blue ""sky"""', "7", "TRUE", "0"])
    (tmp_path / name).write_text("\n".join(sep.join(row) for row in rows), encoding="utf-8")
    assert_same(read_table(tmp_path / name))


def test_a_comma_inside_cells_does_not_fool_the_separator() -> None:
    assert sniff("a;b\n1,5;2,5\n3,1;4,0\n") == ";"
    assert sniff("alone\n1\n2\n") == ","


def test_parquet_and_feather_equal_csv(original: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table(
        {
            "name": pa.array(["red", None, 'blue "sky"']).dictionary_encode(),
            "x": pa.array([1.5, None, 7.0], pa.float32()),
            "flag": [True, False, True],
            "a, b": pa.array([3, -2000, 0], pa.int16()),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, str(tmp_path / "t.feather"))
    assert_same(read_table(tmp_path / "t.parquet"))
    assert_same(read_table(tmp_path / "t.feather"))


def test_without_pyarrow_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(CliError, match=r'pip install "kernelweave\[tables\]"'):
        read_table(tmp_path / "t.parquet")


def test_decimal_commas_are_read_when_asked_for() -> None:
    values = from_text(["1,5", "1.000,25", "-2.000.000", "1e3"], ",")
    np.testing.assert_array_equal(values, [1.5, 1000.25, -2e6, 1e3])
    assert kind_of(from_text(["01.03.2024"], ",")) == "text"


def test_underscores_do_not_make_numbers() -> None:
    assert kind_of(from_text(["1_0", "2_0"])) == "text"


def test_missing_values_of_every_kind() -> None:
    values = from_text(["", "NA", "null", "?", "x"])
    assert [value is None for value in values] == [True, True, True, True, False]


def test_npz_of_a_matrix_keeps_names_and_targets(tmp_path: Path) -> None:
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "m.npz", X=X, y=np.array([1, 0, 1]), feature_names=np.array(["u", "v"]))
    table = read_arrays(tmp_path / "m.npz")
    assert isinstance(table, Sheet)
    assert table.names == ["u", "v", "y"]
    np.testing.assert_array_equal(table.frame["v"], X[:, 1])


def test_npz_of_views_makes_a_group_a_view(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", rna=np.zeros((3, 2)), protein=np.ones((3, 1)), y=np.arange(3))
    table = read_arrays(tmp_path / "v.npz")
    assert isinstance(table, Sheet)
    assert table.groups == {"rna": ["rna_0", "rna_1"], "protein": ["protein_0"]}


def test_npz_of_gram_matrices_in_either_form(tmp_path: Path) -> None:
    K = np.stack([np.eye(4), np.ones((4, 4))], axis=2)
    np.savez(tmp_path / "a.npz", K=K, y=np.arange(4))
    np.savez(tmp_path / "b.npz", K1=K[:, :, 0], K2=K[:, :, 1], y=np.arange(4))
    first, second = read_arrays(tmp_path / "a.npz"), read_arrays(tmp_path / "b.npz")
    assert isinstance(first, Grams)
    assert isinstance(second, Grams)
    np.testing.assert_array_equal(first.K, second.K)
    assert first.names == second.names == ["K1", "K2"]


def test_npz_never_unpickles(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return (Path.touch, (tmp_path / "executed",))  # type: ignore[return-value]

    values = np.empty(2, dtype=object)
    values[:] = [Trap(), Trap()]
    np.savez(tmp_path / "t.npz", X=np.zeros((2, 1)), y=values)
    with pytest.raises(CliError, match="not read for safety"):
        read_arrays(tmp_path / "t.npz")
    assert not (tmp_path / "executed").exists()
