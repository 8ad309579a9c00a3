"""What all estimators share: parameters and the parts they name, predictions, representation."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._backend import device_of, follow, resolve_device, to_host
from .._registry import Registry
from .._typing import FloatArray
from ..gram import Predictor, parse_memory
from ..gram.tables import computed
from ..kernels.columns import column_names
from ..losses import LOSSES, Loss
from ..solvers.run import Result
from ._input import NO_TARGET, check_positive, check_settings, check_targets, per_sample
from ._training import CallbackSupportMixin

#: kernels in the table of a notebook
MOST_ROWS = 50


@dataclass(frozen=True)
class Spec:
    """The settings of a fit: its parameters, checked, and the parts that they name, each found once.

    Attributes
    ----------
    loss : Loss or None
    regularizer : Regularizer, Penalty or None
    solver : str or MKLSolver
        By its name where the kernels decide which one fits.
    C : float or None
    tol, max_iter
    limit : int or None
        Bytes that the kernels may take.
    device : torch.device or None
        That of the parameter, else that of the data; None for NumPy.
    """

    loss: Any
    regularizer: Any
    solver: Any
    C: float | None
    tol: float
    max_iter: int | None
    limit: int | None
    device: Any

    @classmethod
    def of(cls, estimator: Any) -> Spec:
        """The settings of an estimator; an error names the first parameter that cannot be used."""
        estimator._check_parameters()
        names = ("solver", "C", "tol", "max_iter")
        given: dict[str, Any] = {name: getattr(estimator, name, None) for name in names}
        parts = {
            name: registry.resolve(getattr(estimator, name), base, name)
            for name, (registry, base) in estimator._parts.items()
            if hasattr(estimator, name)
        }
        loss = parts.get("loss")
        if loss is not None and loss.task not in estimator._tasks:
            named = (name for name, known in LOSSES.items() if getattr(known, "task", "") in estimator._tasks)
            raise ValueError(
                f"loss={estimator.loss!r} is not for {type(estimator).__name__}: use one of "
                f"{', '.join(map(repr, named))}."
            )
        if loss is not None:
            loss.check()
        return cls(
            loss=loss,
            regularizer=parts.get("regularizer"),
            limit=parse_memory(getattr(estimator, "memory_limit", None)),
            device=resolve_device(estimator.device or getattr(estimator, "_data_device", None)),
            **given,
        )


class BaseLearner(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What every estimator has: parameters, the functions it learned, and what they look like."""

    max_iter: int  # parameters are stored by the classes whose constructors name them

    output_names_: list[str]

    #: parameters that may be given by name: the registry of these names, and what it holds
    _parts: ClassVar[dict[str, tuple[Registry, type]]] = {"loss": (LOSSES, Loss)}

    #: what a loss may be for
    _tasks: ClassVar[tuple[str, ...]] = ("regression",)

    # -- parameters ---------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters, such as ``C=1``, ``regularizer__p=1`` or ``kernels__0__gamma=0.1``.

        A part given by its name, such as ``regularizer="lp"``, becomes an object when one of its parameters
        is set.
        """
        for name, (parts, kind) in self._parts.items():
            given = params.get(name, getattr(self, name, None))
            if isinstance(given, str) and any(key.startswith(f"{name}__") for key in params):
                params[name] = parts.resolve(given, kind)
        result: Self = super().set_params(**params)
        return result

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot work."""
        check_settings(self)
        check_positive("tol", self.tol)
        if not (isinstance(self.max_iter, Integral) and self.max_iter > 0):
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer.")

    # -- data ---------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any = NO_TARGET, reset: bool = True, **y_options: Any) -> tuple[Any, Any]:
        """X as a table (DataFrame, array, sparse matrix or stack), and y; shapes are checked."""
        if y is not NO_TARGET:
            if hasattr(self, "output_names_"):
                del self.output_names_
            names = column_names(y) if y_options.get("multi_output") else None
            if names is not None:
                self.output_names_ = names
            check_targets(y, bool(y_options.get("y_numeric")), type(self).__name__)
        return self._checked_data(X, y, reset, **y_options)

    def _checked_data(self, X: Any, y: Any, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _values(self, table: Any) -> Any:
        """What kernels compute on."""
        return table

    # -- storing ------------------------------------------------------------------------------

    def _store_results(
        self, names: list[str], weights: FloatArray, alpha: FloatArray, used: Any, results: list[Result]
    ) -> None:
        """Set what every family has: weights (n_models, M), alpha (n, n_functions), how the fits went.

        `used` are the sample weights; samples without one have no alpha.
        """
        dual_coef = np.zeros((len(used), alpha.shape[1]))
        dual_coef[used > 0] = alpha
        self.kernel_names_ = names
        self.weights_ = one_or_all(weights)
        self.dual_coef_ = one_or_all(dual_coef.T)
        self.stationarity_ = one_or_all(np.array([result.state.residual for result in results]))
        self.n_iter_ = one_or_all(np.array([result.n_iter for result in results]))
        self.n_resumed_ = one_or_all(np.array([result.n_resumed for result in results]))
        self.history_ = one_or_all([result.history for result in results])

    # -- prediction ---------------------------------------------------------------------------

    #: the functions learned
    model_: Predictor

    #: fitted attributes that predictions read, and their types; those of base classes too
    _fitted: ClassVar[dict[str, type]] = {
        "model_": Predictor,
        "kernel_names_": list,
        "weights_": np.ndarray,
        "n_features_in_": int,
    }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _inputs(self, X: Any) -> Any:
        """New samples, checked, as `model_` takes them."""
        check_is_fitted(self)
        return self._values(self._validate(X, reset=False)[0])

    def _decision(self, X: Any) -> FloatArray:
        """Values of every function learned, shape (n, n_functions)."""
        values = self._inputs(X)
        return self.model_(values)

    # -- representation -----------------------------------------------------------------------

    def _told(self, state: Any) -> str:
        """What `verbose` tells of an iterate."""
        raise NotImplementedError

    def weights_frame(self) -> Any:
        """Models, kernels, weights and component norms as a pandas DataFrame (needs pandas).

        A model is named by what it learns: a class or label, a pair such as "b vs a", "all classes" where
        they share the weights, or the name or number of an output. A learned kernel has parameters in place
        of kernels, and no norms.
        """
        import pandas as pd

        check_is_fitted(self)
        weights = np.atleast_2d(self.weights_)
        columns = {
            "model": [name for name in model_names(self) for _ in self.kernel_names_],
            "kernel": self.kernel_names_ * len(weights),
            "weight": weights.ravel(),
        }
        if hasattr(self, "norms_"):
            columns["norm"] = np.ravel(self.norms_)
        return pd.DataFrame(columns)

    def _html_repr(self) -> str:
        page: str = super()._html_repr()
        if not hasattr(self, "weights_"):
            return page
        result: str = page + weights_table(
            self.kernel_names_, np.atleast_2d(self.weights_), model_names(self)
        )
        return result


# -- fits and predictions ---------------------------------------------------------------------


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit that fails leave the estimator as it was; tensors and CuPy arrays are taken as arrays.

    Weights and groups with an index are put in the order of the samples, where X is joined by IDs.
    """

    @functools.wraps(fit)
    def guarded(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        self._data_device = device_of(X)
        try:
            first = ("y", "sample_weight")[: len(args)]
            given = {**kwargs, **dict(zip(first, args, strict=False))}
            given = {name: computed(to_host(value)) for name, value in given.items()}
            X = to_host(X)
            if not getattr(self, "_precomputed", False):
                X, given = per_sample(X, given)
            rest = (computed(to_host(value)) for value in args[2:])
            return fit(self, X, *(given[n] for n in first), *rest, **{n: given[n] for n in kwargs})
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


def follows_input(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Give predictions on tensors or CuPy arrays back as such, on the same device."""

    @functools.wraps(predict)
    def following(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if device_of(X) is None:
            return predict(self, X, *args, **kwargs)
        found = predict(self, to_host(X), *args, **kwargs)
        return tuple(follow(part, X) for part in found) if isinstance(found, tuple) else follow(found, X)

    return following


def one_or_all(values: Any) -> Any:
    """The only element of a sequence of one (as a plain number if it is one), or the sequence."""
    if len(values) > 1:
        return values
    return values[0].item() if isinstance(values[0], np.generic) else values[0]


# -- names ------------------------------------------------------------------------------------


def model_names(model: Any) -> list[Any]:
    """Names of the rows of `weights_`.

    Classes or labels as in `classes_`; pairs as "b vs a", b the positive class; "all classes", "all labels"
    and "all outputs" where these share their weights; groups of outputs by their labels; else the names of
    the outputs, or their numbers from 0.

    Examples
    --------
    >>> from types import SimpleNamespace as Fitted
    >>> model_names(Fitted(weights_=np.eye(3), classes_=np.array(["a", "b", "c"]), _pairwise=True))
    ['b vs a', 'c vs a', 'c vs b']
    """
    count = len(np.atleast_2d(model.weights_))
    if hasattr(model, "group_names_"):
        return list(model.group_names_)
    if count == 1 and np.size(getattr(model, "intercept_", 0.0)) > 1:
        several = "labels" if getattr(model, "multilabel_", False) else "classes"
        return [f"all {several}" if hasattr(model, "classes_") else "all outputs"]
    return _names(model, count)


def function_names(model: Any) -> list[Any]:
    """Names of the entries of `intercept_`, as those of `model_names`."""
    return _names(model, np.size(model.intercept_))


def _names(model: Any, count: int) -> list[Any]:
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    if len(classes) * (len(classes) - 1) // 2 == count and (count == 1 or getattr(model, "_pairwise", False)):
        return [f"{b} vs {a}" for a, b in combinations(classes, 2)]
    known = (classes, list(getattr(model, "output_names_", ())), list(range(count)))
    return next(names for names in known if len(names) == count)


def weights_table(names: list[str], weights: FloatArray, models: list[Any]) -> str:
    """An HTML table of kernels and weights, the heaviest first and at most `MOST_ROWS` of them."""
    order = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_ROWS]
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{html.escape(names[m])}</th>"
        + "".join(f"<td>{value:.4g}</td>" for value in weights[:, m])
        + "</tr>"
        for m in order
    )
    titles = ["weight"] if len(weights) == 1 else [f"weight, {name}" for name in models]
    heads = "".join(f"<th scope='col'>{html.escape(title)}</th>" for title in titles)
    left_out = len(names) - len(order)
    if left_out:
        rows += f"<tr><td colspan='{1 + len(weights)}'>and {left_out:,} kernels of smaller weight</td></tr>"
    return (
        "<table class='kernelweave-weights'><caption>Kernel weights</caption>"
        f"<thead><tr><th scope='col'>kernel</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )
