"""What the estimators over several kernels share: their data, their kernels, linear coefficients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import FloatArray, IntArray
from ..gram import FeatureSource, KernelSource, StackSource
from ..gram.stack import as_stack
from ..gram.tables import Table, as_lazy
from ..gram.terms import NotLinearError
from ..kernels import resolve_kernels
from ..kernels.columns import is_frame, numeric_positions
from ..kernels.compose import NestedKernels
from ..kernels.faults import refuse_dates
from ..kernels.strings import text_column
from ..kernels.subsets import Subsets
from ._base import BaseLearner
from ._input import NO_TARGET, check_stack_shape, check_table, dates_as_objects, explained, take

#: what columns of plain numbers can feed
NUMBERS = {"numeric", "any", "index"}


class BaseKernels(BaseLearner, NestedKernels):
    """What every estimator over several kernels has: its kernels, and the data they see."""

    _fitted: ClassVar[dict[str, type]] = {"_numeric": bool}

    def _fits_together(self) -> bool:
        """Whether what a file says of a fit is consistent."""
        return len(self.model_.source.names) == len(self.kernel_names_)

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

    def _checked_stack(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        stack = as_stack(X)
        if reset:
            check_stack_shape(stack.shape)
            self.n_features_in_ = stack.shape[1]
        elif stack.shape[1:] != (self.n_features_in_, len(self.kernel_names_)):
            check_stack_shape(stack.shape, self.n_features_in_, len(self.kernel_names_))
            raise ValueError(
                f"X has shape {stack.shape}: precomputed test kernels must have shape (n_test, "
                f"{self.n_features_in_}, {len(self.kernel_names_)}), test rows by training columns."
            )
        if y is not NO_TARGET:
            with explained(X):
                _, y = check_X_y(np.zeros((len(stack), 1)), y, ensure_min_samples=2, **y_options)
        return stack, y

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

    def _values(self, table: Any) -> Any:
        """What kernels compute on: numbers when all of them take numbers, else the user's container."""
        if isinstance(table, Table) or not self._numeric:
            return table
        refuse_dates(table)
        with explained(table):
            return check_array(table, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")

    def _source(self, table: Any, sample_weight: FloatArray, held: IntArray | None = None) -> KernelSource:
        """The kernels on the samples of positive weight; all but those `held` out may set their widths."""
        used = np.flatnonzero(sample_weight)
        rows = take(table, used)
        self._numeric = False
        if self._precomputed:
            return StackSource(rows, used)
        kernels = resolve_kernels(self.kernels, rows)
        takes = {"numeric"} if isinstance(kernels, Subsets) else {kernel.accepts for _, kernel in kernels}
        # index kernels look their column up by name on every call, so they keep the DataFrame,
        # and columns that no kernel reads may hold anything; a function of anything takes text as it is
        plain = not is_frame(table) and ("any" not in takes or table.dtype.kind in "biuf")
        self._numeric = takes <= NUMBERS and plain
        self._numeric |= takes <= {"numeric"} and len(numeric_positions(table)) == table.shape[1]
        seen = used
        if isinstance(kernels, Subsets) or any(kernel.counts_all_rows for _, kernel in kernels):
            seen = np.setdiff1d(np.arange(len(sample_weight)), () if held is None else held)
        if isinstance(rows, Table):
            return self._table_source(kernels, take(table, seen), sample_weight[seen], rows)
        return FeatureSource(kernels, take(table, seen), sample_weight[seen], self._values(rows))

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
        return W[:, 0] if getattr(self, "_flat", False) else W.T

    def _affine(self) -> tuple[FloatArray, FloatArray]:
        """W and c of f(x) = x'W + c + b, b the intercept of the problem; `NotLinearError` without them."""
        return self.model_.affine()

    def _constants(self) -> FloatArray | float:
        """What linear kernels add to the intercept so that f = X @ coef_.T + intercept_; 0 for others."""
        try:
            return self._affine()[1]
        except NotLinearError:
            return 0.0


def kernels_on(estimator: BaseKernels, X: Any, weight: FloatArray) -> KernelSource:
    """The kernels of an estimator on samples of positive weight, as its fit makes them."""
    return estimator._source(estimator._validate(X)[0], weight)
