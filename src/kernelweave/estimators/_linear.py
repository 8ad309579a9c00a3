"""Coefficients of the columns, for models in which every kernel is linear."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..gram import Predictor
from ..gram.terms import NotLinearError


class LinearCoefficients:
    """Mixin of models f(x) = x'W + c where every kernel with weight is linear."""

    model_: Predictor

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


class BestLinear:
    """Mixin of searches: `model_`, `coef_` and `intercept_` of the best estimator."""

    best_estimator_: Any
    _searched: ClassVar[type[BaseEstimator]]

    _fitted: ClassVar[dict[str, type]] = {"best_estimator_": BaseEstimator}

    def _fits_together(self) -> bool:
        return isinstance(self.best_estimator_, self._searched)

    @property
    def model_(self) -> Predictor:
        """The functions of the best estimator."""
        return self.best_estimator_.model_

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns of the best estimator, where every kernel with weight is linear."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercept of the best estimator."""
        return self.best_estimator_.intercept_
