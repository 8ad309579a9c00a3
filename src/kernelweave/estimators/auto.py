"""No choice to make: candidates compete on held-out samples, and one of them or their stack is the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import each_once
from ..kernels.families import Auto
from ..kernels.products import Linear
from ..kernels.views import spans_views, width_of
from ..regularizers import LpNorm
from ._base import Spec, all_or_nothing
from ._candidates import TOGETHER, Candidate, Contest, candidates, families_of, reaches_of
from ._input import check_choice, check_positive, check_settings
from ._labels import LabelsMixin, LossScore, fit_link, link_of
from ._mkl import BaseMKL, Model, Setup
from ._rules import Look, Related
from ._search import CLEAR, BaseSearch, Folds, Grid, Metadata, Trial, best_of, rows_of
from ._stack import multipliers, sample_losses, simplest, stack_margins, store_stack
from .classifier import MKLClassifier
from .cross_validation import ChainSearch, cost_unit, matrices_of
from .regressor import MKLRegressor

#: samples below which folds are drawn again, and how many times at most
FEW, MOST_TIMES = 150, 3

#: relative gap of fits that compete; parts of a stack that are named; a long step between costs
LOOSE, MOST_NAMED, LONG = 1e-2, 3, 4.0

#: of every candidate what it predicts for the test samples of every fold
Values = list[list[FloatArray]]


class Tried(NamedTuple):
    """A candidate with its trials, from small costs to large ones, and the seconds they took."""

    candidate: Candidate
    trials: list[Trial]
    seconds: float

    @property
    def best(self) -> Trial:
        """The trial of the largest score."""
        return max(self.trials, key=attrgetter("mean"))


class Competition(NamedTuple):
    """What came out: entrants, their scores and the stack's, its shares, and which to take.

    Attributes
    ----------
    entrants : list of Tried
    scores : ndarray of shape (n_entrants + 1, n_folds)
        The last row is the stack's.
    shares : ndarray of shape (n_entrants,)
        Of the stack.
    chosen : int
        One of them, or as the last one the stack.
    grid : Grid
        Of the costs that they began with.
    n_left_out : int
        Candidates that there was no time for.
    """

    entrants: list[Tried]
    scores: FloatArray
    shares: FloatArray
    chosen: int
    grid: Grid
    n_left_out: int

    @property
    def taken(self) -> FloatArray:
        """Shares of the entrants in the model."""
        alone = self.chosen < len(self.entrants)
        return np.eye(len(self.entrants))[self.chosen] if alone else self.shares


class BaseMKLAuto(BaseSearch):
    """What the estimators share; see them."""

    #: the first and the last cost to begin with, in the unit of the targets
    _costs: ClassVar[tuple[float, float]] = (0.03, 30.0)

    #: whether candidates vary others: norms, families of kernels, greedy selection, costs between those given
    _variants: ClassVar[bool] = True

    simplicity: float = 1.0
    _out_of_time: Callable[[], bool]

    @all_or_nothing
    @each_once()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Let the candidates compete on held-out samples, and fit what is chosen on all of them.

        Parameters
        ----------
        X, y, sample_weight
            As in the estimator without "Auto". Kernel parameters taken from data are taken once, from all
            rows; normalisation constants from the training rows of each fold.
        **params
            `groups`, array-like of shape (n,): samples of a group are in the same fold, with ``cv=None`` and
            with a splitter by groups such as ``cv=GroupKFold()``. With
            scikit-learn's metadata routing, whatever the splitter and the scorer request.
        """
        check_settings(self)
        if self.time_budget is not None:
            check_positive("time_budget", self.time_budget)
        if not self.simplicity >= 0:
            raise ValueError(f"simplicity={self.simplicity!r}: a number of standard errors, 0 or more.")
        y = self._read_targets(y)
        check_choice("multiclass", getattr(self, "multiclass", "ovr"), ("ovr", "shared"))
        metadata, template = self._metadata(sample_weight, params), self._template()
        with self._own_name():
            setup = template._setup(X, y, sample_weight)
        labels = self._labels_of(y)
        folds = self._folds(labels, setup.weight, metadata)
        if len(folds.splits) < 2:
            raise ValueError(f"cv={self.cv!r} has one fold: candidates are compared on two or more.")
        groups = metadata.split.get("groups")
        clusters = folds.used if groups is None else np.asarray(groups)[folds.used]
        with blas_threads_for(len(setup.weight)):
            found = self._compete(template, setup, folds, labels[folds.used], clusters)
            self._fit_chosen(template, setup, found)
        largest = found.entrants[int(np.argmax(found.taken))]
        if not found.grid.open:
            self._warn_of_end(largest.trials, largest.best, found.grid)
        entrants = [one.candidate for one in found.entrants]
        seconds = [one.seconds for one in found.entrants]
        apart = found.scores.shape[1] / _often([test for _, test in folds.splits])
        self.cv_results_ = {
            "candidate": [*(one.name for one in entrants), "stack"],
            "kernels": [one.kernels for one in entrants],
            "regularizer": [one.regularizer for one in entrants],
            "C": [*(one.best.value for one in found.entrants), np.nan],
            "mean_test_score": found.scores.mean(axis=1),
            "standard_error": found.scores.std(axis=1, ddof=1) / np.sqrt(apart),
            "split_test_scores": found.scores,
            "stack_share": np.append(found.shares, np.nan),
            "seconds": np.append(seconds, sum(seconds)),
        }
        self.best_index_, self.best_score_ = found.chosen, float(found.scores[found.chosen].mean())
        self.stack_weights_ = found.taken
        self.reason_ = self._reason(found.chosen, found.n_left_out)
        return self._with_data_of_best()

    def _template(self) -> Any:
        template = super()._template()
        if self.missing == "margin":
            template.set_params(regularizer=LpNorm(1.0))
        if isinstance(self.kernels, str) and self.kernels == "auto" and self.missing == "error":
            template.set_params(kernels=Auto(together=True, units=self._variants))
        return template

    # -- the competition ------------------------------------------------------------------------

    def _compete(self, template: Any, setup: Setup, folds: Folds, targets: Any, clusters: Any) -> Competition:
        matrices = matrices_of(template, setup)
        parts = (matrices.values, matrices.names, self.normalize, self.missing, matrices.gaps)
        search = ChainSearch(setup, [], *parts)
        every = np.arange(len(folds.used))
        entrants = self._candidates(matrices, setup, lambda: Look.at(search.dictionary(every), setup))
        grid = Grid.of("C", "Cs", self.Cs, lambda n: np.geomspace(*self._costs, n))
        specs = [replace(_spec(template, one, 1.0), tol=max(self.tol, LOOSE)) for one in entrants]
        contest = Contest(entrants, specs, search, folds.splits, self.time_budget, self._say)
        scorer, weight = check_scoring(self, self.scoring), setup.weight[folds.used]
        units = [cost_unit(spec, targets, weight) if grid.open else 1.0 for spec in specs]
        scored = partial(self._fold_scores, scorer, template, folds, targets)

        def attempt(lines: dict[int, FloatArray]) -> list[Trial]:
            trials = []
            for line in contest.run(lines):
                rows = [[contest.values[line, C][k] for C in lines[line].tolist()] for k in range(count)]
                table = np.array([scored(k, row) for k, row in enumerate(rows)])
                params = [{"candidate": entrants[line].name, "C": float(C)} for C in lines[line]]
                parts = zip(lines[line].tolist(), params, table.T, strict=True)
                trials += [Trial(line, *part) for part in parts]
            return trials

        count, self._out_of_time = len(folds.splits), lambda: contest.over
        lines = {line: grid.values * unit for line, unit in enumerate(units)}
        constant = partial(self._constant_scores, scorer, targets, weight, folds)
        points = self._explored(attempt, grid, lines, constant)
        if grid.open and self._variants and not contest.over:
            points += attempt(self._between(points, grid))
        del self._out_of_time
        rows = dict(sorted(rows_of(points).items()))
        found = [Tried(entrants[line], row, float(contest.seconds[line])) for line, row in rows.items()]
        values = [contest.values[line, one.best.value] for line, one in zip(rows, found, strict=True)]
        y = np.hstack([one.problem.y for one in setup.problems])
        told = {"y": y, "weight": weight, "clusters": clusters, "tests": [test for _, test in folds.splits]}
        stack, shares = self._crossed(values, **told), self._multipliers(values, **told)
        own = [scored(k, [row])[0] for k, row in enumerate(stack)]
        scores = np.array([*(one.best.scores for one in found), own])
        chosen = self._choice(self._judged(values, stack, scores, **told), shares)
        return Competition(found, scores, shares / shares.sum(), chosen, grid, len(contest.late))

    def _between(self, points: list[Trial], grid: Grid) -> dict[int, FloatArray]:
        """Costs on both sides of the best, for the better third of the candidates, where steps are long."""
        step = float(grid.values[-1] / grid.values[0]) ** (1.0 / max(len(grid.values) - 1, 1))
        best = {line: max(row, key=attrgetter("mean")) for line, row in rows_of(points).items()}
        first = sorted(best, key=lambda line: -best[line].mean)[: ceil(len(best) / 3)]
        around = np.array([step**-0.5, step**0.5])
        return {line: best[line].value * around for line in sorted(first)} if step > LONG else {}

    def _judged(
        self, values: Values, stack: list[FloatArray], scores: FloatArray, **told: Any
    ) -> tuple[FloatArray, IntArray, Any, Any]:
        """Losses of candidates and stack (of folds minus the scores), with folds, weights and clusters."""
        places = np.arange(len(told["tests"]))
        if self.scoring is not None or self._measure not in ("accuracy", "R^2"):
            return -scores, places, None, None
        rows, squared = np.concatenate(told["tests"]), not is_classifier(self)
        alone = [stack] if len(values) == 1 else [self._crossed([one], **told) for one in values]
        y, weight, clusters = (told[name][rows] for name in ("y", "weight", "clusters"))
        lost = [sample_losses(np.vstack(one), y, squared) for one in (*alone, stack)]
        return np.array(lost), np.repeat(places, [len(test) for test in told["tests"]]), weight, clusters

    def _multipliers(
        self, values: Values, y: FloatArray, weight: FloatArray, clusters: Any, tests: list[Any]
    ) -> FloatArray:
        """Of the stack, from the values of every candidate on the test samples of every fold."""
        rows, squared = np.concatenate(tests), not is_classifier(self)
        parts = [np.vstack(one) for one in values]
        return multipliers(parts, y[rows], squared, weight[rows], clusters[rows], _often(tests))

    def _crossed(self, values: Values, tests: list[Any], **told: Any) -> list[FloatArray]:
        """Values of the stack on every fold, with multipliers from samples that are not in it."""
        found = []
        for k, test in enumerate(tests):
            others = [(o, ~np.isin(tests[o], test)) for o in range(len(tests)) if o != k]
            apart = any(rows.any() for _, rows in others)
            others = [(o, rows if apart else ~rows) for o, rows in others if rows.any() or not apart]
            parts = [[one[o][rows] for o, rows in others] for one in values]
            by = self._multipliers(parts, tests=[tests[o][rows] for o, rows in others], **told)
            found.append(np.asarray(sum(a * one[k] for a, one in zip(by, values, strict=True))))
        return found

    def _choice(self, losses: tuple[FloatArray, IntArray, Any, Any], shares: FloatArray) -> int:
        """The candidate to take, or as the last one the stack: for classes unless one alone is no worse.

        Squared errors have long tails, so that one of many candidates alone is soon the best by chance: it
        has to be clearly better.
        """
        chosen = simplest(*losses, self.simplicity, 0.0 if is_classifier(self) else CLEAR)
        parts = np.flatnonzero(shares)
        return int(parts[0]) if chosen == len(shares) and len(parts) == 1 else chosen

    def _best(self, points: list[Trial], grid: Grid) -> int:
        """The first of equal costs, as in `Tried`: a stack sees what they predict, not their scores alone."""
        return best_of(points, False)

    def _beyond(
        self, points: list[Trial], ends: dict[int, tuple[float, float]], grid: Grid, every: int = 0
    ) -> dict[int, FloatArray]:
        """The values to try next, of each candidate at the end where its own best lies."""
        more: dict[int, FloatArray] = {}
        for line, row in rows_of(points).items() if not self._out_of_time() else ():
            own = {line: ends[line]}
            more |= super()._beyond(row, own, grid, every)
        return more

    def _candidates(self, matrices: Any, setup: Setup, look: Callable[[], Look]) -> list[Candidate]:
        if self.missing == "margin":  # the norm that margins in the space of each sample's views are for
            return [Candidate("lp-norm, p = 1", np.arange(len(matrices.names)), LpNorm(1.0))]
        views: dict[str, Any] = {}
        given = matrices.kernels[0] is None  # every matrix is its own view then
        across = np.zeros(len(matrices.names), dtype=bool)
        if matrices.gaps is not None and not given and len(set(matrices.gaps.views)) > 1:
            names = np.array(matrices.gaps.views)
            across = np.array([spans_views(kernel, setup.table) for kernel in matrices.kernels])
            known = dict.fromkeys(matrices.gaps.views)
            views = {str(name): np.flatnonzero((names == name) & ~across) for name in known}
        whole = isinstance(matrices.values, list)
        families = families_of(matrices.kernels, matrices.values) if whole and self._variants else {}
        if not given:
            widths = np.array([width_of(kernel, setup.table) for kernel in matrices.kernels])
            own = matrices.gaps.views if matrices.gaps is not None else [""] * len(widths)
            linear = np.array([isinstance(kernel, Linear) for kernel in matrices.kernels])
            measured = np.array([not getattr(kernel, "standardize", False) for kernel in matrices.kernels])
            reaches = reaches_of(widths, own, across, linear, measured)
            families |= {name: some for name, some in reaches.items() if self._variants or name == TOGETHER}
        evidence = bool(getattr(setup.spec.loss, "quadratic", False)) and not is_classifier(self)
        related: list[str] = []
        if whole and self._variants and len(views) > 2:
            order, count = Related(tuple(views.values())).ranked(look())
            related = [list(views)[k] for k in order[:count]] if count < len(views) else []
        options = (whole, evidence, self._variants, related, not is_classifier(self))
        return candidates(views, families, len(matrices.names), *options)

    def _folds(self, y: Any, weight: FloatArray, metadata: Metadata) -> Folds:
        """Of few samples several times, in other orders: one division tells candidates apart by chance."""
        folds = super()._folds(y, weight, metadata)
        times = min(MOST_TIMES, ceil(FEW / len(folds.used))) if self.cv is None and self._variants else 1
        for seed in range(1, times):
            rng = np.random.default_rng(seed)
            order, own = rng.permutation(len(y)), dict(metadata.split)
            if own.get("groups") is not None:  # under other names, as splitters sort them
                codes = np.unique(own["groups"], return_inverse=True)[1]
                own["groups"] = rng.permutation(codes.max() + 1)[codes][order]
            again = super()._folds(y[order], weight[order], metadata._replace(split=own))
            place = np.searchsorted(folds.used, order[again.used])
            folds.splits.extend((place[train], place[test]) for train, test in again.splits)
        return folds

    def _fold_scores(
        self, scorer: Any, template: Any, folds: Folds, targets: Any, k: int, points: list[FloatArray]
    ) -> list[float]:
        test = folds.splits[k][1]
        return self._scores(scorer, template, points, targets[test], folds.score_options(test))

    # -- the model ------------------------------------------------------------------------------

    def _fit_chosen(self, template: Any, setup: Setup, found: Competition) -> None:
        """Fit a candidate, or those of the stack, on all samples."""
        shares, entrants = found.taken, found.entrants
        places, largest = np.flatnonzero(shares), int(np.argmax(shares))
        dictionary, fits, given = template._dictionary(setup), [], float(setup.spec.C or 1.0)
        look = lru_cache(1)(partial(Look.at, dictionary, setup))
        for j in places:
            entrants[j] = entrants[j]._replace(candidate=entrants[j].candidate.made(look))
        first = entrants[largest]
        template.set_params(regularizer=first.candidate.regularizer, C=first.best.value)
        for j in places:
            candidate, C = entrants[j].candidate, entrants[j].best.value
            spec = _spec(template, candidate, C)
            problems = [replace(one, problem=one.problem.at_cost(C / given)) for one in setup.problems]
            own = setup._replace(spec=spec, problems=problems)
            margins = is_classifier(self) and not hasattr(spec.loss, "probability")
            fits.append(template._models(own, lambda _, one=candidate: one.on(dictionary), margins))
        if len(fits) == 1:
            template._store(*fits[0], setup.weight)
        else:
            store_stack(template, dictionary, fits, shares[places], setup.weight)
        self._complete(template, setup, [models for _, models in fits], shares[places])
        self.best_estimator_ = template

    def _complete(self, template: Any, setup: Setup, fits: list[list[Model]], shares: FloatArray) -> None:
        """Set what the estimator needs beside its functions: of classes, the link to probabilities."""
        if is_classifier(self):
            parts = zip(*fits, strict=True)
            margins = [partial(stack_margins, shares, models) for models in parts]
            weight = setup.weight[setup.weight > 0]
            template.model_.link = link_of(setup.spec.loss, fit_link, margins, setup.labels, weight)

    def _reason(self, chosen: int, n_left_out: int) -> str:
        """Why this model, in two sentences, and what there was no time for."""
        table = self.cv_results_
        names, mean, error = (table[key] for key in ("candidate", "mean_test_score", "standard_error"))
        best, count = int(np.argmax(mean)), len(names) - 1
        score = f"{mean[chosen]:.3f} ({self._measure}, standard error {error[chosen]:.3f})"
        first = f"The model {names[chosen]!r} scored {score} on samples held out."
        if chosen == count:
            share = table["stack_share"][:-1]
            order = [int(j) for j in np.argsort(-share, kind="stable") if share[j] > 0]
            parts = ", ".join(f"{share[j]:.0%} {names[j]!r}" for j in order[:MOST_NAMED])
            parts += f" and {len(order) - MOST_NAMED} more" if len(order) > MOST_NAMED else ""
            alone = int(np.argmax(mean[:-1]))
            first = f"Several models together ({parts}) scored {score} on samples held out."
            best_alone = f"{names[alone]!r} scored most, {mean[alone]:.3f}"
            why = f"A sum of good models depends less on chance than one of them; alone, {best_alone}"
            if mean[alone] > mean[chosen] and self._error != "the score":
                which = "their sum is better than such a choice"
                which = which if is_classifier(self) else "such a choice is not clearly better than their sum"
                why += f", but the choice goes by {self._error}, where {which}"
            why += "."
        elif count == 1:
            why = "There was no other candidate."
        elif best == chosen:
            why = f"None of the {count - 1} other candidates scored more, nor did their stack."
            why = "Neither the other candidate nor their stack scored more." if count == 2 else why
        else:
            title = "the stack of all candidates" if best == count else repr(names[best])
            small = f"the difference in {self._error} is too small to tell, so the simpler model was taken"
            told = small if chosen < best else f"the choice goes by {self._error}, where that is no better"
            why = f"The best score, {mean[best]:.3f}, was that of {title}; {told}."
        late = f" {n_left_out} more could not be tried within time_budget={self.time_budget} seconds."
        return f"{first} {why}{late if n_left_out else ''}"

    @property
    def _measure(self) -> str:
        """What scores are of, in words."""
        if self.scoring is not None:
            return self.scoring if isinstance(self.scoring, str) else "your scoring"
        if is_classifier(self):
            return "accuracy"
        return "R^2" if getattr(self, "_agreement", None) is None else "agreement of the loss"

    @property
    def _error(self) -> str:
        """What the choice is by, in words."""
        if self.scoring is not None or self._measure not in ("accuracy", "R^2"):
            return "the score"
        return "error of margins" if is_classifier(self) else "squared error"

    @property
    def _taken(self) -> list[tuple[float, Candidate, float]]:
        """What the model is made of: shares, candidates and their costs."""
        table = self.cv_results_
        rows = zip(
            self.stack_weights_, table["candidate"], table["kernels"], table["regularizer"], table["C"],
            strict=False,
        )  # fmt: skip
        return [(float(share), Candidate(*parts), float(C)) for share, *parts, C in rows if share > 0]

    @property
    def candidates_(self) -> list[dict[str, Any]]:
        """Candidates from the simplest to the stack: name, cost, score, standard error, share, seconds."""
        check_is_fitted(self, "best_estimator_")
        keys = ("candidate", "C", "mean_test_score", "standard_error", "stack_share", "seconds")
        rows = zip(*(self.cv_results_[key] for key in keys), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def predict(self, X: Any) -> Any:
        """Predictions of the model."""
        return self._answer("predict", X)

    @property
    def n_iter_(self) -> Any:
        """Machines trained for what was fitted in the end."""
        return self.best_estimator_.n_iter_

    @property
    def dual_gap_(self) -> Any:
        """Relative duality gaps of what was fitted in the end."""
        return self.best_estimator_.dual_gap_


def _often(tests: Sequence[IntArray]) -> float:
    """How many times samples are tested."""
    rows = np.concatenate(tests)
    return len(rows) / len(np.unique(rows))


def _spec(template: BaseMKL, candidate: Candidate, C: float) -> Spec:
    """Settings of a candidate."""
    return Spec.of(clone(template).set_params(regularizer=candidate.regularizer, C=C))


class MKLAutoClassifier(LabelsMixin, BaseMKLAuto):
    """Classifier that needs no choice: methods compete, and the best together are the model.

    On one set of Gram matrices and folds, candidates are tried at several costs: the uniform sum of all
    kernels, of each view, and of linear, wide and narrow kernels; learned weights with the lp norms of p = 2,
    4/3, 1 and the elastic net; greedy selection. Where some views have nothing to do with the classes, more
    are of the related views alone. The model is a sum of the candidates, weighted by how plausible each is as
    the best one and by how well they predict held-out samples together. One candidate alone, the simplest
    within one standard error of the best, is taken where it predicts them no worse.

    With held-out values F_j of size s_j, and e_j = exp(-z_j^2 / 2) / sum_k exp(-z_k^2 / 2) where candidate j
    is z_j standard errors of the difference behind the best,

        a = argmin over a >= 0 of  mean_i max(0, 1 - t_i sum_j a_j F_ij)^2 + (100 / n) sum_j (s_j a_j - e_j)^2

    and w = a / sum_j a_j. Stack and candidate alone are compared on each fold by what the other folds say. A
    stack is again one model, since all of its parts are expansions in the same kernels (van der Laan, Polley
    & Hubbard 2007 on stacking; Breiman et al. 1984, section 3.4.3, on standard errors):

        f = sum_m K_m (sum_j w_j d_jm alpha_j) + b

    Parameters
    ----------
    kernels, loss, normalize, missing, class_weight, tol, max_iter, fit_intercept, device
        As in `MKLClassifier`.
    multiclass : {"ovr", "shared"}, default="ovr"
        As in `MKLClassifier`.
    Cs : int or sequence of float, default=6
        The costs that every candidate is tried with. A number n means n values from 0.01 to 3 and, where the
        best of a candidate lies at an end, more beyond it, as in `MKLClassifierCV`.
    cv, scoring
        As in `MKLClassifierCV`. Fewer than 150 samples are divided into folds two or three times.
    simplicity : float, default=1.0
        Where one candidate is taken alone, the standard errors of the held-out loss by which the simplest
        may be behind the best.
    time_budget : float, optional
        Seconds that the competition may take: candidates that would exceed it are left out, the simplest come
        first.
    n_jobs : int, optional
    verbose : int, default=0
        Whether to tell what is done.

    Attributes
    ----------
    candidates_ : list of dict
        From the simplest candidate to the stack: name, cost, mean score, its standard error, share of the
        stack, and seconds.
    stack_weights_ : ndarray of shape (n_candidates,)
        Shares of the candidates in the model: 1 for one of them where it was taken alone.
    reason_ : str
        Why this model, in two sentences; and how many candidates there was no time for, if any.
    best_estimator_ : MKLClassifier
        The model. Its parameters are those of the candidate with the largest share.
    best_score_, best_index_, cv_results_
        Mean score and number of the candidate taken; all scores.
    model_, weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, classes_, patterns_, \
observed_, n_features_in_
        Those of `best_estimator_`; the weights of a stack are sum_j w_j d_jm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kw.MKLAutoClassifier(RBF(), Cs=3, cv=3).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.candidates_[0]["candidate"]
    'uniform sum'
    """

    _searched, _costs = MKLClassifier, (0.01, 3.0)

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: Any = "hinge",
        Cs: int | Sequence[float] = 6,
        cv: Any = None,
        scoring: Any = None,
        simplicity: float = 1.0,
        normalize: str | None = "variance",
        missing: str = "error",
        multiclass: str = "ovr",
        class_weight: dict[Any, float] | str | None = None,
        time_budget: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.simplicity = simplicity
        self.normalize = normalize
        self.missing = missing
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.time_budget = time_budget
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the model."""
        result: FloatArray = self._answer("decision_function", X)
        return result

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the model."""
        result: FloatArray = self._answer("predict_proba", X)
        return result


class MKLAutoRegressor(LossScore, BaseMKLAuto):
    """Regressor that needs no choice: methods compete, and the best together are the model.

    As in `MKLAutoClassifier`, with the squared error of held-out values in units of the variance, s_j = 1 and
    shares that sum to 1. The linear kernels of every view are candidates, too, and the better third of all
    candidates is also tried at costs between those of the grid. One candidate alone is taken where it
    predicts held-out samples clearly better than the sum, by two standard errors.

    Parameters
    ----------
    kernels, loss, normalize, missing, multioutput, tol, max_iter, fit_intercept, device
        As in `MKLRegressor`.
    Cs : int or sequence of float, default=4
        As in `MKLAutoClassifier`, from 0.03 to 30 in the unit that the targets ask for (`MKLRegressorCV`).
    cv, scoring, simplicity, time_budget, n_jobs, verbose
        As in `MKLAutoClassifier`; R^2 by default.

    Attributes
    ----------
    candidates_, stack_weights_, reason_, best_estimator_, best_score_, best_index_, cv_results_, model_, \
weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, patterns_, observed_, n_features_in_
        As in `MKLAutoClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = kw.MKLAutoRegressor([Linear(), RBF()], Cs=3, cv=3).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.4)
    True
    """

    _searched, _costs = MKLRegressor, (0.03, 30.0)

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: Any = "squared",
        Cs: int | Sequence[float] = 4,
        cv: Any = None,
        scoring: Any = None,
        simplicity: float = 1.0,
        normalize: str | None = "variance",
        missing: str = "error",
        multioutput: str = "shared",
        time_budget: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.simplicity = simplicity
        self.normalize = normalize
        self.missing = missing
        self.multioutput = multioutput
        self.time_budget = time_budget
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
