"""NumPy archives: a matrix X with y, several views, or Gram matrices; nothing in them is executed."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._words import quoted
from ...gram import KernelStack
from ._columns import FEWEST_ROWS, Parts, Target, group_column, target_columns, target_of
from ._console import CliError, check_file
from ._options import KernelChoice, Reading
from ._read import Sheet, objects

#: names under which the feature names of X may lie
FEATURE_NAMES = ("feature_names", "columns", "names")

EXPECTED = (
    "an archive holds X (n, p) and y; or several views, 2-D arrays with n rows each, and y; or Gram "
    "matrices, K (n, n, M) or K1, K2, ..., and y"
)


@dataclass(frozen=True)
class Grams:
    """Gram matrices of a file, K of shape (rows, columns, M), their names and the targets there may be."""

    path: Path
    K: np.ndarray
    names: list[str]
    targets: dict[str, np.ndarray]

    @property
    def n_rows(self) -> int:
        return len(self.K)


def read_arrays(path: Path) -> Sheet | Grams:
    """What an archive holds, as a table of columns or as Gram matrices."""
    arrays = load(path)
    vectors = {name: values for name, values in arrays.items() if values.ndim == 1}
    matrices = {name: values for name, values in arrays.items() if values.ndim >= 2}
    if "X" in matrices:
        matrices = {"X": matrices["X"]}
    if not matrices:
        raise CliError(f"{path} holds no matrix ({shapes(arrays)}): {EXPECTED}.")
    if any(name == "K" or (name[0] == "K" and name[1:].isdigit()) for name in matrices):
        return read_grams(path, matrices, vectors)
    return read_views(path, matrices, vectors)


def load(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive; pickled objects are refused, not read."""
    check_file(path)
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not hasattr(archive, "files"):
                raise CliError(
                    f"{path} holds one array without a name: write it with numpy.savez(X=..., y=...)."
                )
            return {name: archive[name] for name in archive.files}
    except ValueError as error:
        if "pickle" in str(error) or "Object arrays" in str(error):
            raise CliError(
                f"{path} holds Python objects, which are not read for safety: save plain numbers or text, "
                "for example y.astype(str)."
            ) from error
        raise CliError(f"{path} is damaged, or no NPZ archive ({error}): write it again.") from error
    except (zipfile.BadZipFile, OSError, EOFError, MemoryError, KeyError, zipfile.LargeZipFile) as error:
        raise CliError(f"{path} is damaged, or no NPZ archive ({error}): write it again.") from error


def read_views(path: Path, matrices: dict[str, np.ndarray], vectors: dict[str, np.ndarray]) -> Sheet:
    """X, or several views side by side, each a group of columns of its own."""
    rows = {name: len(values) for name, values in matrices.items()}
    if len(set(rows.values())) > 1 or any(values.ndim != 2 for values in matrices.values()):
        raise CliError(
            f"{path}: views must be 2-D with the same number of rows ({shapes(matrices)}); {EXPECTED}."
        )
    n = next(iter(rows.values()))
    given = {key: vectors.pop(key) for key in FEATURE_NAMES if key in vectors}
    columns: dict[str, np.ndarray] = {}
    groups = {}
    for view, values in matrices.items():
        names = column_names(view, values.shape[1], given, alone=len(matrices) == 1)
        groups[view] = names
        columns.update({name: as_column(values[:, j]) for j, name in enumerate(names)})
    extra = {name: as_column(values) for name, values in vectors.items() if len(values) == n}
    return Sheet.of(path, {**columns, **extra}, groups)


def column_names(view: str, width: int, given: dict[str, np.ndarray], alone: bool) -> list[str]:
    """Names of the columns of a view: the file's own where there are so many, else numbered."""
    for names in given.values():
        if alone and len(names) == width == len(set(names.astype(str))):
            result: list[str] = names.astype(str).tolist()
            return result
    prefix = "column " if alone else f"{view}_"
    return [f"{prefix}{j}" for j in range(width)]


def as_column(values: np.ndarray) -> np.ndarray:
    """An array of the file as a column: float64, dates, or text."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        return values
    return objects(str(v, "utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values)


def read_grams(path: Path, matrices: dict[str, np.ndarray], vectors: dict[str, np.ndarray]) -> Grams:
    """K of shape (rows, columns, M), from one array or from one per kernel."""
    if "K" in matrices:
        K, names = matrices["K"], []
        K = K[:, :, None] if K.ndim == 2 else K
    else:
        names = sorted(matrices, key=lambda name: (len(name), name))
        if len({matrices[name].shape for name in names}) > 1 or matrices[names[0]].ndim != 2:
            raise CliError(f"{path}: Gram matrices must have one shape ({shapes(matrices)}); {EXPECTED}.")
        K = np.stack([matrices[name] for name in names], axis=2)
    if K.ndim != 3 or K.dtype.kind not in "biuf":
        raise CliError(f"{path}: K is {K.dtype} of shape {K.shape}; {EXPECTED}.")
    if not np.isfinite(K).all():
        where = np.argwhere(~np.isfinite(K))[0]
        raise CliError(
            f"{path}: K has NaN or infinite values, the first at {where.tolist()}: compute it again."
        )
    given = next((vectors.pop(key) for key in ("kernel_names", *FEATURE_NAMES) if key in vectors), None)
    if given is not None and len(given) == K.shape[2]:
        names = given.astype(str).tolist()
    names = names or [f"K{m + 1}" for m in range(K.shape[2])]
    targets = {name: as_column(values) for name, values in vectors.items() if len(values) == len(K)}
    return Grams(path, K.astype(np.float64), names, targets)


def shapes(arrays: dict[str, np.ndarray]) -> str:
    """Names and shapes for a message."""
    return quoted([f"{name} {values.shape}" for name, values in arrays.items()], 6)


# -- Gram matrices ready to be learned from -----------------------------------------------------------


@dataclass(frozen=True)
class GramEncoder:
    """Which samples of a file of Gram matrices a model was trained on.

    Attributes
    ----------
    rows : list of int
        The training samples.
    n_samples : int
        Samples of the file.
    names : list of str
        The kernels.
    """

    rows: list[int]
    n_samples: int
    names: list[str]

    def transform(self, grams: Grams) -> KernelStack:
        """New samples (rows) against the training samples, found among the columns of the file."""
        if grams.K.shape[2] != len(self.names):
            raise CliError(
                f"{grams.path} has {grams.K.shape[2]} Gram matrices, the model was fitted on "
                f"{len(self.names)}: {quoted(self.names)}."
            )
        width = grams.K.shape[1]
        if width not in (self.n_samples, len(self.rows)):
            raise CliError(
                f"{grams.path}: K has {width} columns; give new samples (rows) against the {self.n_samples} "
                f"samples of the file fitted on, or against the {len(self.rows)} of its training part."
            )
        columns = np.asarray(self.rows) if width == self.n_samples else np.arange(width)
        return stack_of(grams.K[:, columns], self.names)


@dataclass(frozen=True)
class GramDesign:
    """Gram matrices of all samples, and targets."""

    grams: Grams
    target: Target
    ids: np.ndarray
    group_of: np.ndarray | None = None

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        grams = self.grams
        encoder = GramEncoder(train.tolist(), grams.n_rows, grams.names)
        X, X_rest = (stack_of(grams.K[np.ix_(rows, train)], grams.names) for rows in (train, rest))
        return Parts(X, X_rest, encoder, "precomputed", f"{len(grams.names)} Gram matrices of the file")


def stack_of(K: np.ndarray, names: list[str]) -> KernelStack:
    """Matrices (rows, columns, M) one after another in memory, with their names."""
    return KernelStack(list(np.ascontiguousarray(np.moveaxis(K, 2, 0))), names)


def gram_design(grams: Grams, reading: Reading, choice: KernelChoice) -> GramDesign:
    """Square Gram matrices with targets."""
    path, shape = grams.path, grams.K.shape
    if choice.given:
        raise CliError(
            f"{path} holds Gram matrices, which are the kernels: leave out --kernels, --groups, --bands."
        )
    if shape[0] != shape[1]:
        raise CliError(f"{path}: K has shape {shape}; a fit needs square matrices, one row per sample.")
    if shape[0] < FEWEST_ROWS:
        raise CliError(f"{path} has {shape[0]} samples; a fit needs at least {FEWEST_ROWS}.")
    target = target_of(target_columns(grams.targets, reading, path), reading, path)
    group_of = group_column(grams.targets, reading, path)
    return GramDesign(grams, target, np.arange(1, shape[0] + 1), group_of)
