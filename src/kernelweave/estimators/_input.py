"""Data that cannot be used: errors that name the argument, the columns or rows, and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from .._gaps import is_missing
from .._registry import did_you_mean
from .._typing import FloatArray, IntArray
from .._words import listed, quoted
from ..gram import KernelStack
from ..gram.sources import Gaps
from ..gram.tables import Table
from ..kernels import Views, as_views
from ..kernels.columns import column_names
from ..kernels.faults import as_floats, is_pandas, not_finite_error, unusable_error
from ..kernels.views import lacking

#: sizes whose squares and products with C are floating-point numbers
WITHIN = (1e-100, 1e100)

#: scikit-learn's word for data without targets
NO_TARGET = "no_validation"

TOO_LARGE = "infinity or a value too large for dtype('float64')"


# -- parameters -------------------------------------------------------------------------------


def check_settings(estimator: Any) -> None:
    """Refuse values of `n_jobs`, `verbose` and `fit_intercept` that would fail, or count as true, later."""
    n_jobs, verbose = estimator.n_jobs, estimator.verbose
    if n_jobs is not None and not (isinstance(n_jobs, Integral) and n_jobs != 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of threads, -1 for one per core, or None.")
    if not (isinstance(verbose, Integral) and int(verbose) >= 0):
        raise ValueError(f"verbose={verbose!r} must be 0, 1 or 2.")
    fit_intercept = getattr(estimator, "fit_intercept", True)
    if not (isinstance(fit_intercept, bool | np.bool_ | Integral) and fit_intercept in (0, 1)):
        raise ValueError(f"fit_intercept={fit_intercept!r} must be True or False.")


def check_positive(name: str, value: Any) -> None:
    """Raise unless the parameter is a positive number whose square is one too."""
    if not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise ValueError(f"{name}={value!r} must be a positive number.")
    if not WITHIN[0] < float(value) < WITHIN[1]:
        raise ValueError(f"{name}={value!r} must lie between {WITHIN[0]:g} and {WITHIN[1]:g}.")


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise unless the parameter is one of some names."""
    if value not in known:
        *others, last = map(repr, known)
        raise ValueError(f"{name}={value!r}: expected {', '.join(others)} or {last}.")


def check_engine(gram: Any, known: Sequence[str]) -> None:
    """Raise unless `gram` names one of some engines."""
    if gram not in known:
        raise ValueError(f"gram={gram!r} is not a Gram engine: pass one of {', '.join(map(repr, known))}.")


def positive_grid(name: str, values: Any, spread: Callable[[int], Any]) -> FloatArray:
    """Values to search through, from small to large: those given, or `spread` over so many.

    Examples
    --------
    >>> positive_grid("Cs", [3.0, 1.0], np.arange)
    array([1., 3.])
    """
    if isinstance(values, Integral) and not isinstance(values, bool) and int(values) > 0:
        return np.sort(spread(int(values)))
    grid = as_floats(np.atleast_1d(values))
    if grid is None or grid.ndim > 1 or grid.size == 0 or not ((grid > 0) & (grid < np.inf)).all():
        raise ValueError(f"{name}={values!r} must be positive numbers, or how many to try.")
    return np.sort(grid)


# -- samples ----------------------------------------------------------------------------------


def check_weights(sample_weight: Any, X: Any) -> FloatArray:
    """Sample weights as a non-negative array, ones by default; those with an index by the IDs of views."""
    n = X.shape[0]
    if isinstance(X, Views):
        sample_weight = X.per_sample("sample_weight", sample_weight)
    weight: FloatArray = _check_sample_weight(
        sample_weight, np.zeros((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere: at least one sample needs a positive weight.")
    if weight.max() > WITHIN[1]:
        raise ValueError(f"sample_weight has {weight.max():g}: rescale the weights, and C by as much.")
    return weight


def take(X: Any, rows: IntArray) -> Any:
    """Rows of the data (both sample axes of a stack); the data themselves when all are taken."""
    if len(rows) == X.shape[0]:
        return X
    if isinstance(X, Table):
        return X.take(rows)
    return X[np.ix_(rows, rows)] if isinstance(X, KernelStack) else _safe_indexing(X, rows)


def check_table(X: Any) -> None:
    """Refuse what is no table of samples, and masked entries: NumPy forgets the mask on conversion."""
    if X is None or isinstance(X, str | bytes):
        raise ValueError(f"X={X!r}: pass the samples themselves, such as the table pandas.read_csv returns.")
    if isinstance(X, list | tuple) and X and all(len(getattr(part, "shape", ())) == 2 for part in X):
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} tables: pass Views(X), or a dict of name to table, for "
            "tables of the same samples; Gram matrices go with kernels='precomputed'."
        )
    if np.ma.is_masked(X):
        raise ValueError(
            f"X is a masked array, and masked entries are missing values. {not_finite_error(_unmasked(X))} "
            "X.filled(numpy.nan) has NaN in their place."
        )
    if getattr(getattr(X, "dtype", None), "names", None):
        raise ValueError(
            f"X is a structured array with the fields {listed([repr(name) for name in X.dtype.names])}: pass "
            "a table with one column for each, for example pandas.DataFrame(X)."
        )
    if is_pandas(X):
        repeated = [repr(name) for name, times in Counter(X.columns).items() if times > 1]
        if repeated:
            raise ValueError(
                f"X has several columns named {listed(repeated)}: give every column its own name."
            )


def _unmasked(X: Any) -> Any:
    return X.astype(np.float64).filled(np.nan)


def dates_as_objects(X: Any) -> Any:
    """A data frame that NumPy can make an array of: it has no common type for dates and numbers."""
    if not is_pandas(X):
        return X
    dated = [name for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") in "mM"]
    return X.astype(dict.fromkeys(dated, object)) if dated else X


@contextmanager
def explained(X: Any) -> Iterator[None]:
    """Say where and what to do, where scikit-learn and NumPy say only what is wrong with the data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        better = _explanation(str(error), X)
        if better is None:
            raise
        raise better from error


def _explanation(words: str, X: Any) -> ValueError | TypeError | None:
    if "inconsistent numbers of samples" in words:
        return ValueError(f"X and y must have the same samples, in the same order. {words}.")
    if "inhomogeneous" in words:
        return ValueError(_ragged(X))
    if words.startswith("Input X contains"):
        return not_finite_error(X)
    if "Complex data" in words:
        return ValueError(
            "Complex data not supported: X holds complex numbers; pass their real and imaginary "
            "parts as columns, numpy.hstack([X.real, X.imag])."
        )
    if "with dim 3" in words:
        return ValueError(
            f"{words} If X holds Gram matrices, of shape (n, n, n_kernels), use an "
            "MKL estimator with kernels='precomputed'; else one row for each sample, X.reshape(len(X), -1)."
        )
    if "could not convert" in words or "float() argument" in words:
        return unusable_error(X)
    return None


def _ragged(X: Any) -> str:
    sizes = sorted({np.shape(row)[0] if np.ndim(row) else 1 for row in X if _is_even(row)})
    shown = listed([str(size) for size in sizes])
    return (
        f"X has rows of different lengths ({shown}): every sample needs the same features; compute some of "
        "each, or kernels between them and pass kernels='precomputed'."
    )


def _is_even(row: Any) -> bool:
    try:
        np.shape(row)
    except ValueError:
        return False
    return True


# -- views ------------------------------------------------------------------------------------


def one_table(X: Any, y: Any = None) -> Any:
    """Views, in the order of labels, as one table, for kernels that learn from all columns; else X."""
    X = as_views(X, y)
    if not isinstance(X, Views):
        return X
    check_gaps(X)
    return X.joined()


def per_sample(X: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """X, and what is given with its samples in their order: y as it is, the rest by IDs that it has.

    With one table, whose rows have no IDs to look up, everything stays as it is.
    """
    indexed = [n for n, value in given.items() if n != "y" and hasattr(value, "iloc") and np.ndim(value) == 1]
    if not indexed:
        return X, given
    y = given.get("y")
    X = as_views(X, y)
    if isinstance(X, Views):
        given = {**given, **{name: X.per_sample(name, given[name], y).to_numpy() for name in indexed}}
    return X, given


@contextmanager
def without_gaps(table: Any, ids: Any) -> Iterator[None]:
    """Say in which rows of a view single values are missing, and whose job that is."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        words = str(error).split(": fill gaps")[0]
        raise ValueError(f"{words}{_rows_with_gaps(table, ids)}. {IMPUTE}") from error


IMPUTE = (
    "Single values that are missing are the job of an imputer: "
    "make_pipeline(ViewTransformer(SimpleImputer()), model)."
)


def _rows_with_gaps(table: Any, ids: Any) -> str:
    values = table.toarray() if sparse.issparse(table) else np.asarray(table)
    rows = np.flatnonzero(is_missing(values).any(axis=1))
    return f", rows {listed(map(str, rows))}" if ids is None else f", samples {quoted(ids[rows], 5)}"


def check_views(X: Views, fitted: dict[str, Any] | None, estimator: str) -> None:
    """Refuse new samples whose views have other columns than those of a fit."""
    if fitted is None:
        raise ValueError(f"X has the views {quoted(X.names)}, and {estimator} was fitted on one table.")
    unknown = [name for name in X.names if name not in fitted]
    if len(unknown) == len(X.names):  # the kernels tell what they need
        return
    if unknown:
        raise ValueError(
            f"X has a view {unknown[0]!r} that {estimator} was not fitted on: its views are {quoted(fitted)}."
            f"{did_you_mean(unknown[0], fitted)}"
        )
    for name, table in X.tables.items():
        held, names, size = fitted[name], column_names(table), table.shape[1]
        expected, remedy = len(held) if isinstance(held, list) else held, ""
        if isinstance(held, list) and names is not None:
            lost = [column for column in held if column not in set(names)]
            as_held = f"pass them as they were, table[model.views_in_[{name!r}]]"
            remedy = f": it lacks {quoted(lost, 5)}" if lost else f": {as_held}"
        if size != expected:
            raise ValueError(
                f"view {name!r} has {size} columns, had {expected} when {estimator} was fitted{remedy}."
            )
        if isinstance(held, list) and names is not None and names != held:
            odd = next(k for k in range(expected) if names[k] != held[k])
            raise ValueError(
                f"view {name!r} has other columns than when {estimator} was fitted, or another order: "
                f"column {odd} is {names[odd]!r} in place of {held[odd]!r}{remedy}."
            )


def check_gaps(views: Views | Gaps, missing: str | None = None) -> None:
    """Refuse samples that have no view at all, and unless `missing` says what to do, any that lack one.

    None is for estimators without that parameter.
    """
    there, n = views.observed, len(views.observed)
    if there.all():
        return
    what, how, ids = "views", ", X[X.observed.all(axis=1)] of X = Views(...)", getattr(views, "ids", None)
    if isinstance(views, Gaps):
        what, how = "kernels", ""
    nothing = np.flatnonzero(~there.any(axis=1))
    if len(nothing):
        shown = listed(map(str, nothing)) if ids is None else quoted(ids[nothing], 5)
        empty = [name for name, own in zip(views.names, there.T, strict=True) if not own.any()]
        first = f" No sample at all has {quoted(empty)}: leave that out first." if empty else ""
        raise ValueError(f"{len(nothing)} of {n} samples have none of the {what}: leave out {shown}.{first}")
    if missing not in ("error", None):
        return
    words = listed(lacking(views.names, there))
    if missing is None:
        raise ValueError(f"{words}: leave those samples out{how}, or take MKLClassifier or MKLRegressor.")
    raise ValueError(
        f"{words}; missing='complete' completes {what} from the others, missing='mask' and 'margin' do "
        f"without them. Or leave those samples out{how}."
    )


def patterns_of(views: Views | Gaps) -> list[tuple[tuple[str, ...], int]]:
    """Which views samples have together, and how many samples have them, the most frequent first."""
    rows, counts = np.unique(views.observed, axis=0, return_counts=True)
    names = [tuple(name for name, own in zip(views.names, row, strict=True) if own) for row in rows]
    order = np.argsort(-counts, kind="stable")
    return [(names[k], int(counts[k])) for k in order]


# -- precomputed kernels ----------------------------------------------------------------------


def check_stack_shape(shape: tuple[int, int, int], n_train: int | None = None, n_kernels: int = 0) -> None:
    """Refuse matrices with the kernels on the first axis, and say how to move them.

    Parameters
    ----------
    shape : tuple
        That of the array given.
    n_train, n_kernels : int, optional
        Those of the fit; None at the fit itself.
    """
    remedy = "numpy.moveaxis(X, 0, -1)"
    if n_train is None:
        if shape[0] == shape[1] or shape[1] != shape[2]:
            return
        expected = "(n, n, n_kernels)"
    else:
        if shape[0] != n_kernels or n_train not in shape[1:]:
            return
        expected = f"(n_test, {n_train}, {n_kernels})"
        remedy = remedy if shape[2] == n_train else "X.T"  # (n_kernels, n_train, n_test) the other way round
    raise ValueError(
        f"X has shape {shape}, with the kernels on the first axis: kernels='precomputed' takes shape "
        f"{expected}, pass {remedy}."
    )


# -- targets ----------------------------------------------------------------------------------


def check_targets(y: Any, numeric: bool, estimator: str) -> None:
    """Refuse targets that are missing, or not what the estimator learns.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, n_outputs)
    numeric : bool
        Whether they must be numbers.
    estimator : str
        Name of the class.
    """
    if y is None or sparse.issparse(y):
        return
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"y has rows of different lengths: pass one target for each sample ({error})."
        ) from error
    if values.dtype.names:
        _refuse_fields(values.dtype.names, numeric, estimator)
    missing = np.ma.getmaskarray(y) if np.ma.is_masked(y) else is_missing(values)
    if missing.any():
        _refuse_rows(missing, "NaN")
    if values.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: y holds complex numbers; pass their real part, or two "
            "columns to a regressor."
        )
    if numeric:
        _check_numbers(values, estimator)
    elif values.dtype.kind == "O":
        _check_one_type(values, column_names(y))


def _refuse_fields(names: tuple[str, ...], numeric: bool, estimator: str) -> None:
    columns = f"numpy.column_stack([y[{names[-1]!r}], ...]), in the order that {estimator} asks for"
    several = f", or several as columns, {columns}" if numeric else ""
    raise ValueError(
        f"y is a structured array with the fields {listed([repr(name) for name in names])}: pass one of "
        f"them, y[{names[-1]!r}]{several}. One alone does not say what the others do, such as that a time is "
        "censored."
    )


def _refuse_rows(at: np.ndarray, words: str) -> None:
    rows = np.flatnonzero(at.reshape(len(at), -1).any(axis=1))
    shown = f"row{'s' * (len(rows) > 1)} {listed([str(row) for row in rows])}, counted from 0"
    raise ValueError(
        f"Input y contains {words} in {len(rows)} of {len(at)} targets ({shown}): leave those samples out of "
        "X and y, for example with a mask of the others, X[known] and y[known]."
    )


def _check_numbers(values: np.ndarray, estimator: str) -> None:
    odd = values.ravel()[:1]
    if values.dtype.kind in "mM" or (values.dtype.kind == "O" and hasattr(odd[0], "isoformat")):
        raise ValueError(
            f"y holds dates or times, such as {str(odd[0])[:19]!r}: {estimator} learns numbers; turn them "
            "into numbers first, for example days since a start."
        )
    numbers = as_floats(values)
    if numbers is None:
        odd = next(value for value in values.ravel() if as_floats([value]) is None)
        if values.ndim == 2 and as_floats(values[:, 0]) is not None:
            raise ValueError(
                f"y holds {str(odd)[:30]!r} where {estimator} needs numbers, also for the queries of a "
                "ranking: number them, for example numpy.unique(queries, return_inverse=True)[1]."
            )
        raise ValueError(
            f"y holds {str(odd)[:30]!r} where {estimator} needs numbers: use "
            f"{estimator.replace('Regressor', 'Classifier')} for class labels, or turn targets into numbers."
        )
    if np.isinf(numbers).any():
        _refuse_rows(np.isinf(numbers), TOO_LARGE)
    size = float(np.abs(numbers).max(initial=0.0))
    if size and not WITHIN[0] < size < WITHIN[1]:
        raise ValueError(f"y has values of size {size:.0e}, whose squares overflow or vanish: rescale y.")


def _check_one_type(values: np.ndarray, names: list[str] | None) -> None:
    """Labels that cannot be sorted have no order in `classes_`."""
    if values.ndim == 2 and values.shape[1] > 1 and names is not None:
        raise ValueError(
            f"y is a table with {values.shape[1]} columns, {quoted(names, 5)}, not all of them numbers: "
            f"choose one, such as y[{names[0]!r}]."
        )
    text = np.array([isinstance(value, str) for value in values.ravel()])
    if text.any() and not text.all():
        pair = [repr(values.ravel()[int(np.argmax(part))]) for part in (text, ~text)]
        raise ValueError(
            f"y mixes text and other labels, such as {pair[0]} and {pair[1]}: give all labels one type, for "
            "example numpy.array(y, dtype=str)."
        )
