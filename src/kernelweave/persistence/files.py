"""`save_model` and `load_model`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .. import _container
from .codec import ModelFileError, Reader, Writer
from .objects import OBJECTS, is_model
from .pipelines import PIPELINES
from .values import VALUES

FORMS = VALUES + PIPELINES + OBJECTS


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Store a fitted estimator, or a pipeline that ends in one, in one file that is safe to load.

    The file holds arrays and JSON under checksums, never code. It keeps what predictions need: the
    training rows with a coefficient, the kernels with a weight, coefficients, normalisation,
    calibration; and the parameters and fitted attributes. It is written beside its place and then
    moved there, so an interrupted save leaves the earlier file as it was.

    Parameters
    ----------
    model : fitted estimator of kernelweave
        Alone, or at the end of scikit-learn's `Pipeline` or in its `TransformedTargetRegressor`; before it
        may be `ColumnTransformer`, scalers, encoders, `SimpleImputer`, `PCA` and others that the guide lists.
    path : str or path
        Usually ends in ``.kw``. A file that exists is replaced.

    Raises
    ------
    ModelFileError
        If the model holds a Python function (`FunctionKernel`, `AutogradKernel`, `FunctionTransformer`, a
        penalty or hyper-prior of your own) or an object of a class that is not in the list.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kw.MKLClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.kw"
    ...     kw.save_model(model, path)
    ...     loaded = kw.load_model(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if not is_model(model):
        raise ModelFileError(
            "save_model stores estimators of kernelweave, and pipelines that end in one, not a "
            f"{type(model).__name__}: others go through skops (see kernelweave.persistence.skops_types)."
        )
    check_is_fitted(model)
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {str(folder)!r} for {Path(path).name}: make it first.")
    writer = Writer(FORMS)
    content = writer.value(model)
    try:
        _container.write(Path(path), _container.MODEL, content, writer.arrays)
    except _container.ContainerError as error:
        raise ModelFileError(f"{error}: fit it with fewer kernels.") from error


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save_model` stored; safe on files of any origin.

    Loading executes nothing that a file says: classes are looked up in a fixed list of kernelweave's
    own and of scikit-learn's transformers. Sizes, types and checksums are verified before anything is
    allocated or made, and memory and time stay within a fixed multiple of the size of the file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : fitted estimator
        Its predictions are those of the model stored, to the last bit on the same machine.
        Parameters that no file can hold and only a new fit would need are `NotStored`.

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, not a model file, or of a newer format.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import kernelweave as kw
    >>> kw.load_model(__file__)
    Traceback (most recent call last):
    ...
    kernelweave.persistence.codec.ModelFileError: ...: it is not a model file of kernelweave.
    """
    try:
        with _container.opened(path) as file:
            head, arrays = _container.read(file, _container.MODEL)
        reader = Reader(FORMS, arrays, head.size)
        model = reader.value(head.content)
        _check_model(model, reader)
    except (ModelFileError, _container.ContainerError) as error:
        said = str(error).removesuffix(".")
        raise ModelFileError(f"cannot load {os.fspath(path)!r}: {said}.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"cannot load {os.fspath(path)!r}: there is no such file; name the one that save_model wrote, or "
            "the model.kw in the folder of `kernelweave fit --out`."
        ) from error
    except (OSError, ImportError):
        raise
    except Exception as error:  # whatever a file makes of the readers is a fault of the file
        raise ModelFileError(
            f"cannot load {os.fspath(path)!r}: it is damaged or was not written by save_model "
            f"({type(error).__name__}: {error!s:.200})."
        ) from error
    return model


def _check_model(model: Any, reader: Reader) -> None:
    if not is_model(model):
        raise ModelFileError(f"it holds a {type(model).__name__}, which is no estimator of kernelweave.")
    check_is_fitted(model)
    if not all(reader.used):
        raise ModelFileError("it is damaged: it holds arrays that belong to nothing.")
