"""Whether the files that a command names are there, seen before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

from ._errors import CliError

TEXT = (".csv", ".tsv", ".txt", ".tab", ".data")
ARROW = (".parquet", ".pq", ".feather", ".arrow")

#: the file of a model in the folder that fit wrote
MODEL = "model.kw"

#: names in a message
FEW = 12


def listed(names: list[str], most: int = FEW) -> str:
    """Names for a message, the first few of many.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b', ... (3 in all)"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def suffix(path: Path) -> str:
    """The ending that says what a file is, without .gz."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def check_file(path: Path) -> None:
    """Refuse what is not a file with something in it."""
    try:
        if path.is_dir():
            raise CliError(f"{path} is a folder: name the data file in it. {inside(path)}")
        if not path.exists():
            raise CliError(f"{path} does not exist: check the name. {inside(path.parent)}")
        if path.stat().st_size == 0:
            raise CliError(f"{path} is empty (0 bytes): write or download it again.")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise CliError(f"{path} cannot be read ({error.strerror}): check its permissions.") from error


def check_spec(path: Path | None) -> None:
    """Refuse a file of kernels that is not there."""
    if path is not None and (path.is_dir() or not path.exists()):
        raise CliError(f"--kernels: {path} is no file; see the guide, Command line, for what it may say.")


def inside(folder: Path) -> str:
    """The data files of a folder, for a message."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if suffix(entry) in (*TEXT, *ARROW, ".npz"))
    except OSError:
        return f"There is no folder {folder}."
    return f"Data files there: {listed(names, 5)}." if names else "There are no data files there."


def model_file(path: Path) -> Path:
    """The file of a model that is named by its file or its folder."""
    if not path.exists():
        raise CliError(f"{path} does not exist: name a model file, or the folder that fit --out wrote.")
    if path.is_dir() and not (path / MODEL).exists():
        raise CliError(f"{path} holds no {MODEL}: name a model file, or the folder that fit --out wrote.")
    return path / MODEL if path.is_dir() else path


def check_out(out: Path | None, *read: Path | None) -> None:
    """Refuse to write over a file that the same command reads."""
    for path in read:
        if out is not None and path is not None and out.exists() and out.samefile(path):
            raise CliError(f"--out {out} would write over {path}, which is read: name another file.")
