"""Rows to learn from, rows held out, and folds; rows of one group stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)

from ..._words import quoted
from ._columns import Target
from ._console import CliError

#: divisions of the groups that are tried; the one nearest to the proportions of the classes is taken
DRAWS = 50

#: rows to learn from, and the others
Split = tuple[np.ndarray, np.ndarray]


def kinds(task: str, y: np.ndarray, least: int = 2) -> np.ndarray | None:
    """What every part has in proportion: classes, or events where at least so many times are censored.

    Examples
    --------
    >>> kinds("regression", np.array([0.1, 0.2])) is None
    True
    """
    if task == "survival":
        counts = np.bincount(y["event"], minlength=2)
        return np.where(y["event"], "event", "censored") if counts.min() >= least else None
    return y if task == "classification" else None


def fewest(task: str, y: np.ndarray) -> tuple[int, str]:
    """How many folds there may be, and what there are so many of."""
    if task == "survival":
        return int(y["event"].sum()), "events"
    if task == "classification":
        return int(np.unique(y, return_counts=True)[1].min()), "rows of the smallest class"
    return len(y), "rows"


def split_rows(
    target: Target, test_size: float, seed: int, group_of: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from, rows held out, and those predicted: the held-out ones, or all where none are."""
    every = np.arange(len(target.y))
    if test_size == 0:
        return every, every[:0], every
    classes = kinds(target.task, target.y)
    try:
        if group_of is None:
            train, test = train_test_split(every, test_size=test_size, stratify=classes, random_state=seed)
        else:
            train, test = split_groups(classes, group_of, test_size, seed)
    except ValueError as error:
        raise CliError(
            f"--test-size {test_size}: {error} Use another share, or 0 to hold nothing out."
        ) from None
    return np.sort(train), np.sort(test), np.sort(test)


def split_groups(classes: np.ndarray | None, group_of: np.ndarray, test_size: float, seed: int) -> Split:
    """Whole groups held out, about `test_size` of the rows, and of those of each class.

    Several random divisions of the groups are tried; the one with counts nearest to the shares is taken.

    Examples
    --------
    >>> train, test = split_groups(None, np.repeat(["a", "b", "c", "d"], 2), 0.25, 0)
    >>> len(test)
    2
    """
    codes = np.zeros(len(group_of), dtype=int)
    if classes is not None:
        codes = np.unique(classes, return_inverse=True)[1]
    counts = np.bincount(codes)
    draws = GroupShuffleSplit(DRAWS, test_size=test_size, random_state=seed).split(codes, groups=group_of)

    def distance(split: Split) -> float:
        return float(np.abs(np.bincount(codes[split[1]], minlength=len(counts)) - test_size * counts).sum())

    train, test = min(draws, key=distance)
    check_taught(classes, [(train, test)], "")
    return train, test


def make_folds(
    task: str, y: np.ndarray, n_folds: int, seed: int, group_of: np.ndarray | None, option: str
) -> list[Split]:
    """Folds of a cross-validation, classes in proportion, groups whole."""
    return checked_folds(task, y, n_folds, seed, group_of, option)[1]


def checked_folds(
    task: str, y: np.ndarray, n_folds: int, seed: int, group_of: np.ndarray | None, option: str
) -> tuple[Any, list[Split]]:
    """A splitter that shuffles, and its folds."""
    classes, (smallest, what) = kinds(task, y, n_folds), fewest(task, y)
    splitter: Any
    if group_of is None:
        if smallest < n_folds:
            raise CliError(f"{option}: there are {smallest} {what}; use at most {max(smallest, 2)} folds.")
        splitter = (KFold if classes is None else StratifiedKFold)(n_folds, shuffle=True, random_state=seed)
    else:
        n_groups = len(np.unique(group_of))
        if n_groups < n_folds:
            raise CliError(f"{option}: there are {n_groups} groups (--group) for {n_folds} folds.")
        grouped = GroupKFold if classes is None else StratifiedGroupKFold
        splitter = grouped(n_folds, shuffle=True, random_state=seed)
    splits = list(splitter.split(np.zeros((len(y), 1)), classes, group_of))
    check_taught(classes, splits, f"{option}: ")
    return splitter, splits


def check_taught(classes: np.ndarray | None, splits: list[Split], option: str) -> None:
    """Refuse training parts that lack a class, and parts to score on without a row."""
    for train, test in splits:
        unseen = [] if classes is None else np.setdiff1d(classes, classes[train]).tolist()
        if unseen or not len(test):
            lacking = f"class {quoted(unseen, 3)}" if unseen else "rows to score on"
            raise CliError(
                f"{option}the groups (--group) cannot be divided so that every part has what it needs: "
                f"{lacking} would be missing. A class needs rows in several groups."
            )
