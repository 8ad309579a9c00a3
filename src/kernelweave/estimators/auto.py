"""No choice to make: candidates compete on held-out samples, and one of them or their stack is the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import each_once
from ..gram import Dictionary
from ..kernels.families import Auto
from ..kernels.views import spans_views
from ..regularizers import LpNorm
from ._base import Spec, all_or_nothing, one_or_all
from ._candidates import Candidate, Contest, candidates, families_of, multipliers, simplest
from ._input import check_choice, check_positive, check_settings
from ._labels import LabelsMixin, LossScore, fit_link, link_of
from ._mkl import BaseMKL, Model, Setup
from ._rules import Look
from ._search import BaseSearch, Folds, Grid, Trial, rows_of
from .classifier import MKLClassifier
from .cross_validation import ChainSearch, cost_unit, matrices_of
from .regressor import MKLRegressor

#: relative gap of fits that compete; parts of a stack that are named
LOOSE, MOST_NAMED = 1e-2, 3


class Competition(NamedTuple):
    """Candidates at their best costs, with held-out values and scores; the last row of scores is the stack's.

    Attributes
    ----------
    candidates : list of Candidate
    trials : list of Trial
        The best of each.
    rows : list of list of Trial
        All of each, and the grid they began with.
    grid : Grid
    scores : ndarray of shape (n_candidates + 1, n_folds)
    losses : ndarray of shape (n_candidates + 1, n_tested)
        Of single samples, or of folds for a scoring of the user's own.
    folds : ndarray of int of shape (n_tested,)
        Theirs.
    clusters : ndarray of shape (n_tested,) or None
        Which of them belong together.
    shares : ndarray of shape (n_candidates,)
        Of the stack.
    seconds : ndarray of shape (n_candidates,)
    n_left_out : int
        Candidates that there was no time for.
    """

    candidates: list[Candidate]
    trials: list[Trial]
    rows: list[list[Trial]]
    grid: Grid
    scores: FloatArray
    losses: FloatArray
    folds: IntArray
    clusters: Any
    shares: FloatArray
    seconds: FloatArray
    n_left_out: int

    @property
    def costs(self) -> list[float]:
        """Of each candidate."""
        return [trial.value for trial in self.trials]


class BaseMKLAuto(BaseSearch):
    """What the estimators share; see them."""

    #: the first and the last cost to begin with, in the unit of the targets
    _costs: ClassVar[tuple[float, float]] = (0.03, 30.0)

    #: whether there are candidates that vary others: other norms, families of kernels, greedy selection
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
            chosen = self._choice(found)
            alone = chosen < len(found.candidates)
            shares = np.eye(len(found.candidates))[chosen] if alone else found.shares
            self._fit_chosen(template, setup, found, shares)
        largest = int(np.argmax(shares))
        if not found.grid.open:
            self._warn_of_end(found.rows[largest], found.trials[largest], found.grid)
        self.cv_results_ = {
            "candidate": [*(one.name for one in found.candidates), "stack"],
            "kernels": [one.kernels for one in found.candidates],
            "regularizer": [one.regularizer for one in found.candidates],
            "C": [*found.costs, np.nan],
            "mean_test_score": found.scores.mean(axis=1),
            "standard_error": found.scores.std(axis=1, ddof=1) / np.sqrt(found.scores.shape[1]),
            "split_test_scores": found.scores,
            "stack_share": np.append(found.shares, np.nan),
            "seconds": np.append(found.seconds, found.seconds.sum()),
        }
        self.best_index_, self.best_score_ = chosen, float(found.scores[chosen].mean())
        self.stack_weights_ = shares
        self.reason_ = self._reason(chosen, found.n_left_out)
        return self._with_data_of_best()

    def _template(self) -> Any:
        template = super()._template()
        if self.missing == "margin":
            template.set_params(regularizer=LpNorm(1.0))
        if isinstance(self.kernels, str) and self.kernels == "auto" and self.missing == "error":
            template.set_params(kernels=Auto(together=True))
        return template

    # -- the competition ------------------------------------------------------------------------

    def _compete(self, template: Any, setup: Setup, folds: Folds, targets: Any, clusters: Any) -> Competition:
        matrices = matrices_of(template, setup)
        parts = (matrices.values, matrices.names, self.normalize, self.missing, matrices.gaps)
        search, entrants = ChainSearch(setup, [], *parts), self._candidates(matrices, setup)
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
        del self._out_of_time
        return self._judged(contest, grid, points, scored, setup, folds, clusters)

    def _judged(
        self,
        contest: Contest,
        grid: Grid,
        points: list[Trial],
        scored: Any,
        setup: Setup,
        folds: Folds,
        clusters: Any,
    ) -> Competition:
        """Every candidate at its best cost, and their stack."""
        rows = dict(sorted(rows_of(points).items()))
        trials = [max(row, key=attrgetter("mean")) for row in rows.values()]
        best = [contest.values[one.line, one.value] for one in trials]
        y = np.hstack([one.problem.y for one in setup.problems])
        weight = setup.weight[folds.used]
        tests = [test for _, test in folds.splits]
        crossed = partial(self._crossed, y=y, weight=weight, tests=tests)
        stack = crossed(best)
        scores = np.array(
            [*(one.scores for one in trials), [scored(k, [row])[0] for k, row in enumerate(stack)]]
        )
        together = np.concatenate(tests)
        shares = self._multipliers(best, y, weight, tests)
        own, seconds = [contest.candidates[line] for line in rows], contest.seconds[list(rows)]
        losses, own_fold, tied = -scores, np.arange(len(tests)), None
        if self.scoring is None and self._measure in ("accuracy", "R^2"):
            alone = stack if len(best) == 1 else None
            values = [*(alone or crossed([one]) for one in best), stack]
            losses = np.array([self._losses(np.vstack(one), y[together], weight[together]) for one in values])
            own_fold = np.repeat(own_fold, [len(test) for test in tests])
            tied = clusters[together]
        return Competition(
            own,
            trials,
            list(rows.values()),
            grid,
            scores,
            losses,
            own_fold,
            tied,
            shares / shares.sum(),
            seconds,
            len(contest.late),
        )

    def _losses(self, values: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Losses of samples that a stack makes small: squared distances, from the margin for classes."""
        left = np.maximum(1.0 - y * values, 0.0) if is_classifier(self) else y - values
        return np.asarray(weight * (left**2).mean(axis=1))

    def _multipliers(
        self, values: list[list[FloatArray]], y: FloatArray, weight: FloatArray, tests: list[Any]
    ) -> FloatArray:
        """Of the stack, from the values of every candidate on the test samples of every fold."""
        rows, squared = np.concatenate(tests), not is_classifier(self)
        return multipliers([np.vstack(one) for one in values], y[rows], squared, weight[rows])

    def _choice(self, found: Competition) -> int:
        """The candidate to take, or as the last one the stack."""
        return simplest(found.losses, found.folds, found.clusters, self.simplicity)

    def _beyond(
        self, points: list[Trial], ends: dict[int, tuple[float, float]], grid: Grid, every: int = 0
    ) -> dict[int, FloatArray]:
        """The values to try next, of each candidate at the end where its own best lies."""
        more: dict[int, FloatArray] = {}
        for line, row in rows_of(points).items() if not self._out_of_time() else ():
            own = {line: ends[line]}
            more |= super()._beyond(row, own, grid, every)
        return more

    def _candidates(self, matrices: Any, setup: Setup) -> list[Candidate]:
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
        whole, loss = isinstance(matrices.values, list), setup.spec.loss
        families = families_of(matrices.kernels, matrices.values) if whole and self._variants else {}
        evidence = bool(getattr(loss, "quadratic", False)) and not is_classifier(self)
        together = np.flatnonzero(across) if across.any() else None
        regression = not is_classifier(self)
        options = (whole, regression, evidence, self._variants)
        return candidates(views, families, len(matrices.names), together, *options)

    def _crossed(
        self, best: list[list[FloatArray]], y: FloatArray, weight: FloatArray, tests: list[Any]
    ) -> list[FloatArray]:
        """Values of the stack on every fold, with multipliers from the others."""
        found = []
        for k in range(len(tests)):
            others = [o for o in range(len(tests)) if o != k]
            values = [[one[o] for o in others] for one in best]
            by = self._multipliers(values, y, weight, [tests[o] for o in others])
            found.append(np.asarray(sum(a * one[k] for a, one in zip(by, best, strict=True))))
        return found

    def _fold_scores(
        self, scorer: Any, template: Any, folds: Folds, targets: Any, k: int, points: list[FloatArray]
    ) -> list[float]:
        test = folds.splits[k][1]
        return self._scores(scorer, template, points, targets[test], folds.score_options(test))

    # -- the model ------------------------------------------------------------------------------

    def _fit_chosen(self, template: Any, setup: Setup, found: Competition, shares: FloatArray) -> None:
        """Fit a candidate, or those of the stack, on all samples."""
        places, largest = np.flatnonzero(shares), int(np.argmax(shares))
        dictionary, fits, given = template._dictionary(setup), [], float(setup.spec.C or 1.0)
        look = lru_cache(1)(partial(Look.at, dictionary, setup))
        for j in places:
            found.candidates[j] = found.candidates[j].made(look)
        template.set_params(regularizer=found.candidates[largest].regularizer, C=found.costs[largest])
        for j in places:
            candidate, C = found.candidates[j], found.costs[j]
            spec = _spec(template, candidate, C)
            problems = [replace(one, problem=one.problem.at_cost(C / given)) for one in setup.problems]
            own = setup._replace(spec=spec, problems=problems)
            margins = is_classifier(self) and not hasattr(spec.loss, "probability")
            fits.append(template._models(own, lambda _, one=candidate: one.on(dictionary), margins))
        if len(fits) == 1:
            template._store(*fits[0], setup.weight)
        else:
            _store_stack(template, dictionary, fits, shares[places], setup.weight)
        self._complete(template, setup, [models for _, models in fits], shares[places])
        self.best_estimator_ = template

    def _complete(self, template: Any, setup: Setup, fits: list[list[Model]], shares: FloatArray) -> None:
        """Set what the estimator needs beside its functions: of classes, the link to probabilities."""
        if is_classifier(self):
            parts = zip(*fits, strict=True)
            margins = [partial(_stack_margins, shares, models) for models in parts]
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
            why = f"{self._because}; of the {count} candidates, {best_alone}."
        elif count == 1:
            why = "There was no other candidate."
        elif best == chosen:
            why = f"None of the {count - 1} other candidates scored more, nor did their stack."
            why = "Neither the other candidate nor their stack scored more." if count == 2 else why
        else:
            title = "the stack of all candidates" if best == count else repr(names[best])
            why = (
                f"The best score, {mean[best]:.3f}, was that of {title}; the difference in {self._error} is "
                "too small to tell, so the simpler model was taken."
            )
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
    def _because(self) -> str:
        """Why several models are taken together."""
        return f"In {self._error} that is better than the best of them alone"

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


def _spec(template: BaseMKL, candidate: Candidate, C: float) -> Spec:
    """Settings of a candidate."""
    return Spec.of(clone(template).set_params(regularizer=candidate.regularizer, C=C))


def _store_stack(
    estimator: BaseMKL,
    dictionary: Dictionary,
    fits: list[tuple[Dictionary, list[Model]]],
    shares: FloatArray,
    weight: FloatArray,
) -> None:
    """Set the fitted attributes of the functions f = sum_j w_j f_j.

    Their components and weights are f_m = K_m sum_j w_j d_jm alpha_j and d_m = sum_j w_j d_jm.
    """
    states = [[model.solution.state for model in models] for _, models in fits]
    weights = np.array(
        [
            own.all_weights(np.array([state.weights for state in line]))
            for (own, _), line in zip(fits, states, strict=True)
        ]
    )  # candidate, model, kernel
    alpha = np.hstack([model.alpha for _, models in fits for model in models])
    by_problem = list(zip(*(models for _, models in fits), strict=True))
    intercepts = np.concatenate([state.certificate.intercept for line in states for state in line])
    columns = [model.alpha.shape[1] for _, models in fits for model in models]
    every = np.repeat(weights.reshape(-1, weights.shape[2]), columns, axis=0)
    estimator.model_ = dictionary.predictor(every, alpha, intercepts)
    estimator.model_.n_stages, estimator.model_.shares = len(fits), shares
    results = [model.solution for _, models in fits for model in models]
    estimator._store_results(dictionary.names, np.tensordot(shares, weights, 1), alpha, weight, results)
    estimator.gram_, estimator.gram_reason_ = dictionary.gram.name, dictionary.gram_reason
    estimator.norms_ = one_or_all(
        np.array(
            [_stack_norms(dictionary, shares, weights[:, k], models) for k, models in enumerate(by_problem)]
        )
    )
    estimator.support_ = np.flatnonzero(alpha.any(axis=1))
    estimator.intercept_ = one_or_all(estimator.model_.intercept + estimator._constants())
    estimator.dual_gap_ = one_or_all(np.array([result.state.certificate.gap for result in results]))
    estimator.objective_ = one_or_all(np.array([result.state.certificate.primal for result in results]))


def _stack_margins(shares: FloatArray, models: Sequence[Model]) -> FloatArray:
    """Leave-one-out predictions of the sum of models."""
    parts = [(share, model.margins) for share, model in zip(shares, models, strict=True)]
    return np.asarray(sum(share * margins() for share, margins in parts if margins is not None))


def _stack_norms(
    dictionary: Dictionary, shares: FloatArray, weights: FloatArray, models: Sequence[Model]
) -> FloatArray:
    """Norms of the components f_m of a stack, from the weights (J, M) of its J models."""
    norms = np.zeros(weights.shape[1])
    for place, m in enumerate(dictionary.live):
        beta = sum(w * d * model.alpha for w, d, model in zip(shares, weights[:, m], models, strict=True))
        norms[m] = np.sqrt(max(float(dictionary.gram.quad(np.asarray(beta), np.array([place]))[0]), 0.0))
    return norms


class MKLAutoClassifier(LabelsMixin, BaseMKLAuto):
    """Classifier that needs no choice: methods compete, and the best together are the model.

    On one set of Gram matrices and folds, candidates are tried at several costs: the uniform sum of all
    kernels, of each view, and of linear, wide and narrow kernels; learned weights with the lp norms of p = 2,
    4/3, 1 and the elastic net; greedy selection. Their held-out values F_j are stacked,

        a = argmin over a >= 0 of  mean_i max(0, 1 - t_i sum_j a_j F_ij)^2,   w = a / sum_j a_j,

    held near the first candidate by the weight of three samples. The stack, with multipliers for a fold from
    the other folds, is taken where its held-out loss is less than that of the best candidate, which for a
    fold is chosen on the other folds too. Else the simplest candidate within one standard error of the best
    is taken alone. A stack is again one model, since all of its parts are expansions in the same kernels (van
    der Laan, Polley & Hubbard 2007 on stacking; Breiman et al. 1984, section 3.4.3, on standard errors):

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
        As in `MKLClassifierCV`.
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
    """Regressor that needs no choice: methods compete on held-out samples, the simplest good one is taken.

    As in `MKLAutoClassifier`; the stack has the least squared error of held-out values, with shares that sum
    to 1.

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
