"""Coefficients of the columns, for models in which every kernel is linear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..gram.affine import NotLinearError, Term, affine_expansion, affine_terms, refuse_rows_on_the_sphere
from ._process import Process
from ._stages import StagedExpansion


class LinearCoefficients:
    """Mixin of models f(x) = x'W + c where every kernel with weight is linear."""

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns, f = X @ coef_.T + intercept_, if all kernels with weight are linear.

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
        return _affine_model(self)

    def _constants(self) -> FloatArray | float:
        """What linear kernels add to the intercept so that f = X @ coef_.T + intercept_; 0 for others."""
        try:
            return self._affine()[1]
        except NotLinearError:
            return 0.0


class BestLinear:
    """Mixin of searches: `coef_` and `intercept_` of the best estimator."""

    best_estimator_: Any

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns of the best estimator, where every kernel with weight is linear."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercept of the best estimator."""
        return self.best_estimator_.intercept_


def _affine_model(model: Any) -> tuple[FloatArray, FloatArray]:
    if hasattr(model, "_process"):
        process = model._process
        size = sum(posterior.alpha.shape[1] for posterior in process.posteriors)
        return affine_terms(process.source, _process_terms(process, size), size)
    expansion = model._expansion
    if not isinstance(expansion, StagedExpansion):
        return affine_expansion(expansion)
    terms = _staged_terms(expansion, model.path_.n_selected)
    return affine_terms(expansion.source, terms, expansion.alphas.shape[2])


def _staged_terms(expansion: StagedExpansion, stage: int) -> Iterator[Term]:
    """Of one model of a greedy path."""
    for m in expansion.sets[stage]:
        refuse_rows_on_the_sphere(expansion.rules[m].needs_diag)
        _, coef, offset = expansion._terms(m, [stage])
        yield m, coef[expansion.support], offset


def _process_terms(process: Process, size: int) -> Iterator[Term]:
    """Of posterior means: alpha of every model, on all training samples."""
    alpha = np.zeros((process.source.n_samples, size))
    alpha[process.columns] = np.hstack([posterior.alpha for posterior in process.posteriors])
    models = [posterior.alpha.shape[1] for posterior in process.posteriors]
    for m, rule, factors in zip(process.live.tolist(), process.rules, process.factors.T, strict=True):
        refuse_rows_on_the_sphere(rule.needs_diag)
        coef, offset = rule.expand(alpha)
        factor = np.repeat(factors, models)
        yield m, coef * factor, offset * factor
