"""From what the user passes as ``kernels=`` to a list of named kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._registry import did_you_mean
from .._warnings import warn
from .._words import quoted
from .base import Kernel
from .columns import Columns, as_table, numeric_positions, resolve_columns, take_columns
from .convert import EXPECTED, as_kernel
from .families import Auto, Family, feature_name
from .faults import slips_error
from .subsets import RandomSubsets
from .views import Views, named_view

#: names in a message
MOST_NAMES = 8


class _Named(NamedTuple):
    name: str
    kernel: Kernel
    explicit: bool  # the user chose the name, so it may not be changed


def resolve_kernels(spec: Any, X: Any) -> Sequence[tuple[str, Kernel]]:
    """Names and unfitted copies of the kernels that `spec` describes on the columns of `X`.

    Parameters
    ----------
    spec : one of
        a kernel, a registered name, a scikit-learn Gaussian-process kernel, a function of (X, Z) or a
        square Gram matrix; a family, or "auto"; a list or tuple of any of these, of (name, kernel) pairs
        and of (name, kernel, columns) triples, whose columns replace the kernel's own; a dict of
        name -> kernel, list of kernels or family. On `Views` the names of a dict, of pairs and the columns
        of triples are names of views, and everything else is made for every view.
    X : array-like, sparse matrix, DataFrame or Views of shape (n_samples, n_features)

    Returns
    -------
    kernels : sequence of (str, Kernel)
        Names are unique: a name that is not the user's own gets " (2)", " (3)", ... on a clash. Those of
        `random_subsets` alone are made when asked for; all others are in a list.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_kernels({"a": "linear", "b": "rbf"}, np.zeros((3, 2)))
    [('a', Linear()), ('b', RBF())]
    """
    if isinstance(X, Views):
        return _unique(list(_view_entries(spec, X)))
    if isinstance(spec, RandomSubsets):
        return spec.expand(X)
    entries = list(_entries(spec, X))
    if not entries:
        raise ValueError(f"kernels={spec!r} is empty: give at least one kernel, for example 'auto'.")
    if _has_auto(spec):
        _warn_of_unseen(entries, as_table(X))
    return _unique(entries)


def views_in(spec: Any, views: Views) -> list[str]:
    """Names of the views that kernels are for, in the order of the views."""
    named = {view for _, _, view in _by_view(spec, views)}
    return [name for name in views.names if name in named]


def kernel_alone(spec: Any, X: Any, m: int) -> Any:
    """Kernel number `m` of a specification, as a specification of its own.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_alone({"a": "linear", "b": "rbf"}, np.zeros((3, 2)), 1)
    [('b', RBF())]
    """
    if not isinstance(X, Views):
        return [resolve_kernels(spec, X)[m]]
    by_view = _by_view(spec, X)
    every = [(own, view) for name, value, view in by_view for own in _named(name, value, X.tables[view])]
    own, view = every[m]
    return [(own.name, own.kernel, view)]


def _by_view(spec: Any, views: Views) -> Iterator[tuple[str, Any, str]]:
    """Names, kernels (one, or several as in a list) and the view they are for."""
    if isinstance(spec, Mapping):
        yield from ((str(name), value, _view(name, views)) for name, value in spec.items())
    elif isinstance(spec, list | tuple) and any(isinstance(element, tuple) for element in spec):
        for element in spec:
            if not isinstance(element, tuple):
                yield from ((name, [element], name) for name in views.names)
            elif len(element) in (2, 3) and isinstance(element[0], str):
                yield element[0], element[1], _view(element[-1 if len(element) == 3 else 0], views)
            else:
                raise ValueError(
                    f"kernels: {element!r} is not a (view, kernel) pair or a (name, kernel, view) triple."
                )
    else:
        yield from ((name, spec, name) for name in views.names)


def _view(name: Any, views: Views) -> str:
    if not isinstance(name, str) or name not in views.names:
        raise ValueError(
            f"kernels: {name!r} is not a view of X, which has {quoted(views.names)}."
            f"{did_you_mean(str(name), views.names)}"
        )
    return name


def _view_entries(spec: Any, views: Views) -> Iterator[_Named]:
    """Kernels on the columns of their views, which those of a kernel itself are counted from."""
    starts = dict(zip(views.names, views.starts.tolist(), strict=False))
    for name, value, view in _by_view(spec, views):
        table = views.tables[view]
        with named_view(view):
            entries = list(_named(name, value, table))
            moved = [entry.kernel.in_view(table, starts[view]) for entry in entries]
            if _has_auto(value):
                _warn_of_unseen(entries, table)
        yield from (entry._replace(kernel=kernel) for entry, kernel in zip(entries, moved, strict=True))
    family = _as_family(spec)
    if isinstance(family, Auto):
        across = family.across(list(views.tables.values()))
        yield from (_Named(f"all views: {name}", kernel, False) for name, kernel in across)


def _has_auto(spec: Any) -> bool:
    """Whether the default dictionary is a part of a specification, on columns that it chooses itself."""
    if isinstance(spec, tuple) and len(spec) == 3 and isinstance(spec[0], str):
        return False
    if isinstance(spec, Mapping | list | tuple):
        return any(_has_auto(part) for part in (spec.values() if isinstance(spec, Mapping) else spec))
    return isinstance(_as_family(spec), Auto)


def _warn_of_unseen(entries: list[_Named], table: Any) -> None:
    """Name the columns of a table that "auto" cannot use and that no other kernel uses."""
    unseen = set(range(table.shape[1])) - set(numeric_positions(table).tolist())
    for entry in entries:
        if not unseen:
            return
        seen = resolve_columns(getattr(entry.kernel, "columns", None), table)
        unseen -= set(range(table.shape[1]) if seen is None else seen.tolist())
    names = [str(feature_name(table, position)) for position in sorted(unseen)]
    if names:
        slips = slips_error(take_columns(table, np.array(sorted(unseen))), sorted(unseen))
        if slips is not None:
            raise slips
        shown = ", ".join(map(repr, names[:MOST_NAMES])) + (", ..." if len(names) > MOST_NAMES else "")
        warn(
            f"kernels='auto' uses columns of numbers, and leaves out {len(names)} of {table.shape[1]}: "
            f"{shown}. Encode them as numbers (sklearn.preprocessing.OneHotEncoder for text, days since a "
            "start for dates), give them a kernel of "
            "their own, as in kernels={'numbers': 'auto', 'text': Spectrum(columns='name')}, or drop them.",
        )


def _entries(spec: Any, X: Any) -> Iterator[_Named]:
    if isinstance(spec, Mapping):
        for name, value in spec.items():
            yield from _named(name, value, X)
    elif isinstance(spec, list | tuple):
        for element in spec:
            yield from _tuple(element, X) if isinstance(element, tuple) else _unnamed(element, X)
    else:
        yield from _unnamed(spec, X)


def _unnamed(value: Any, X: Any) -> Iterator[_Named]:
    family = _as_family(value)
    if family is not None:
        for name, member in family.expand(X):
            yield _Named(name, member, False)
    elif isinstance(value, list | Mapping):
        raise ValueError(f"kernels: {value!r} is nested in a list; use one flat list, or a dict of lists.")
    else:
        kernel = as_kernel(value)
        yield _Named(kernel.label, kernel, False)


def _tuple(value: tuple[Any, ...], X: Any) -> Iterator[_Named]:
    if len(value) not in (2, 3) or not isinstance(value[0], str):
        raise ValueError(
            f"kernels: {value!r} is not a (name, kernel) pair or a (name, kernel, columns) triple."
        )
    yield from _named(value[0], value[1], X, *value[2:])


def _named(name: Any, value: Any, X: Any, columns: Columns = None) -> Iterator[_Named]:
    """Entries under a name of the user's: that name for one kernel, "name: label" for several."""
    if isinstance(value, list | tuple) or _as_family(value) is not None:
        inner = list(_entries(value, X))
        if not inner:
            raise ValueError(f"kernels[{name!r}] is empty: give at least one kernel, {EXPECTED}.")
        entries = [_Named(f"{name}: {entry.name}", entry.kernel, False) for entry in inner]
    else:
        entries = [_Named(str(name), as_kernel(value, f"kernels[{name!r}]"), True)]
    for entry in entries:
        moved = entry.kernel if columns is None else entry.kernel.with_columns(columns)
        yield entry._replace(kernel=moved)


def _as_family(value: Any) -> Family | None:
    if isinstance(value, Family):
        return value
    return Auto() if isinstance(value, str) and value == "auto" else None


def _unique(entries: list[_Named]) -> list[tuple[str, Kernel]]:
    chosen = [entry.name for entry in entries if entry.explicit]
    repeated = sorted(name for name, times in Counter(chosen).items() if times > 1)
    if repeated:
        raise ValueError(f"kernels: the names {repeated} are used twice, give every kernel its own name.")
    taken = set(chosen)
    named = []
    for entry in entries:
        name = entry.name if entry.explicit else _free(entry.name, taken)
        taken.add(name)
        named.append((name, clone(entry.kernel)))
    return named


def _free(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name} ({number})", number + 1
    return candidate
