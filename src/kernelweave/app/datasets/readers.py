"""From what was downloaded to arrays: one function per kind of file, named in the catalogue."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

#: codes of the mushrooms' features, as in the file's description
MUSHROOM_FEATURES = 22
#: columns of the views of the digits, by which they are known
MFEAT_VIEWS = {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}


def _rows(content: bytes) -> list[list[str]]:
    """Lines of a comma-separated file, without empty ones."""
    lines = csv.reader(io.StringIO(content.decode("ascii")))
    return [[cell.strip() for cell in line] for line in lines if line]


def _signs(labels: list[str] | np.ndarray, positive: str) -> np.ndarray:
    """+1 for one label, -1 for the other."""
    found = np.array([label == positive for label in labels])
    if len(set(map(str, labels))) != 2 or not found.any():
        raise ValueError(f"labels {sorted(set(map(str, labels)))[:5]}, one of which should be {positive!r}")
    return np.where(found, 1, -1).astype(np.int8)


def labelled(positive: str) -> Callable[[list[bytes]], Arrays]:
    """A reader of numbers, with the label in the last column."""

    def read(files: list[bytes]) -> Arrays:
        rows = _rows(files[0])
        X = np.array([line[:-1] for line in rows], dtype=np.float64)
        return {"X": X.astype(np.float32), "y": _signs([line[-1] for line in rows], positive)}

    return read


def wpbc(files: list[bytes]) -> Arrays:
    """Number, outcome, 33 features; rows with a missing value are left out."""
    rows = [line for line in _rows(files[0]) if "?" not in line]
    X = np.array([line[2:] for line in rows], dtype=np.float64)
    return {"X": X.astype(np.float32), "y": _signs([line[1] for line in rows], "R")}


def mushroom(files: list[bytes]) -> Arrays:
    """Poisonous (p) or edible (e), then one letter per feature; `X` counts letters in alphabetical order."""
    rows = _rows(files[0])
    letters = np.array([line[1:] for line in rows])
    if letters.shape[1] != MUSHROOM_FEATURES:
        raise ValueError(f"{letters.shape[1]} features in place of {MUSHROOM_FEATURES}")
    codes = [np.unique(column, return_inverse=True) for column in letters.T]
    onehot = [inverse[:, None] == np.arange(len(found)) for found, inverse in codes]
    return {
        "X": np.column_stack([inverse for _, inverse in codes]).astype(np.uint8),
        "y": _signs([line[0] for line in rows], "p"),
        "categories": np.array(["".join(found) for found, _ in codes]),
        "X_onehot": np.hstack(onehot),
    }


def pima(found: list[np.ndarray]) -> Arrays:
    """OpenML: eight numbers, tested positive or negative."""
    values, _ = found
    X = values[:, :-1].astype(np.float64)
    return {"X": X.astype(np.float32), "y": _signs(values[:, -1], "tested_positive")}


def mnist(found: list[np.ndarray]) -> Arrays:
    """OpenML: 70000 rows of pixels and the digit, the last 10000 to test."""
    values, _ = found
    X, y = values[:, :-1].astype(np.uint8), values[:, -1].astype(np.uint8)
    return {"X": X[:60000], "y": y[:60000], "X_test": X[60000:], "y_test": y[60000:]}


def tecator(found: list[np.ndarray]) -> Arrays:
    """OpenML: 100 absorbances, principal components that are left out, moisture, fat and protein."""
    values, names = found
    lowered = [str(name).lower() for name in names]
    spectrum = [k for k, name in enumerate(lowered) if name.startswith("absorb")]
    targets = [lowered.index(name) for name in ("moisture", "fat", "protein")]
    return {
        "X": values[:, spectrum].astype(np.float32),
        "Y": values[:, targets].astype(np.float32),
        "property_names": np.array(["moisture", "fat", "protein"]),
        "wavelength_nm": np.linspace(850.0, 1050.0, len(spectrum), dtype=np.float32),
    }


def _mat(content: bytes) -> dict[str, Any]:
    from scipy.io import loadmat

    return {key: value for key, value in loadmat(io.BytesIO(content)).items() if not key.startswith("__")}


def indian_pines(files: list[bytes]) -> Arrays:
    """The cube and the classes of its pixels."""
    cube, gt = (next(iter(_mat(content).values())) for content in files)
    return {"cube": cube.astype(np.uint16), "gt": gt.astype(np.uint8), "classes": np.array(PINES)}


PINES = [
    "background", "Alfalfa", "Corn-notill", "Corn-mintill", "Corn", "Grass-pasture", "Grass-trees",
    "Grass-pasture-mowed", "Hay-windrowed", "Oats", "Soybean-notill", "Soybean-mintill", "Soybean-clean",
    "Wheat", "Woods", "Buildings-Grass-Trees-Drives", "Stone-Steel-Towers",
]  # fmt: skip


def ovarian(files: list[bytes]) -> Arrays:
    """Spectra `obs` and groups `grp`, Cancer or Normal."""
    found = _mat(files[0])
    groups = [str(np.ravel(cell)[0]) for cell in np.ravel(found["grp"])]
    return {"X": found["obs"].astype(np.float32), "y": _signs(groups, "Cancer")}


def _dataset(found: Any) -> np.ndarray:
    """The numbers of a data set object of PLS_Toolbox, or of a plain matrix."""
    while found.dtype == object or found.dtype.names:
        found = found["data"].ravel()[0] if found.dtype.names else found.ravel()[0]
    return np.asarray(found, dtype=np.float64)


def swri_diesel(files: list[bytes]) -> Arrays:
    """Spectra and seven properties, not a number where not measured."""
    found = _mat(files[0])
    return {
        "X": _dataset(found["diesel_spec"]),
        "Y": _dataset(found["diesel_prop"]).astype(np.float32),
        "property_names": np.array(["BP50", "CN", "D4052", "FLASH", "FREEZE", "TOTAL", "VISC"]),
        "wavelength_nm": np.arange(750, 1551, 2, dtype=np.int16),
    }


def corn_nir(files: list[bytes]) -> Arrays:
    """Spectra of three instruments and four properties."""
    found = _mat(files[0])
    views = {f"X_{view}": _dataset(found[f"{view}spec"]).astype(np.float32) for view in ("m5", "mp5", "mp6")}
    return {
        **views,
        "Y": _dataset(found["propvals"]).astype(np.float32),
        "property_names": np.array(["Moisture", "Oil", "Protein", "Starch"]),
        "wavelength_nm": np.arange(1100, 2499, 2, dtype=np.int16),
    }


def _cells(content: bytes) -> tuple[list[np.ndarray], np.ndarray]:
    """A cell array of views and a vector of classes, whatever they are called; samples may be columns."""
    found = _mat(content)
    cells = next((value for value in found.values() if value.dtype == object), None)
    vectors = [np.ravel(v) for v in found.values() if v.dtype != object and v.size > 1 and 1 in v.shape]
    if cells is None or not vectors:
        raise ValueError(f"no views and classes among {', '.join(found)}")
    y = vectors[0].astype(np.int64)
    return [_by_sample(cell, len(y)) for cell in np.ravel(cells)], (y - y.min()).astype(np.uint8)


def views(*names: str) -> Callable[[list[bytes]], Arrays]:
    """A reader of views in their order."""

    def read(files: list[bytes]) -> Arrays:
        found, y = _cells(files[0])
        named = {f"X_{name}": X.astype(np.float32) for name, X in zip(names, found, strict=True)}
        return {"y": y, "view_names": np.array(names), **named}

    return read


def mfeat(files: list[bytes]) -> Arrays:
    """Six views, told apart by their columns."""
    views, y = _cells(files[0])
    by_width = {X.shape[1]: X for X in views}
    named = {f"X_{name}": by_width[width] for name, width in MFEAT_VIEWS.items()}
    return {
        "y": y,
        "view_names": np.array(list(MFEAT_VIEWS)),
        **named,
        "classes": np.array(list("0123456789")),
    }


def _by_sample(view: Any, n: int) -> np.ndarray:
    dense = view.toarray() if hasattr(view, "toarray") else np.asarray(view)
    return dense if len(dense) == n else dense.T


#: in the order of their codes
LOCATIONS = [
    "ER", "Golgi", "chloroplast", "cytoplasmic", "extracellular", "lysosomal", "mitochondrial", "nuclear",
    "peroxisomal", "plasma_membrane", "vacuolar",
]  # fmt: skip


def multiloc(files: list[bytes]) -> Arrays:
    """One FASTA file per location."""
    sequences = [_fasta(content) for content in files]
    every = [sequence for one in sequences for sequence in one]
    y = np.repeat(np.arange(len(files)), [len(one) for one in sequences])
    return {
        "seq_bytes": np.frombuffer("".join(every).encode("ascii"), dtype=np.uint8),
        "offsets": np.cumsum([0, *map(len, every)]).astype(np.int32),
        "y": y.astype(np.uint8),
        "classes": np.array(LOCATIONS),
    }


def _fasta(content: bytes) -> list[str]:
    """Sequences of a file in which each begins with a line ``>name``."""
    blocks = content.decode("ascii").split(">")[1:]
    return ["".join(block.split("\n")[1:]).replace("\r", "").replace(" ", "") for block in blocks]
