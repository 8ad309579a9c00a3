"""How properties are collected, run and reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar
from unittest import SkipTest

import numpy as np
from sklearn.base import clone

Promise = TypeVar("Promise", bound=Callable[..., None])


class Contract:
    """Properties of every part of one kind, in order: each is a function that raises where it does not hold.

    A property that does not apply to a part, such as one about second derivatives for a loss without any,
    raises `unittest.SkipTest`.

    Attributes
    ----------
    promises : list of callable
        The properties; pytest takes them as parameters, one test per property.

    Examples
    --------
    >>> contract = Contract()
    >>> @contract.promise
    ... def is_positive(part):
    ...     '''x > 0.'''
    ...     expect(part > 0)
    >>> contract.check(2.0, 2.0)
    >>> contract.check(-1.0, -1.0)
    Traceback (most recent call last):
    AssertionError: -1.0 breaks the contract, is positive: x > 0.
    """

    def __init__(self) -> None:
        self.promises: list[Callable[..., None]] = []

    def promise(self, function: Promise) -> Promise:
        """Add a property; a decorator."""
        self.promises.append(function)
        return function

    def check(self, part: Any, *case: Any, hint: str = "") -> None:
        """Run every property on `case`; the first that fails is named, and so is the part.

        Parameters
        ----------
        part : object
            What is checked, for the message.
        *case
            What the properties take.
        hint : str, optional
            What to try when a property cannot be checked at all because it raises an error of another kind.
        """
        for promise in self.promises:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)  # overflow, 0 / 0, log 0
                    promise(*case)
            except SkipTest:
                continue
            except Exception as error:
                title, identity = promise.__name__.replace("_", " "), (promise.__doc__ or "").strip()
                details = f"\n{error}" if str(error) else ""
                if not isinstance(error, AssertionError):
                    details = f"\nIt raised {type(error).__name__}: {error}" + (f"\n{hint}" if hint else "")
                raise AssertionError(f"{part!r} breaks the contract, {title}: {identity}{details}") from error


def expect(condition: Any, message: str = "") -> None:
    """Raise an AssertionError unless `condition` holds everywhere; like `assert`, but not lost to ``-O``."""
    if not np.all(condition):
        raise AssertionError(message)


def needs(part: Any, ability: str) -> None:
    """Skip a property about an ability that the part does not have."""
    if not getattr(part, ability, False):
        raise SkipTest(f"{type(part).__name__} has no `{ability}`")


def draws() -> np.random.Generator:
    """The same random numbers for every property and part."""
    return np.random.default_rng(0)


def labels_like(loss: Any, values: Any) -> Any:
    """Targets that the loss takes: two labels, ones, the class of the largest value, or the values."""
    if loss.coupled:
        return 2.0 * np.eye(values.shape[1])[values.argmax(axis=1)] - 1.0
    labels = np.where(values > np.median(values, axis=0), 1.0, -1.0)
    return {"classification": labels, "one_class": np.ones_like(values)}.get(loss.task, values)


def expect_clone(part: Any) -> None:
    """A clone has the same parameters and the same representation, which opens with the name of the class."""
    copy = clone(part)
    expect(repr(copy) == repr(part), f"{part!r} has the clone {copy!r}")
    ours, theirs = part.get_params(deep=False), copy.get_params(deep=False)
    expect(list(ours) == list(theirs), f"parameters {list(ours)}, but {list(theirs)} in the clone")
    expect(repr(part).startswith(type(part).__name__ + "("), f"repr {part!r}")
