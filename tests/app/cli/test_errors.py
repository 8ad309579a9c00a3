"""Whatever is wrong with the input: one message that names it and says what to do, exit code 2."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Kw = Callable[..., Any]
Table = Callable[..., Path]


def check(result: Any, *needed: str) -> None:
    """One message on stderr, with everything it has to name, and no traceback."""
    assert result.code == 2, result.err
    lines = [line for line in result.err.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1, result.err
    assert "Traceback" not in result.err + result.out
    for text in needed:
        assert text in result.err, result.err


#: what is changed in the table, options, and what the message has to name
COLUMNS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "missing target": ({}, ["--target", "z"], ["data.csv", "no column 'z'", "'a', 'b' and 'y'"]),
    "target in another case": ({}, ["--target", "Y"], ["Did you mean 'y'?"]),
    "wrong column to drop": ({}, ["--drop", "q*"], ["--drop", "'q*'", "'a', 'b'"]),
    "wrong group": ({}, ["--groups", "g=zz_*"], ["--groups", "'zz_*'"]),
    "group without pattern": ({}, ["--groups", "rna"], ["--groups", "NAME=PATTERN"]),
    "text in a number": (
        {"b": [*["1.5"] * 40, "oops", *["2"] * 19]},
        [],
        ["column 'b'", "text in 1 cell, such as 'oops' (row 41)", "correct the cells", "--drop b"],
    ),
    "text where most is missing": (
        {"c": [*["red", "blue"] * 10, *[""] * 40]},
        [],
        [
            "(2 different values, 40 missing)",
            "--categorical c, where missing ones are a category",
            "--drop c",
        ],
    ),
    "text": ({"c": ["red", "blue"] * 30}, [], ["column 'c'", "'red'", "--categorical c", "--drop c"]),
    "NaN": (
        {"b": [*["1.5"] * 40, "", *["2"] * 19]},
        [],
        ["column 'b'", "row 41", "--impute median", "--drop-rows"],
    ),
    "infinite": ({"b": [*["1.5"] * 40, "inf", *["2"] * 19]}, [], ["column 'b'", "infinite", "row 41"]),
    "dates": ({"d": ["2024-03-01", "2024-03-02"] * 30}, [], ["column 'd'", "dates", "--drop d"]),
    "German dates": ({"d": ["01.03.2024", "02.03.2024"] * 30}, [], ["column 'd'", "dates"]),
    "identifier": ({"id": list(range(100, 160))}, [], ["column 'id'", "identifier", "--id id", "--keep id"]),
    "counter": ({"n": list(range(60))}, [], ["column 'n'", "identifier"]),
    "names": ({"n": [f"patient {k}" for k in range(60)]}, [], ["column 'n'", "identifier", "--id n"]),
    "decimal comma": ({"b": ['"1,5"', '"2,7"'] * 30}, [], ["column 'b'", "decimal comma", "--decimal ,"]),
    "decimal comma in few cells": (
        {"b": ['"1,5"', *["2"] * 59], "a": ['"0,5"', "3.000", *['"7,25"'] * 58]},
        [],
        ["columns 'a' and 'b' hold numbers with a decimal comma, such as '0,5'", "--decimal ,"],
    ),
    "decimal comma and other problems": (
        {"b": ['"1,5"', '"2,7"', ""] * 20, "c": ["red", "blue"] * 30},
        [],
        ["column 'b' holds numbers with a decimal comma", "--decimal ,"],
    ),
    "decimal comma in the target": (
        {"y": [f'"{k},{k % 7}"' for k in range(60)]},
        [],
        ["column 'y' holds numbers with a decimal comma", "--decimal ,"],
    ),
    "empty column": ({"b": [""] * 60}, [], ["column 'b'", "is empty", "--drop b"]),
    "missing target values": ({"y": ["yes", ""] * 30}, [], ["target 'y'", "30 of 60", "--drop-rows"]),
    "one class": ({"y": ["yes"] * 60}, [], ["target 'y'", "one class", "'yes'", "at least two"]),
    "one number": ({"y": [2.5] * 60}, ["--task", "regression"], ["target 'y'", "nothing to learn"]),
    "text to regress": ({}, ["--task", "regression"], ["target 'y'", "--task classification"]),
    "class of one": ({"y": ["odd", *["yes", "no"] * 29, "yes"]}, [], ["class 'odd'", "one row"]),
    "classes as many as rows": ({"y": [f"t{k}" for k in range(60)]}, [], ["60 classes", "--task regression"]),
    "target of dates": ({"y": ["2024-03-01"] * 60}, [], ["target 'y'"]),
    "nothing left": ({}, ["--drop", "a", "--drop", "b"], ["no column left", "'y'"]),
    "two kinds of kernels": ({}, ["--bands", "2", "--groups", "g=a"], ["--groups", "--bands", "exclude"]),
    "one group twice": ({}, ["--groups", "g=a,g=b"], ["--groups", "'g'", "twice", "+"]),
    "no group": ({}, ["--groups", ","], ["--groups is empty", "rna=rna_*"]),
    "two characters between cells": ({}, ["--sep", ";;"], ["--sep ';;'", "one character"]),
    "infinite target": (
        {"y": [*np.linspace(0.1, 1.0, 59).tolist(), "inf"]},
        ["--task", "regression"],
        ["target 'y'", "infinite", "row 60"],
    ),
    "too many bands": ({}, ["--bands", "9"], ["--bands", "2 columns"]),
    "no such kernel": ({}, ["--bands", "1", "--kernel", "rfb"], ["--kernel rfb", "rbf"]),
    "negative cost": ({}, ["--C", "-1"], ["--C -1", "positive"]),
    "kernels of gmkl": ({}, ["--method", "gmkl", "--kernel", "rbf"], ["--method gmkl", "leave out"]),
    "bad memory": ({}, ["--memory-limit", "lots"], ["--memory-limit lots", "2GB"]),
    "nothing to resume": ({}, ["--resume"], ["--resume", "no interrupted fit"]),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_and_options(case: str, kw: Kw, table: Table, tmp_path: Path) -> None:
    changed, options, needed = COLUMNS[case]
    path = table(**changed)
    target = [] if "--target" in options else ["--target", "y"]
    result = kw("fit", path, *target, *options, "--out", tmp_path / "out", "--quiet")
    check(result, *needed)
    assert not (tmp_path / "out" / "model.kw").exists()


@pytest.mark.wide
def test_a_decimal_comma_is_the_only_thing_proposed(kw: Kw, table: Table, tmp_path: Path) -> None:
    """Other remedies would drop columns that are numbers; what is proposed works."""
    cells = [f'"{k},5"' if k % 5 == 0 else str(k % 7) for k in range(60)]
    path = table(a=cells, b=cells[::-1], y=[f'"{k % 9},25"' for k in range(60)])
    result = kw("fit", path, "--out", tmp_path / "out", "-q")
    check(result, "--decimal ,")
    for option in ("--sep", "--drop", "--categorical", "--id", "--impute", "--keep", "--task"):
        assert option not in result.err
    again = kw(
        "fit", path, "--decimal", ",", "--out", tmp_path / "out", "-q", "--no-report", "--no-tune", "--json"
    )
    assert again.code == 0, again.err


@pytest.mark.wide
def test_all_bad_columns_are_named_at_once_with_options_that_work(
    kw: Kw, table: Table, tmp_path: Path
) -> None:
    path = table(
        id=list(range(60)),
        colour=["red", "blue", "green"] * 20,
        b=[*np.linspace(0, 1, 59).round(3).tolist(), ""],
        day=["2024-03-01"] * 60,
    )
    result = kw("fit", path, "--out", tmp_path / "out", "-q")
    check(result, "4 columns", "'id'", "'colour'", "'b'", "'day'")
    options = result.err.rpartition("suits the data: ")[2].split()
    again = kw("fit", path, *options, "--out", tmp_path / "out", "-q", "--no-report", "--no-tune")
    assert again.code == 0, again.err


#: a file, as bytes, by name, and what the message has to name
FILES: dict[str, tuple[str, bytes, list[str]]] = {
    "0 bytes": ("d.csv", b"", ["d.csv", "0 bytes"]),
    "blank": ("d.csv", b"\n \n", ["d.csv", "no text"]),
    "header only": ("d.csv", b"a,y\n", ["d.csv", "no rows"]),
    "1 row": ("d.csv", b"a,y\n1,2\n", ["d.csv", "1 row", "at least"]),
    "not UTF-8": (
        "d.csv",
        "a,y\n1,ja\n2,n\xe4\n".encode("latin-1"),
        ["d.csv", "line 3", "--encoding latin-1"],
    ),
    "binary": ("d.csv", b"a,y\n\x00\x01,2\n", ["d.csv", "not a text file"]),
    "ragged": ("d.csv", b"a,y\n1,2\n3\n", ["d.csv", "line 3", "1 cells", "--sep"]),
    "twice the same name": ("d.csv", b"a,a,y\n1,2,3\n", ["d.csv", "'a'", "rename"]),
    "a column without a name": ("d.csv", b"a,,y\n1,2,3\n", ["d.csv", "column 2", "no name"]),
    "damaged gzip": ("d.csv.gz", gzip.compress(b"a,y\n1,2\n" * 99)[:-9], ["d.csv.gz", "unpacked"]),
    "unknown ending": ("d.xlsx", b"PK", ["d.xlsx", "CSV"]),
    "damaged Parquet": ("d.parquet", b"PAR1 no PAR1", ["d.parquet", "damaged"]),
    "damaged Feather": ("d.feather", b"ARROW1 no", ["d.feather", "damaged"]),
    "damaged NPZ": ("d.npz", b"PK\x03\x04 no", ["d.npz", "damaged"]),
    "a lone array": ("d.npz", b"\x93NUMPY no", ["d.npz"]),
    "quote without end": ("d.csv", b'a,y\n"1,2\n3,4\n', ["d.csv"]),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_files(case: str, command: str, kw: Kw, tmp_path: Path) -> None:
    name, content, needed = FILES[case]
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    options = ["--out", tmp_path / "out"] if command == "fit" else []
    check(kw(command, tmp_path / name, *options, "-q"), *needed)


def test_an_absent_file_names_those_there(kw: Kw, table: Table) -> None:
    path = table()
    check(kw("fit", path.with_name("dta.csv")), "dta.csv", "does not exist", "'data.csv'")


#: prints which heavy packages a command had imported when it ended
LOADED = """
import atexit
heavy = ("numpy", "scipy", "sklearn", "numba", "pandas")
atexit.register(lambda: print("loaded:", *[name for name in heavy if name in sys.modules]))
"""


@pytest.mark.parametrize("command", ["fit", "compare", "predict", "predict model", "inspect", "report"])
def test_a_missing_file_is_reported_before_anything_heavy_is_imported(
    command: str, process: Any, table: Table, tmp_path: Path
) -> None:
    """Which is what takes seconds."""
    absent, empty = tmp_path / "no.csv", tmp_path / "model"
    empty.mkdir()
    (empty / "model.kw").write_bytes(b"never read")
    arguments = {
        "predict": ["predict", empty, absent],
        "predict model": ["predict", tmp_path / "no.kw", table()],
        "report": ["report", empty, "--data", absent],
    }.get(command, [command, absent])
    out, err = process(*arguments, prelude=LOADED).communicate(timeout=60)
    assert b"does not exist" in err
    assert out.decode().split() == ["loaded:"]


def test_so_is_a_misspelt_target(process: Any, table: Table) -> None:
    out, err = process("fit", table(), "--target", "labl", prelude=LOADED).communicate(timeout=60)
    assert b"has no column 'labl' (--target). " in err
    assert out.decode().split() == ["loaded:"]


def test_a_missing_file_of_kernels_too(process: Any, table: Table, tmp_path: Path) -> None:
    running = process("fit", table(), "--kernels", tmp_path / "no.toml", prelude=LOADED)
    out, err = running.communicate(timeout=60)
    assert b"is no file" in err
    assert out.decode().split() == ["loaded:"]


def test_a_folder_is_not_a_file(kw: Kw, table: Table) -> None:
    check(kw("fit", table().parent), "is a folder", "'data.csv'")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(kw: Kw, table: Table) -> None:
    path = table()
    path.chmod(0)
    check(kw("fit", path), "cannot be read", "permissions")


def test_out_that_is_a_file(kw: Kw, table: Table) -> None:
    path = table()
    check(kw("fit", path, "--out", path, "-q"), "--out", "is a file")


#: arrays of an archive, and what the message has to name
ARCHIVES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no matrix": ({"y": np.zeros(3)}, ["no matrix", "y (3,)"]),
    "views of different length": ({"a": np.zeros((3, 2)), "b": np.zeros((4, 2))}, ["same number of rows"]),
    "Gram matrix that is not square": (
        {"K": np.zeros((9, 8, 2)), "y": np.arange(9)},
        ["(9, 8, 2)", "square"],
    ),
    "Gram matrices of two shapes": ({"K1": np.eye(8), "K2": np.eye(9), "y": np.arange(8)}, ["one shape"]),
    "NaN in a Gram matrix": (
        {"K": np.full((8, 8, 1), np.nan), "y": np.arange(8)},
        ["K has NaN", "[0, 0, 0]"],
    ),
    "no target": ({"X": np.ones((9, 2))}, ["no column 'y'"]),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(case: str, kw: Kw, tmp_path: Path) -> None:
    arrays, needed = ARCHIVES[case]
    np.savez(tmp_path / "d.npz", **arrays)
    check(kw("fit", tmp_path / "d.npz", "--out", tmp_path / "out", "-q"), "d.npz", *needed)


#: a kernel file, and what the message has to name
SPECS: dict[str, tuple[str, list[str]]] = {
    "not TOML": ("[[kernel]\n", ["not valid TOML"]),
    "no kernels": ("x = 1\n", ["[[kernel]]", "'x'"]),
    "no type": ("[[kernel]]\nname='a'\n", ["number 1", "type", "RBF"]),
    "unknown type": ("[[kernel]]\ntype='RFB'\n", ["'RFB'", "RBF"]),
    "code": ("[[kernel]]\ntype='FunctionKernel'\n", ["'FunctionKernel'", "RBF"]),
    "unknown parameter": ("[[kernel]]\ntype='RBF'\ngama=1\n", ["'gama'", "gamma"]),
    "bad value": ("[[kernel]]\ntype='RBF'\ngamma=-1.0\n", ["gamma"]),
    "unknown column": ("[[kernel]]\ntype='RBF'\ncolumns=['q']\n", ["'q'", "'a' and 'b'"]),
    "columns of another kind": ("[[kernel]]\ntype='RBF'\ncolumns=3\n", ["columns = 3"]),
    "a view of one table": (
        "[[kernel]]\ntype='RBF'\nview='rna'\n",
        ["view is for several tables", "leave it out"],
    ),
    "one name twice": ("[[kernel]]\ntype='RBF'\n[[kernel]]\ntype='RBF'\n", ["number 2", "used already"]),
    "counts": ("[[kernel]]\ntype='Chi2'\n", ["Chi2", "non-negative"]),
}


@pytest.mark.parametrize("case", SPECS)
def test_kernel_files(case: str, kw: Kw, table: Table, tmp_path: Path) -> None:
    text, needed = SPECS[case]
    spec = tmp_path / "k.toml"
    spec.write_text(text)
    check(kw("fit", table(), "--kernels", spec, "--out", tmp_path / "out", "-q", "--method", "lp"), *needed)


@pytest.fixture
def model(kw: Kw, table: Table, tmp_path: Path) -> Path:
    """A model of a number, a number and a category."""
    path = table(c=["red", "blue"] * 30)
    out = tmp_path / "model"
    assert (
        kw(
            "fit",
            path,
            "--categorical",
            "c",
            "--method",
            "lp",
            "--out",
            out,
            "-q",
            "--no-report",
            "--no-tune",
        ).code
        == 0
    )
    return out


#: new data, and what the message has to name
NEW: dict[str, tuple[str, list[str]]] = {
    "other columns": ("a,z\n1,2\n", ["new.csv", "no columns 'b' and 'c'", "fitted on", "'a' and 'z'"]),
    "text in a number": ("a,b,c\n1,oops,red\n", ["column 'b'", "'oops'", "row 1", "numbers"]),
    "a gap": ("a,b,c\n1,2,red\n1,,red\n", ["column 'b'", "row 2", "--impute"]),
    "infinite": ("a,b,c\n1,inf,red\n", ["column 'b'", "row 1"]),
    "unseen category": (
        "a,b,c\n1,2,green\n",
        ["column 'c'", "'green'", "row 1", "'blue' and 'red'", "--allow-unseen"],
    ),
    "missing category": ("a,b,c\n1,2,\n3,4,red\n", ["column 'c'", "row 1"]),
    "0 bytes": ("", ["new.csv", "0 bytes"]),
    "dates": ("a,b,c\n1,2024-03-01,red\n", ["column 'b'", "2024-03-01"]),
}


@pytest.mark.wide
@pytest.mark.parametrize("case", NEW)
def test_new_data(case: str, kw: Kw, model: Path, tmp_path: Path) -> None:
    text, needed = NEW[case]
    (tmp_path / "new.csv").write_text(text)
    check(kw("predict", model, tmp_path / "new.csv"), *needed)


#: options of inspect, and what the message has to name
ASKED: dict[str, tuple[list[str], list[str]]] = {
    "a picture of no known kind": (["--plot", "why.docx"], ["--plot why.docx", ".pdf"]),
    "nothing to compare with": (["--background", "0"], ["--background 0", "one row at least"]),
    "a function it does not have": (["--function", "maybe"], ["--function maybe", "the model has"]),
    "a name of several rows": (["--id", "c", "--sample", "red"], ["--sample red", "30 rows", "c"]),
}


@pytest.mark.wide
@pytest.mark.parametrize("case", ASKED)
def test_questions_about_a_model(case: str, kw: Kw, model: Path, table: Table, tmp_path: Path) -> None:
    options, needed = ASKED[case]
    path = table(c=["red", "blue"] * 30)
    check(kw("inspect", model, "--explain", path, *options), *needed)
    for option in ("--background", "--function", "--sample"):
        check(kw("inspect", model, option, "1"), f"{option} is for explanations: add --explain")


def test_gram_matrices_for_a_model_of_columns(kw: Kw, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "k.npz", K=np.ones((2, 3, 1)))
    check(kw("predict", model, tmp_path / "k.npz"), "Gram matrices", "columns of a table")


@pytest.mark.parametrize("command", ["predict", "inspect", "report"])
def test_damaged_and_absent_models(command: str, kw: Kw, model: Path, tmp_path: Path, table: Table) -> None:
    data = [table()] if command == "predict" else []
    content = (model / "model.kw").read_bytes()
    for name, broken in (
        ("flipped", content[:200] + bytes([content[200] ^ 1]) + content[201:]),
        ("cut", content[: len(content) // 2]),
        ("pickle", b"\x80\x04K\x01."),
        ("empty", b""),
    ):
        path = tmp_path / f"{name}.kw"
        path.write_bytes(broken)
        check(kw(command, path, *data), f"{name}.kw", "again")
    check(kw(command, table("other.csv"), *data), "other.csv", "Name the folder that fit --out wrote")
    check(kw(command, tmp_path / "no.kw", *data), "no.kw", "does not exist")
    check(kw(command, tmp_path, *data), "holds no model.kw")


def test_a_model_made_in_python_is_named_as_such(kw: Kw, table: Table, tmp_path: Path) -> None:
    import kernelweave

    X = np.arange(12.0).reshape(6, 2)
    kernelweave.save_model(kernelweave.MKLClassifier().fit(X, [0, 1] * 3), tmp_path / "own.kw")
    check(kw("predict", tmp_path / "own.kw", table()), "own.kw", "from Python", "load_model")


def test_usage_errors_exit_with_2(kw: Kw, table: Table) -> None:
    assert kw("fit").code == 2
    assert kw("fit", table(), "--method", "magic").code == 2
    assert kw("nonsense").code == 2


def test_json_errors_are_json(kw: Kw, tmp_path: Path) -> None:
    import json

    result = kw("fit", tmp_path / "no.csv", "--json")
    document = json.loads(result.out)
    assert document["exit_code"] == result.code == 2
    assert "no.csv" in document["error"]


def test_debug_shows_the_traceback(kw: Kw, tmp_path: Path) -> None:
    result = kw("fit", tmp_path / "no.csv", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert "Error:" in result.err


def test_an_error_of_ours_is_unexpected(
    kw: Kw, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelweave.app.cli import _run_fit

    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(_run_fit, "split_rows", broken)
    result = kw("fit", table(), "--out", tmp_path / "out", "-q")
    assert result.code == 1
    assert "unexpected ZeroDivisionError: by zero" in result.err
    assert "--debug" in result.err
    assert "Traceback" not in result.err


def test_names_of_rows_are_not_offered_as_numbers(kw: Kw, table: Any) -> None:
    error = kw("fit", table(n=[f"patient {k}" for k in range(60)]), "--target", "y").err
    assert "--id n" in error
    assert "--keep" not in error
