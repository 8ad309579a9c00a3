"""What the estimators over several kernels share: their data, their kernels, linear coefficients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import FloatArray, IntArray
from .._words import quoted
from ..gram import FeatureSource, KernelSource, StackSource
from ..gram.sources import Gaps
from ..gram.stack import KernelStack, as_stack, default_names
from ..gram.tables import Table, as_lazy
from ..gram.terms import NotLinearError
from ..kernels import Views, as_views, resolve_kernels
from ..kernels.columns import column_names, is_frame, numeric_positions
from ..kernels.compose import NestedKernels
from ..kernels.faults import refuse_dates
from ..kernels.spec import views_in
from ..kernels.strings import text_column
from ..kernels.subsets import Subsets
from ..kernels.views import named_view
from ._base import BaseLearner
from ._input import (
    NO_TARGET,
    check_gaps,
    check_stack_shape,
    check_table,
    check_views,
    dates_as_objects,
    explained,
    patterns_of,
    take,
    without_gaps,
)

#: what columns of plain numbers can feed
NUMBERS = {"numeric", "any", "index"}


class BaseKernels(BaseLearner, NestedKernels):
    """What every estimator over several kernels has: its kernels, and the data they see."""

    _fitted: ClassVar[dict[str, Any]] = {"_numeric": bool | dict}

    #: names of the views of a fit, and those of their columns, or how many these are
    views_in_: dict[str, Any]

    #: whether kernels see numbers; of views, of those that kernels see
    _numeric: Any

    #: what to do with views that samples lack; a parameter of estimators that can learn from centred kernels
    missing = "error"

    #: of views that kernels see: which of them samples have together and how many samples, and the share
    #: of the samples that have each
    patterns_: list[tuple[tuple[str, ...], int]]
    observed_: dict[str, float]

    def _fits_together(self) -> bool:
        """Whether what a file says of a fit is consistent."""
        source, views = self.model_.source, getattr(self, "views_in_", None)
        rows, numeric = getattr(source, "X", None), self._numeric
        alike = isinstance(rows, Views) == isinstance(numeric, dict) == isinstance(views, dict)
        if isinstance(rows, Views) and isinstance(numeric, dict) and isinstance(views, dict):
            alike = rows.names == list(numeric) and set(rows.names) <= set(views)
        return alike and len(source.names) == len(self.kernel_names_)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags

    # -- data ---------------------------------------------------------------------------------

    def _checked_data(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        if self._precomputed:
            return self._checked_stack(X, y, reset, **y_options)
        X = as_views(X, y)
        if isinstance(X, Views):
            return self._checked_views(X, y, reset, **y_options)
        self._forget_views(reset)
        check_table(X)
        X = text_column(as_lazy(X, mapped=getattr(self, "approximation", None) is not None))
        if isinstance(X, Table):
            return self._checked_lazy(X, y, reset, **y_options)
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        options["ensure_min_samples"] = 2 if reset else 1
        with explained(X):
            valid = validate_data(self, dates_as_objects(X), y, reset=reset, **options, **y_options)
        if y is not NO_TARGET:
            valid, y = valid
        return (X if is_frame(X) else valid), y

    def _checked_views(self, X: Views, y: Any, reset: bool, **y_options: Any) -> tuple[Views, Any]:
        """Views, in the order of labels that have an index; sets `views_in_`, or compares with it."""
        for name, table in X.tables.items():
            with named_view(name):
                check_table(table)
        if reset:
            self.views_in_ = {name: column_names(table) or table.shape[1] for name, table in X.tables.items()}
            self.n_features_in_ = X.shape[1]
            self._forget_names()
            if all(isinstance(held, list) for held in self.views_in_.values()):
                self.feature_names_in_ = np.array(X.columns, dtype=object)
        else:
            check_views(X, getattr(self, "views_in_", None), type(self).__name__)
        if y is not NO_TARGET:
            if X.ids is not None and np.shape(y)[:1] not in ((), (len(X),)):
                raise ValueError(
                    f"the tables of X have {len(X)} samples in all, and y has {np.shape(y)[0]} labels: give "
                    "y the IDs of its samples, as the index of a Series, or X their order, Views(ids=...)."
                )
            with explained(X):
                _, y = check_X_y(np.zeros((len(X), 1)), y, ensure_min_samples=2, **y_options)
        return X, y

    def _forget_views(self, reset: bool) -> None:
        """At a fit on one table; new samples have to come as those of the fit did."""
        if reset:
            for name in ("views_in_", "patterns_", "observed_"):
                if hasattr(self, name):
                    delattr(self, name)
        elif hasattr(self, "views_in_"):
            raise ValueError(
                f"X is one table, and {type(self).__name__} was fitted on views, {quoted(self.views_in_)}: "
                "pass Views or a dict of tables with these names."
            )

    def _forget_names(self) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _checked_stack(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        stack = as_stack(X)
        if reset:
            self._forget_views(reset)
            check_stack_shape(stack.shape)
            self.n_features_in_ = stack.shape[1]
        elif stack.shape[1:] != (self.n_features_in_, count := len(self._given_names)):
            check_stack_shape(stack.shape, self.n_features_in_, count)
            raise ValueError(
                f"X has shape {stack.shape}: precomputed test kernels must have shape (n_test, "
                f"{self.n_features_in_}, {count}), test rows by training columns."
            )
        elif stack.names is not None and self._given_names not in (stack.names, default_names(count)):
            raise ValueError(
                f"X has the kernels {', '.join(stack.names)}; {type(self).__name__} was fitted on "
                f"{', '.join(self._given_names)}: give them in this order."
            )
        if y is not NO_TARGET:
            with explained(X):
                _, y = check_X_y(np.zeros((len(stack), 1)), y, ensure_min_samples=2, **y_options)
        return stack, y

    @property
    def _spec_of_kernels(self) -> Any:
        """What kernels are made from: the parameter, unless an estimator has a default of its own."""
        return self.kernels

    @property
    def _given_names(self) -> list[str]:
        """Matrices that new samples need: indicators of those that samples lack are made of them."""
        source = getattr(getattr(self, "model_", None), "source", None)  # greedy fits look at samples before
        return list(getattr(source, "views", self.kernel_names_))

    def _checked_lazy(self, table: Table, y: Any, reset: bool, **y_options: Any) -> tuple[Table, Any]:
        """Columns and targets of a table; its numbers are checked when they are read."""
        if reset and getattr(self, "approximation", None) is None:
            raise ValueError(
                f"X is read in pieces ({type(table).__name__}), and the kernels need all pairs of its rows: "
                "pass approximation='nystroem' to an MKL estimator, or X as an array."
            )
        validate_data(self, table.head, skip_check_array=True, reset=reset)
        if y is not NO_TARGET:
            with explained(table):
                _, y = check_X_y(np.zeros((len(table), 1)), y, ensure_min_samples=2, **y_options)
        return table, y

    def _values(self, table: Any, like: Any = None) -> Any:
        """What kernels compute on: numbers when all of them take numbers, else the user's container.

        `like` are training samples, a row of which stands in for views that no new sample has.
        """
        if isinstance(table, Views):
            return self._view_values(table, like)
        return table if isinstance(table, Table) or not self._numeric else self._numbers(table)

    def _view_values(self, views: Views, like: Views | None) -> Views:
        """The views that kernels see, as they take them."""
        assert isinstance(self._numeric, dict)
        lacking = [name for name in self._numeric if name not in views.names]
        if len(lacking) == len(self._numeric):
            raise ValueError(
                f"X has none of the views that the model was fitted on: it has {quoted(views.names)}, and "
                f"the model needs one at least of {quoted(lacking)}."
            )
        missing = self.missing if "missing" in vars(self) else None  # a parameter of some estimators
        if lacking and self.missing == "error":
            how = "; one fitted with missing='complete', 'mask' or 'margin' predicts without some of them"
            raise ValueError(
                f"X lacks the views {quoted(lacking)}, which the model was fitted on{how if missing else ''}."
            )
        views = views.select([name for name in self._numeric if name in views.names])
        check_gaps(views, missing)
        views = views.filled(like)

        def numbers(name: str, table: Any) -> Any:
            with named_view(name), without_gaps(table, views.ids):
                return self._numbers(table) if self._numeric[name] else table

        return views.map(numbers)

    def _inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        source = self.model_.source
        table, rows = self._validate(X, reset=False)[0], getattr(source, "X", None)
        if self._precomputed and self.missing != "error":
            check_gaps(Gaps(source.names[: len(self._given_names)], source.observed_in(table)), self.missing)
        return self._values(table, None if self.missing == "error" else rows)

    def _numbers(self, table: Any) -> Any:
        refuse_dates(table)
        with explained(table):
            return check_array(table, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")

    def _source(self, table: Any, sample_weight: FloatArray, held: IntArray | None = None) -> KernelSource:
        """The kernels on the samples of positive weight; all but those `held` out may set their widths."""
        used = np.flatnonzero(sample_weight)
        rows = take(table, used)
        self._numeric = False
        if self._precomputed:
            return self._stack_source(rows, used)
        if isinstance(table, Views):
            chosen = views_in(self._spec_of_kernels, table)
            table, rows = table.select(chosen), rows.select(chosen)
        kernels = resolve_kernels(self._spec_of_kernels, rows)
        self._numeric = in_numbers(kernels, table)
        seen = used
        if isinstance(kernels, Subsets) or any(kernel.counts_all_rows for _, kernel in kernels):
            seen = np.setdiff1d(np.arange(len(sample_weight)), () if held is None else held)
        if isinstance(rows, Table):
            return self._table_source(kernels, take(table, seen), sample_weight[seen], rows)
        values = self._values(rows)
        if isinstance(values, Views):
            self._note_patterns(values)
        if isinstance(values, Views) and len(seen) == len(used):  # its kernels have no names to look up
            return FeatureSource(kernels, values, sample_weight[seen])
        return FeatureSource(kernels, take(table, seen), sample_weight[seen], values)

    def _stack_source(self, stack: KernelStack, used: IntArray) -> StackSource:
        """Given matrices; samples may lack some of them."""
        source = StackSource(stack, used)
        if source.gaps is not None:
            check_gaps(source.gaps, self.missing)
            if self.missing != "error":
                self._note_patterns(source.gaps)
        return source

    def _note_patterns(self, views: Views | Gaps) -> None:
        """Set what is told of the views that samples have."""
        self.patterns_ = patterns_of(views)
        self.observed_ = dict(zip(views.names, views.observed.mean(axis=0).tolist(), strict=True))

    def _table_source(
        self, kernels: Any, table: Table, sample_weight: FloatArray, rows: Table
    ) -> FeatureSource:
        """Kernels on the `rows` of a table, their parameters taken from some of all."""
        if not self._numeric:
            raise ValueError("X is read in pieces, as numbers: kernels on text need it in memory.")
        some, chosen = table.sample()
        weight = sample_weight[chosen]
        if not weight.any():  # too few have weight to be among them
            some, chosen = rows.sample()
            weight = sample_weight[sample_weight > 0][chosen]
        source = FeatureSource(kernels, some, weight, some.values)
        source.X, source.n_samples, source._batch = rows, len(rows), None
        return source

    # -- linear coefficients ------------------------------------------------------------------

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns, ``f = X @ coef_.T + intercept_``, if kernels with weight are linear.

        Of shape (n_functions, n_features), or (n_features,) for a regression of one target. Other models
        have no such attribute.
        """
        check_is_fitted(self)
        try:
            W, _ = self._affine()
        except NotLinearError as reason:
            raise AttributeError(
                f"this {type(self).__name__} has no coef_: {reason}. Models of linear kernels have one: "
                "Linear() on any columns, sums and multiples of it."
            ) from reason
        return W[:, 0] if getattr(self, "_flat", is_regressor(self) and W.shape[1] == 1) else W.T

    def _affine(self) -> tuple[FloatArray, FloatArray]:
        """W and c of f(x) = x'W + c + b, b the intercept of the problem; `NotLinearError` without them."""
        return self.model_.affine()

    def _constants(self) -> FloatArray | float:
        """What linear kernels add to the intercept so that f = X @ coef_.T + intercept_; 0 for others."""
        try:
            return self._affine()[1]
        except NotLinearError:
            return 0.0


def in_numbers(kernels: Any, table: Any) -> Any:
    """Whether kernels are given numbers in place of the user's table; of views, by their names."""
    if isinstance(table, Views):
        places = [table.view_of(kernel) for _, kernel in kernels]
        own = [
            [pair for pair, at in zip(kernels, places, strict=True) if at == v]
            for v in range(len(table.names))
        ]
        return {name: in_numbers(some, table[name]) for name, some in zip(table.names, own, strict=True)}
    takes = {"numeric"} if isinstance(kernels, Subsets) else {kernel.accepts for _, kernel in kernels}
    # index kernels look their column up by name on every call, so they keep the DataFrame,
    # and columns that no kernel reads may hold anything; a function of anything takes text as it is
    plain = not is_frame(table) and ("any" not in takes or table.dtype.kind in "biuf")
    only_numbers = takes <= {"numeric"} and len(numeric_positions(table)) == table.shape[1]
    return (takes <= NUMBERS and plain) or only_numbers


def kernels_on(estimator: BaseKernels, X: Any, weight: FloatArray) -> KernelSource:
    """The kernels of an estimator on samples of positive weight, as its fit makes them."""
    return estimator._source(estimator._validate(X)[0], weight)
