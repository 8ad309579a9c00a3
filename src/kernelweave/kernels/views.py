"""Several tables of the same samples as one X: aligned by sample IDs, sliced by rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from .._backend import to_host
from .._gaps import is_missing
from .._registry import did_you_mean
from .._words import listed, quoted
from .columns import (
    as_table,
    column_names,
    is_frame,
    row_positions,
    split_column,
    take_columns,
    take_rows,
    with_gaps,
)
from .faults import is_pandas
from .strings import text_column

#: IDs that a message shows
SHOWN = 3

SPELLING = "IDs have to be spelled alike, and be of one type."


class Views:
    """Several tables of the same samples, as one X.

    Estimators, and whatever in scikit-learn takes an array (splitters, ``cross_val_score``, ``GridSearchCV``,
    pipelines), take it as they take an array: it has a length, a shape and rows.

    Tables whose rows have IDs are joined by them, whatever their order: every sample of any table is kept,
    and a table that does not have it has a gap. IDs are the index of a pandas table (unless it only counts
    rows from 0), the names of the observations of an AnnData object, or the column `on`. Tables without IDs
    are taken row by row and must have equally many rows; they can be combined with tables that have IDs only
    where all of these have the same IDs in the same order.

    Parameters
    ----------
    tables : dict of str to table, list of tables, DataFrame, AnnData or MuData
        NumPy arrays, sparse matrices, tables of pandas, polars or pyarrow, AnnData objects, lists of texts.
        Those of a list are called "view 0", "view 1", ...; a DataFrame whose columns have two levels, as
        ``pandas.concat({...}, axis=1)`` makes it, has a view for each name of the first level. One AnnData
        object is one view, "X".
    ids : sequence, optional
        The samples to take, in this order, such as ``y.index`` of labels. By default those of the first
        table, followed by those that only other tables have. Where the tables have no IDs, these become the
        names of the rows; where they are row numbers of pandas tables, they are the rows to take.
    on : str, optional
        The column of IDs, in all data frames that have it.

    Attributes
    ----------
    names : list of str
        Names of the views.
    tables : dict of str to table
        With the same rows in the same order; a sample that a table lacks is a row of NaN (in a sparse
        matrix, of zeros).
    observed : ndarray of bool, shape (n, n_views)
        Whether a table has a sample: its ID is there, and its row is not all NaN.
    ids : ndarray of object, or None
        IDs of the rows.
    ordered : bool
        Whether the order was asked for: then labels are taken in the order of the rows, as in scikit-learn.
        If not, and labels have an index, the rows are put in the order of the labels.
    alike : bool
        Whether all tables came in the order of the rows, or were put in an order that was asked for. If not,
        labels without IDs are refused, as it is unknown which table they follow.
    shape : tuple
        Number of samples, and of columns of all tables.

    Examples
    --------
    >>> import pandas as pd
    >>> rna = pd.DataFrame({"g1": [0.1, 0.2, 0.3]}, index=["ann", "bob", "cid"])
    >>> protein = pd.DataFrame({"p1": [7.0, 5.0], "p2": [8.0, 6.0]}, index=["cid", "ann"])
    >>> views = Views({"rna": rna, "protein": protein})
    >>> views
    Views(3 samples; rna: 1 column, protein: 2 columns, missing in 1 of 3)
    >>> views["protein"].loc["ann"].tolist(), views.observed[:, 1]
    ([5.0, 6.0], array([ True, False,  True]))
    >>> views[:2].ids.tolist(), Views({"rna": rna, "protein": protein}, ids=["cid", "ann"]).ids.tolist()
    (['ann', 'bob'], ['cid', 'ann'])
    """

    ndim = 2

    ids: Any
    ordered: bool
    alike: bool = True

    __iter__ = None  # neither over rows nor over names: len() is the number of samples

    def __init__(self, tables: Any, *, ids: Any = None, on: str | None = None) -> None:
        wanted = None if ids is None else _labels(ids)
        if isinstance(tables, Views):
            own, rows = tables.ids, tables._counted()
            if own is None and rows is not None and wanted is not None and set(rows).issuperset(wanted):
                own = rows
            found = {name: (table, own) for name, table in tables.tables.items()}
        else:
            found = {}
            for name, table in _by_name(tables).items():
                with named_view(name):
                    found[name] = _read(table, on)
        if not found:
            raise ValueError("tables is empty: give at least one view.")
        if on is not None:
            _refuse_unknown_column(on, tables)
        order = _joined(found, wanted)
        n = found[next(iter(found))][0].shape[0] if order is None else len(order)
        self.names, self.ids, self.ordered = list(found), wanted if order is None else order, ids is not None
        self.tables: dict[str, Any] = {}
        self.observed = np.ones((n, len(found)), dtype=bool)
        for v, (name, (table, labels)) in enumerate(found.items()):
            places = np.arange(n) if order is None or labels is None else _places(labels, order)
            self.tables[name] = _at(table, places, self.ids)
            self.observed[:, v] = places >= 0
            self.observed[_empty_rows(self.tables[name]), v] = False
            self.alike &= self.ordered or bool((np.diff(places[places >= 0]) > 0).all())
        if isinstance(tables, Views):
            self.alike = self.ordered or tables.alike

    # -- rows -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.observed)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.tables[self._known(key)]
        if isinstance(key, tuple):  # views[rows, ...], as scikit-learn asks
            key = key[0]
        rows = row_positions(key, len(self))
        ids = None if self.ids is None else self.ids[rows]
        tables = {name: take_rows(table, rows) for name, table in self.tables.items()}
        return self._with(tables, self.observed[rows], ids)

    @classmethod
    def made_of(cls, tables: dict[str, Any], observed: Any, ids: Any = None, ordered: bool = False) -> Views:
        """Views of tables whose rows are the same samples already."""
        made = object.__new__(cls)
        made.names, made.tables, made.observed = list(tables), tables, observed
        made.ids, made.ordered = ids, ordered
        return made

    def _with(self, tables: dict[str, Any], observed: Any, ids: Any) -> Views:
        """Other tables, in an order that is as well known."""
        made = self.made_of(tables, observed, ids, self.ordered)
        made.alike = self.alike
        return made

    def in_order_of(self, y: Any) -> Views:
        """The samples of labels that have an index, in the order of the labels.

        The views stay as they are where either has no IDs, or where their order was asked for. Labels
        without IDs are refused where the tables have theirs in different orders, and labels whose index has
        the numbers of the rows in another order where the tables only count rows.
        """
        if self.ordered or y is None or isinstance(y, str):
            return self
        labels = _labels(y.index) if hasattr(y, "iloc") else None
        if self.ids is None:
            self._refuse_shuffled(labels)
            return self
        if labels is None or (_counts(labels) and not _are_numbers(self.ids)):
            self._refuse_unordered(y)
            return self
        if np.array_equal(labels, self.ids):
            return self if self.alike else self._ordered(slice(None))
        _refuse_repeated("y", labels)
        places = _places(self.ids, labels)
        absent = labels[places < 0]
        if len(absent):
            remedy = "where labels and rows are in the same order, pass y.to_numpy()"
            if len(absent) < len(labels):
                remedy = (
                    "where rows and labels are sliced by position, as in cross_val_score, put the rows in "
                    "the order of all labels first, Views(tables, ids=y.index)"
                )
            raise ValueError(
                f"y has labels of {len(absent)} samples (of {len(labels)}) that are in no table, such as "
                f"{_shown(absent)}; IDs in the tables are such as {_shown(self.ids)}. Leave those out; or, "
                f"{remedy}."
            )
        return self._ordered(places)

    def _ordered(self, rows: Any) -> Views:
        """Some rows, in an order that was asked for."""
        taken: Views = self[rows]
        taken.ordered = taken.alike = True
        return taken

    def _refuse_unordered(self, y: Any) -> None:
        """Raise where labels without IDs may follow any of several orders; the fit checks their number."""
        if self.alike or np.shape(y)[:1] != (len(self),):
            return
        raise ValueError(
            f"the tables {quoted(self.names)} have their samples in different orders, and y has no IDs that "
            "say which of them it follows: give y the IDs of its samples, as the index of a Series, or X the "
            "order of y, Views(tables, ids=...)."
        )

    def _counted(self) -> np.ndarray | None:
        """Numbers of the rows, as tables of pandas have them that only count rows."""
        own = (_labels(table.index) for table in self.tables.values() if is_pandas(table))
        return next((labels for labels in own if _are_numbers(labels)), None)

    def _refuse_shuffled(self, labels: np.ndarray | None) -> None:
        """Raise where labels have the numbers of the rows, in another order."""
        rows = None if labels is None else self._counted()
        if rows is None or labels is None or np.array_equal(rows, labels) or set(rows) != set(labels):
            return
        raise ValueError(
            f"y has the row numbers of the tables as its index, in another order ({_shown(labels)}, ... in "
            f"place of {_shown(rows)}, ...): put the rows in the order of y, Views(tables, ids=y.index); or, "
            "where labels and rows are in the same order, pass y.to_numpy()."
        )

    def per_sample(self, what: str, values: Any, y: Any = None) -> Any:
        """Values of the samples, such as weights or groups, in the order of the rows.

        Those with an index are found by their IDs, unless it is that of labels `y`, which the rows follow;
        others are in the order of the rows.
        """
        rows = self._counted() if self.ids is None else self.ids
        if rows is None or not hasattr(values, "iloc") or np.ndim(values) != 1:
            return values
        labels = _labels(values.index)
        if np.array_equal(labels, rows) or (hasattr(y, "iloc") and values.index.equals(y.index)):
            return values
        if (_counts(labels) and not _are_numbers(rows)) or (self.ids is None and set(labels) != set(rows)):
            return values
        _refuse_repeated(what, labels)
        places = _places(labels, rows)
        absent = rows[places < 0]
        if len(absent):
            raise ValueError(
                f"{what} has no entry for {len(absent)} of {len(rows)} samples, such as {_shown(absent)}; "
                f"its IDs are such as {_shown(labels)}. Give it those of the samples as its index; or, where "
                f"it is in the order of the rows, pass {what}.to_numpy()."
            )
        return values.iloc[places]

    # -- views ----------------------------------------------------------------------------------

    def select(self, names: Iterable[str]) -> Views:
        """Some of the views, in this order."""
        chosen = [self._known(name) for name in names]
        if chosen == self.names:
            return self
        at = [self.names.index(name) for name in chosen]
        tables = {name: self.tables[name] for name in chosen}
        return self._with(tables, self.observed[:, at], self.ids)

    def map(self, function: Callable[[str, Any], Any]) -> Views:
        """The views with ``function(name, table)``, of as many rows, in place of each table."""
        tables = {name: function(name, table) for name, table in self.tables.items()}
        return self._with(tables, self.observed, self.ids)

    def filled(self, like: Views | None = None) -> Views:
        """The views with a copy of an observed row in place of what is not there.

        Kernels can be evaluated on it; values that `observed` does not have are to be left out.

        Parameters
        ----------
        like : Views, optional
            Samples to copy a row of, for views that none of these has; and the views to have, where these
            have fewer.
        """
        if like is None and self.observed.all():
            return self
        n, names = len(self), self.names if like is None else like.names
        there = {name: self.observed[:, self.names.index(name)] for name in names if name in self.names}
        tables = {}
        for name in names:
            own = there.setdefault(name, np.zeros(n, dtype=bool))
            if own.any():
                rows = np.where(own, np.arange(n), np.argmax(own))
                tables[name] = self.tables[name] if own.all() else take_rows(self.tables[name], rows)
            elif like is None:
                raise ValueError(f"no sample has the view {name!r}: leave it out.")
            else:
                tables[name] = take_rows(like.tables[name], np.zeros(n, dtype=int))
        observed = np.column_stack([there[name] for name in names])
        return self._with(tables, observed, self.ids)

    @property
    def patterns(self) -> np.ndarray:
        """The views that each sample has, such as "rna+protein"."""
        names = np.array(self.names, dtype=object)
        return np.array(["+".join(names[there]) for there in self.observed], dtype=object)

    @property
    def lacking(self) -> list[str]:
        """Which views are missing, and in how many samples, in words."""
        return lacking(self.names, self.observed)

    def _known(self, name: Any) -> str:
        if name not in self.tables:
            raise ValueError(
                f"there is no view {name!r}: the views are {quoted(self.names)}."
                f"{did_you_mean(str(name), self.names)}"
            )
        return str(name)

    # -- columns --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), int(self.starts[-1])

    @property
    def starts(self) -> np.ndarray:
        """Where the columns of each view start among those of all, and their number at the end."""
        return np.cumsum([0, *(table.shape[1] for table in self.tables.values())])

    @property
    def columns(self) -> list[str]:
        """Names of all columns, such as "rna: g1"; "rna: x0" in an array."""
        return [f"{name}: {c}" for name, table in self.tables.items() for c in _names(table)]

    @property
    def dtype(self) -> Any:
        """That of all numbers; object where there are others."""
        kinds = [getattr(table, "dtype", None) for table in self.tables.values()]
        plain = all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds)
        return np.result_type(*kinds) if plain else np.dtype(object)

    def at(self, positions: np.ndarray) -> Any:
        """Some of all columns: a table where they are of one view, else an array."""
        starts, tables = self.starts, list(self.tables.values())
        of = np.searchsorted(starts, positions, side="right") - 1
        if len(positions) and (of == of[0]).all():
            table, inside = tables[of[0]], np.asarray(positions) - starts[of[0]]
            whole = len(inside) == table.shape[1] and (inside == np.arange(len(inside))).all()
            return table if whole else take_columns(table, inside)
        parts = [(tables[v], np.flatnonzero(of == v)) for v in np.unique(of)]
        blocks = [_dense(take_columns(table, positions[at] - starts[of[at[0]]])) for table, at in parts]
        joined = np.empty((len(self), len(positions)), np.result_type(float, *(b.dtype for b in blocks)))
        for (_, at), block in zip(parts, blocks, strict=True):
            joined[:, at] = block
        return joined

    def view_of(self, kernel: Any) -> int:
        """Which view a kernel that `resolve_kernels` put on one of them sees."""
        while getattr(kernel, "columns", None) is None:
            kernel = kernel.kernels[0] if hasattr(kernel, "kernels") else kernel.kernel
        first = kernel.columns.start if isinstance(kernel.columns, slice) else kernel.columns[0]
        return int(np.searchsorted(self.starts, first, side="right")) - 1

    def joined(self) -> Any:
        """All columns in one DataFrame, under the names of `columns`."""
        import pandas as pd

        values = np.hstack([_dense(table) for table in self.tables.values()])
        return pd.DataFrame(values, index=self.ids, columns=self.columns)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            f"{self!r} is no array: estimators of kernelweave take it as it is, and ViewTransformer applies "
            "transformers of scikit-learn to single views."
        )

    def __repr__(self) -> str:
        parts = []
        for name, table, there in zip(self.names, self.tables.values(), self.observed.T, strict=True):
            gaps = "" if there.all() else f", missing in {np.count_nonzero(~there)} of {len(self)}"
            parts.append(f"{name}: {table.shape[1]} column{'s' * (table.shape[1] != 1)}{gaps}")
        return f"Views({len(self)} sample{'s' * (len(self) != 1)}; {', '.join(parts)})"


def spans_views(kernel: Any, views: Any) -> bool:
    """Whether a kernel on `Views` sees columns of several of them."""
    columns = getattr(kernel, "columns", None)
    if columns is None or not isinstance(views, Views):
        return False
    ends = (columns.start, columns.stop - 1) if isinstance(columns, slice) else (columns[0], columns[-1])
    first, last = np.searchsorted(views.starts, ends, side="right")
    return bool(first != last)


def width_of(kernel: Any, X: Any) -> int:
    """How many columns of X a kernel sees.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> width_of(RBF(columns=[1]), np.zeros((4, 3))), width_of(RBF(), np.zeros((4, 3)))
    (1, 3)
    """
    columns = getattr(kernel, "columns", None)
    if isinstance(columns, slice):
        return len(range(*columns.indices(X.shape[1])))
    return X.shape[1] if columns is None else len(np.atleast_1d(columns))


def as_views(X: Any, y: Any = None) -> Any:
    """Views of a dict of tables, of a DataFrame whose columns have several levels and of MuData; else X.

    Where labels `y` are given, in their order. An AnnData object alone is one view, "X". One table stays in
    its own order, as in scikit-learn, and is refused where its IDs are those of `y` in another order.

    Examples
    --------
    >>> as_views({"a": [[1.0], [2.0]], "b": np.eye(2)})
    Views(2 samples; a: 1 column, b: 2 columns)
    """
    if not isinstance(X, Views):
        if _by_name(X, alone=True) is None:
            _refuse_other_order(X, y)
            return X
        X = Views(X)
    return X.in_order_of(y)


def _refuse_other_order(X: Any, y: Any) -> None:
    """Raise where a table and labels name the same samples in different orders.

    An index that counts rows from 0 may be the one that pandas gave, and says nothing; nor do numbers that
    come several times.
    """
    if not (is_pandas(X) and hasattr(y, "iloc")) or X.index.equals(y.index):
        return
    rows, labels = _labels(X.index), _labels(y.index)
    if set(rows) != set(labels) or len(rows) != len(labels):
        return
    if _are_numbers(rows) and (_counts(rows) or _counts(labels) or len(set(rows)) < len(rows)):
        return
    raise ValueError(
        f"X and y have the same IDs in different orders ({_shown(rows)}, ... and {_shown(labels)}, ...): "
        "pass y.loc[X.index]; or, where they are in the same order all the same, y.set_axis(X.index)."
    )


@contextmanager
def named_view(name: str) -> Iterator[None]:
    """Say in which view something is wrong."""
    try:
        yield
    except (TypeError, ValueError) as error:
        remedy = " A column of sample IDs is named by Views(tables, on=...)." * ("holds text" in str(error))
        raise type(error)(f"view {name!r}: {error}{remedy}") from error


# -- tables as users pass them ------------------------------------------------------------------


def _by_name(tables: Any, alone: bool = False) -> Any:
    """Names and tables; with `alone`, None for what may as well be one table."""
    if hasattr(type(tables), "mod") and hasattr(type(tables), "obs_names"):  # MuData
        tables = tables.mod
    elif _is_anndata(tables):
        tables = {"X": tables}
    levels = getattr(getattr(tables, "columns", None), "nlevels", 1)
    if is_pandas(tables) and levels > 1:
        tables = {name: tables[name] for name in tables.columns.get_level_values(0).unique()}
    if isinstance(tables, Mapping) and not sparse.issparse(tables):
        named = {str(name): table for name, table in tables.items()}
        if len(named) < len(tables):
            raise ValueError(f"several views have the same name, among {quoted(tables)}.")
        return named
    if alone:
        return None
    if isinstance(tables, list | tuple):
        return {f"view {v}": table for v, table in enumerate(tables)}
    raise ValueError(
        f"tables is a {type(tables).__name__}: pass a dict of name to table, or a list of tables."
    )


def _read(table: Any, on: str | None) -> tuple[Any, np.ndarray | None]:
    """A table, and the IDs of its rows where it has some."""
    labels: np.ndarray | None = None
    if _is_anndata(table):
        labels, table = _labels(table.obs_names), _of_anndata(table)
    elif on is not None and is_frame(table) and on in (column_names(table) or ()):
        values, table = split_column(table, on)
        labels = _labels(values)
    elif is_pandas(table) or hasattr(table, "iloc"):  # a Series is a column
        labels = _labels(table.index)
    if hasattr(type(table), "__dask_graph__"):
        raise ValueError("it is a table of Dask: views are in memory, pass its compute().")
    table = as_table(text_column(to_host(table)))
    if 0 in table.shape:
        raise ValueError(f"it has shape {tuple(table.shape)}: a view needs rows and columns.")
    return table, labels


def _refuse_unknown_column(on: str, tables: Any) -> None:
    """Raise where no data frame has the column of IDs."""
    frames = [] if isinstance(tables, Views) else list(filter(is_frame, _by_name(tables).values()))
    names = list(dict.fromkeys(name for frame in frames for name in column_names(frame) or ()))
    if frames and on not in names:
        raise ValueError(
            f"on={on!r}: no table has such a column; they have {quoted(names, 5)}.{did_you_mean(on, names)}"
        )


def _is_anndata(table: Any) -> bool:
    return hasattr(type(table), "obs_names") and hasattr(type(table), "var_names")


def _of_anndata(table: Any) -> Any:
    """The values of an AnnData object: a DataFrame, or a sparse matrix."""
    if table.X is None:
        raise ValueError("it is an AnnData object without X: set it, or pass one of its layers.")
    values = table.X.to_memory() if hasattr(table.X, "to_memory") else table.X  # of a file
    if sparse.issparse(values):
        return values
    import pandas as pd

    return pd.DataFrame(np.asarray(values), index=table.obs_names, columns=table.var_names)


def _names(table: Any) -> list[str]:
    names = column_names(table)
    return [f"x{j}" for j in range(table.shape[1])] if names is None else names


def _dense(table: Any) -> np.ndarray:
    return np.asarray(table.toarray() if sparse.issparse(table) else table)


def _empty_rows(table: Any) -> np.ndarray:
    """Rows in which nothing is there."""
    if sparse.issparse(table):
        if table.dtype.kind != "f" or not np.isnan(table.data).any():
            return np.arange(0)
        gaps = np.diff(table.indptr) * 0
        np.add.at(gaps, table.nonzero()[0], np.isnan(table.data[table.data != 0]))
        return np.flatnonzero(gaps == table.shape[1])
    rows = np.flatnonzero(is_missing(np.asarray(take_columns(table, np.array([0])))).ravel())
    return rows[is_missing(np.asarray(take_rows(table, rows))).all(axis=1)] if len(rows) else rows


# -- samples by their IDs -----------------------------------------------------------------------

#: a table, and the IDs of its rows
Found = dict[str, tuple[Any, np.ndarray | None]]


def _labels(values: Any) -> np.ndarray:
    """IDs as objects, tuples of several levels among them."""
    return np.fromiter((v.item() if isinstance(v, np.generic) else v for v in values), dtype=object)


def _are_numbers(labels: np.ndarray) -> bool:
    return all(type(label) is int for label in labels)


def _counts(labels: np.ndarray) -> bool:
    """Whether IDs only count rows from 0, as the index that pandas gives to every table."""
    return _are_numbers(labels) and labels.tolist() == list(range(len(labels)))


def _joined(found: Found, wanted: np.ndarray | None) -> np.ndarray | None:
    """IDs of the samples of all tables, in the order `wanted`; None where rows stand as they are.

    An index that counts rows is one of IDs only beside other numbers, such as what is left of a table from
    which rows were dropped, or where `wanted` has them in another order. Tables without IDs get those that
    the others have.
    """
    named = {name: ids for name, (_, ids) in found.items() if ids is not None and not _counts(ids)}
    rows = {label for _, ids in found.values() if ids is not None for label in ids}
    asked = wanted is not None and _are_numbers(wanted) and not _counts(wanted) and rows.issuperset(wanted)
    if not (named or asked) or not all(_are_numbers(ids) for ids in named.values()):
        found.update({name: (table, named.get(name)) for name, (table, _) in found.items()})
    own = {name: ids for name, (_, ids) in found.items() if ids is not None}
    for name, ids in own.items():
        _refuse_repeated(f"view {name!r}", ids)
    if wanted is not None:
        _refuse_repeated("ids", wanted)
    if len(own) < len(found):
        common = _common_ids(found, own, wanted)
        if common is None:
            return None
        found.update({name: (table, common) for name, (table, _) in found.items()})
        own = {"": common}
    everyone = dict.fromkeys(label for ids in own.values() for label in ids)
    _refuse_disjoint(own, found)
    if wanted is None:
        return _labels(everyone)
    absent = [label for label in wanted if label not in everyone]
    if absent:
        raise ValueError(
            f"ids: {len(absent)} of {len(wanted)} samples are in no table, such as {_shown(absent)}; those "
            f"in the tables are such as {_shown(everyone)}."
        )
    return wanted


def _refuse_repeated(what: str, labels: np.ndarray) -> None:
    """Raise unless IDs are there and differ."""
    gaps = is_missing(labels)
    if gaps.any():
        rows = listed(map(str, np.flatnonzero(gaps)), SHOWN)
        raise ValueError(f"{what}: {np.count_nonzero(gaps)} rows have no ID (counted from 0: {rows}).")
    repeated = {label: times for label, times in Counter(labels).items() if times > 1}
    if repeated:
        shown = listed((f"{label!r} ({times} times)" for label, times in repeated.items()), SHOWN)
        raise ValueError(
            f"{what}: {len(repeated)} of {len(set(labels))} IDs are there more than once, {shown}: keep one "
            "row for each sample, for example table[~table.index.duplicated()], or their mean, "
            "table.groupby(level=0).mean()."
        )


def _common_ids(found: Found, own: dict[str, np.ndarray], wanted: Any) -> np.ndarray | None:
    """The IDs of tables of which some have none; an error where rows cannot stand as they are."""
    sizes = {name: table.shape[0] for name, (table, _) in found.items()}
    without = [name for name in found if name not in own]
    shown = listed(f"{name!r} has {rows} rows" for name, rows in sizes.items())
    have = f"{quoted(without)} {'have' if len(without) > 1 else 'has'}"
    remedy = "give all of them IDs, as the index of a DataFrame or in the column on=..."
    if len(set(sizes.values())) > 1:
        raise ValueError(f"{shown}, and {have} no sample IDs to join them by: {remedy}.")
    common = next(iter(own.values()), None)
    if common is not None and not all(np.array_equal(ids, common) for ids in own.values()):
        raise ValueError(f"{quoted(own)} have sample IDs, in different orders, and {have} none: {remedy}.")
    if common is None and wanted is not None and len(wanted) != sizes[without[0]]:
        raise ValueError(f"ids has {len(wanted)} entries: {shown}, without IDs of their own.")
    return common


def _refuse_disjoint(own: dict[str, np.ndarray], found: Found) -> None:
    """Raise where a table has no sample that any other has."""
    times = Counter(label for ids in own.values() for label in ids)
    for name, ids in own.items():
        if len(own) > 1 and all(times[label] == 1 for label in ids):
            others = [label for other, labels in own.items() if other != name for label in labels]
            turned = not set(map(str, others)).isdisjoint(column_names(found[name][0]) or ())
            raise ValueError(
                f"view {name!r} has none of the {len(set(others))} samples of the other tables: its "
                f"{len(ids)} IDs are such as {_shown(ids)}, theirs such as {_shown(others)}. "
                + ("Its columns are the samples: pass table.T." if turned else SPELLING)
            )


def _shown(labels: Iterable[Any]) -> str:
    return ", ".join(map(repr, list(labels)[:SHOWN]))


def _places(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where the samples of `order` are among `labels`; -1 for those that are not."""
    where = {label: row for row, label in enumerate(labels)}
    return np.array([where.get(label, -1) for label in order], dtype=int)


def _at(table: Any, places: np.ndarray, ids: np.ndarray | None) -> Any:
    """Rows of a table, with gaps; those of pandas keep the IDs as their index."""
    if len(places) != table.shape[0] or (places != np.arange(len(places))).any():
        table = with_gaps(table, places)
    return table.set_axis(ids, axis=0) if ids is not None and is_pandas(table) else table


def lacking(names: Sequence[str], observed: np.ndarray) -> list[str]:
    """Which views or kernels are missing, and in how many samples, in words.

    Examples
    --------
    >>> lacking(["rna", "dna"], np.array([[True, True], [True, False]]))
    ['dna is missing in 1 of 2 samples']
    """
    counts = zip(names, np.count_nonzero(~observed, axis=0), strict=True)
    return [f"{name} is missing in {count} of {len(observed)} samples" for name, count in counts if count]
