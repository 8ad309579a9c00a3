"""Transformers of scikit-learn on the tables of views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..kernels import Views, as_views
from ..kernels.columns import as_table, take_rows, with_gaps
from ..kernels.compose import NestedKernels
from ..kernels.views import named_view


class ViewTransformer(TransformerMixin, NestedKernels):  # type: ignore[misc]  # scikit-learn has no types
    """Preprocessing of single views: a transformer or a pipeline of them for each, before a model.

    Each transformer is fitted on the samples that have its view, and on no others; a sample that lacks the
    view still lacks it afterwards. Views without a transformer stay as they are.

    Parameters
    ----------
    transformers : dict of str to transformer, or transformer
        Transformers by the names of views; a single transformer is used for every view.

    Attributes
    ----------
    transformers_ : dict of str to transformer
        Fitted.
    n_features_in_ : int
        Columns of all views.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import kernelweave as kw
    >>> rng = np.random.default_rng(0)
    >>> views = kw.Views({"rna": rng.normal(size=(20, 8)), "protein": rng.normal(size=(20, 3))})
    >>> scaled = ViewTransformer({"rna": make_pipeline(StandardScaler(), PCA(2))})
    >>> scaled.fit_transform(views)
    Views(20 samples; rna: 2 columns, protein: 3 columns)
    >>> model = make_pipeline(scaled, kw.MKLClassifier()).fit(views, views["rna"][:, 0] > 0)
    """

    _nested = ("transformers",)

    def __init__(self, transformers: Any) -> None:
        self.transformers = transformers

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit every transformer on the rows of its view.

        Parameters
        ----------
        X : Views, dict of tables, or DataFrame whose columns have two levels
        y : array-like of shape (n,), optional
        """
        views = _views(X, y)
        given = self.transformers
        by_name = given if isinstance(given, Mapping) else dict.fromkeys(views.names, given)
        views.select(by_name)  # refuses names that are no views
        self.n_features_in_ = views.shape[1]
        self.transformers_ = {}
        for name, transformer in by_name.items():
            rows = np.flatnonzero(views.observed[:, views.names.index(name)])
            with named_view(name):
                targets = None if y is None else _safe_indexing(y, rows)
                fitted = clone(transformer).fit(_some(views[name], rows), targets)
            self.transformers_[name] = fitted
        return self

    def transform(self, X: Any) -> Views:
        """The views with their tables transformed.

        Parameters
        ----------
        X : Views, dict of tables, or DataFrame whose columns have two levels
        """
        check_is_fitted(self)
        views = _views(X)
        there = dict(zip(views.names, views.observed.T, strict=True))

        def changed(name: str, table: Any) -> Any:
            if name not in self.transformers_ or not there[name].any():
                return table
            rows = np.flatnonzero(there[name])
            with named_view(name):
                found = as_table(self.transformers_[name].transform(_some(table, rows)))
            places = np.where(there[name], np.cumsum(there[name]) - 1, -1)
            return found if len(rows) == len(places) else with_gaps(found, places)

        return views.map(changed)


def _some(table: Any, rows: np.ndarray) -> Any:
    return table if len(rows) == table.shape[0] else take_rows(table, rows)


def _views(X: Any, y: Any = None) -> Views:
    views = as_views(X, y)
    if not isinstance(views, Views):
        raise ValueError(f"X is a {type(X).__name__}: ViewTransformer takes Views, or a dict of tables.")
    return views
