"""Folds and scores of a cross-validated estimator: groups, weights and other metadata on their way there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from .._typing import FloatArray, IntArray
from ..kernels.nested import NestedKernels


class Metadata(NamedTuple):
    """What `fit` was given beside X and y, for all samples: by argument of the splitter and of the scorer."""

    split: dict[str, Any]
    score: dict[str, Any]


class Folds(NamedTuple):
    """The splits of a cross-validation, as positions among the samples of positive weight."""

    n_samples: int  # of any weight
    used: IntArray
    splits: list[tuple[IntArray, IntArray]]
    score: dict[str, Any]

    def score_options(self, test: IntArray) -> dict[str, Any]:
        """What the scorer gets with some samples; weights that are all equal do not matter to it."""
        options = _check_method_params(np.empty((self.n_samples, 0)), self.score, self.used[test])
        weight = options.get("sample_weight")
        if weight is not None and not _routing_enabled() and np.ptp(weight) == 0:
            del options["sample_weight"]
        return options


class RoutedCV(NestedKernels):
    """Mixin of estimators with `cv` and `scoring`, whose ``fit`` takes groups and other metadata.

    As in scikit-learn: with metadata routing every argument of ``fit`` goes to whom requests it, the
    estimator itself, its splitter and its scorer (without `scoring`, its own ``score``); without routing,
    `groups` go to the splitter, and weights to the scorer.
    """

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` passes on, and to whom."""
        own = self._get_metadata_request()
        scorer = own if self.scoring is None else check_scoring(self, self.scoring)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        )

    def _metadata(self, sample_weight: Any, params: dict[str, Any]) -> Metadata:
        """Sort the arguments of ``fit``."""
        _raise_for_params(params, self, "fit", allow={"groups"})
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return Metadata(dict(routed.splitter.split), dict(routed.scorer.score))
        given = {"groups": params["groups"]} if params.get("groups") is not None else {}
        return Metadata(given, {} if sample_weight is None else {"sample_weight": sample_weight})

    def _folds(self, y: Any, weight: FloatArray, metadata: Metadata) -> Folds:
        """The splits of all samples, without those of weight zero: they are in no matrix."""
        used = np.flatnonzero(weight)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        if metadata.split.get("groups") is None and _needs_groups(splitter):
            raise ValueError(
                f"cv={self.cv!r} splits by groups, and there are none: pass them to fit, "
                "fit(X, y, groups=...), one label for each sample."
            )
        where = np.full(len(weight), -1)
        where[used] = np.arange(len(used))
        splits = splitter.split(np.zeros((len(weight), 1)), y, **metadata.split)
        kept = [(where[train], where[test]) for train, test in splits]
        kept = [(train[train >= 0], test[test >= 0]) for train, test in kept]
        return Folds(len(weight), used, kept, metadata.score)


def _needs_groups(splitter: Any) -> bool:
    """Whether a splitter asks for groups, by scikit-learn's declaration."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return splitter.get_metadata_routing().split.requests.get("groups") is True
