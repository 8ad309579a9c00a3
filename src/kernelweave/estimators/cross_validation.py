"""Model selection over regulariser and cost that computes each Gram matrix once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .._typing import BoolArray, FloatArray, IntArray
from .._warnings import in_turn, on_part
from ..gram import Dictionary, FeatureSource, FoldSource, GramStore, KernelSource, Predictor, StackFoldSource
from ..gram._memory import Memory
from ..gram.dictionary import PSD_FLOPS, check_kernel_matrix, check_parts
from ..gram.missing import with_gaps
from ..gram.sources import Gaps
from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers.run import Result
from ._base import Spec, follows_input
from ._chain import Chain, Guide, Node, without_matrix
from ._conformal import (
    MOST_COEFFICIENTS,
    Calibration,
    FoldFunctions,
    check_coverage,
    intervals,
    joint_predictor,
    label_sets,
    strangeness,
    without_each,
)
from ._labels import LabelsMixin, LossScore
from ._mkl import BaseMKL, Setup, SubProblem, check_margin_rule, left_out
from ._search import Attempt, BaseSearch, Folds, Grid, Metadata, Trial, Tried
from .classifier import MKLClassifier
from .path import specs_along
from .regressor import MKLRegressor

#: the rule of `cv` that scores each sample by the model without it
LEAVE_ONE_OUT = "leave-one-out"


class Fold(NamedTuple):
    """Held-out decision values (n_test, n_functions) of every point, its functions, what others begin with.

    Guides are for other folds, and nodes for points beyond the ends of the chains.
    """

    values: list[FloatArray]
    functions: list[FoldFunctions]
    guides: list[list[list[Guide]]]  # chain, problem, point
    nodes: list[list[list[Node]]]  # chain, problem, end


@dataclass(frozen=True)
class ChainSearch:
    """Everything a fold needs: the problems, the grid, and the matrices of all samples.

    Or, where a device computes them, the kernels and the samples: never are there matrices on the host.
    """

    setup: Setup
    chains: list[list[Spec]]
    matrices: list[FloatArray] | GramStore | FeatureSource
    names: list[str]
    normalize: str | None
    missing: str = "error"
    gaps: Gaps | None = None
    memory: Memory = field(default_factory=Memory, repr=False)  # of the matrices of one fold after another

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every fold
        held = sum(K.nbytes for K in self.matrices) if isinstance(self.matrices, list) else 0
        return object.__sizeof__(self) + held

    def fold(self, train: IntArray, test: IntArray, guides: Any, nodes: Any = None) -> Fold:
        """Solve the grid on `train` and evaluate it on `test`; `nodes` are those of an earlier grid."""
        dictionary, parts = self.dictionary(train), [part.part(train) for part in self.setup.problems]
        solved, ends = self._solved(dictionary, parts, guides, nodes)
        own = [[[Guide.of(found, dictionary) for found in line] for line in lines] for lines in solved]
        points = [point for lines in solved for point in zip(*lines, strict=True)]
        values, functions = held_out(dictionary, parts, points, self.samples(test), train)
        return Fold(values, functions, own, ends)

    def left_out(self, nodes: Any = None) -> Fold:
        """Solve the grid on all samples, and evaluate it on each by the model without that sample.

        A model that does not see a sample, as of two other classes, is the model without it.
        """
        C: Any = self.setup.spec.C
        parts, every = self.setup.problems, np.arange(np.count_nonzero(self.setup.weight))
        dictionary, values, functions = self.dictionary(every), [], []
        solved, ends = self._solved(dictionary, parts, None, nodes)
        for lines, chain in zip(solved, self.chains, strict=True):
            for point, spec in zip(zip(*lines, strict=True), chain, strict=True):
                (value,), own = held_out(dictionary, parts, [point], self.samples(every), every)
                columns = np.split(value, np.cumsum([part.problem.shape[1] for part in parts])[:-1], axis=1)
                for found, part, out in zip(point, parts, columns, strict=True):
                    rows = every if part.rows is None else part.rows
                    problem = part.problem.at_cost(spec.C / C)
                    out[rows] = left_out(found, problem, part.gram(dictionary))
                values.append(value)
                functions += own
        return Fold(values, functions, [], ends)

    def without_each(self, fitted: FoldFunctions, cost: float) -> list[FoldFunctions]:
        """The functions without each sample, of those fitted on all of them by least squares at a cost."""
        C: Any = self.setup.spec.C
        n, dictionary, first = len(fitted.rows), self.dictionary(fitted.rows), 0
        alphas = np.repeat(fitted.alpha[:, None], n, axis=1)  # sample, sample left out, function
        intercepts = np.tile(fitted.intercept, (n, 1))
        for part in self.setup.problems:
            rows = np.arange(n) if part.rows is None else part.rows
            own = np.arange(first, first := first + part.problem.shape[1])
            problem, weights = part.problem.at_cost(cost / C), fitted.weights[own[0], dictionary.live]
            parts = (weights, fitted.alpha[np.ix_(rows, own)], fitted.intercept[own])
            found, b = without_each(problem, part.gram(dictionary), *parts)
            alphas[np.ix_(rows, rows, own)], intercepts[np.ix_(rows, own)] = found, b
        rest = fitted.rules, fitted.weights
        return [FoldFunctions(fitted.rows, *rest, alphas[:, i], intercepts[i]) for i in range(n)]

    def _solved(
        self, dictionary: Dictionary, parts: list[SubProblem], guides: Any, nodes: Any
    ) -> tuple[list[list[list[Result]]], list[list[list[Node]]]]:
        """Solutions of every chain, problem and point, and the nodes at the ends of every chain."""
        solved: list[list[list[Result]]] = []
        ends: list[list[list[Node]]] = []
        for c, points in enumerate(self.chains):
            chains = [
                Chain(dictionary, part, self.setup.spec.C, guides and guides[c][k])
                for k, part in enumerate(parts)
            ]
            for k, chain in enumerate(chains):
                chain.nodes += nodes[c][k] if nodes else []
            solved.append([chain.solve(points) for chain in chains])
            ends.append([outermost(chain.nodes) for chain in chains])
        return solved, ends

    @on_part()
    def dictionary(self, train: IntArray) -> Dictionary:
        """The kernels on the training rows; of a store, as much in memory as there is room for."""
        weight = self.setup.weight[self.setup.weight > 0][train]
        options: dict[str, Any] = {"check": False, "device": self.setup.spec.device}
        if isinstance(self.matrices, GramStore):
            stored = StackFoldSource(self.matrices, self.names, train)
            return Dictionary(stored, self.normalize, weight, gram="auto", **options)
        source: KernelSource
        if isinstance(self.matrices, FeatureSource):
            source, options["gram"] = self.matrices.part(train), "auto"
        else:
            source = FoldSource(self.matrices, self.names, train, self.gaps, self.memory)
        make = partial(Dictionary, sample_weight=weight, **options)
        found: Dictionary = with_gaps(make, source, self.missing, self.normalize, weight)
        return found

    def samples(self, rows: IntArray) -> Any:
        """Some samples as the predictors of a fold are given them: where there are matrices, their rows."""
        return _safe_indexing(self.matrices.X, rows) if isinstance(self.matrices, FeatureSource) else rows


def outermost(nodes: list[Node]) -> list[Node]:
    """Two at each end of a chain: what is beyond begins there, and changes as it did between them."""
    order = sorted(nodes, key=lambda node: node.t)
    return [without_matrix(node) for node in (order if len(order) < 5 else [*order[:2], *order[-2:]])]


def held_out(
    dictionary: Dictionary,
    parts: list[SubProblem],
    points: list[tuple[Result, ...]],
    test: Any,
    train: IntArray | None = None,
) -> tuple[list[FloatArray], list[FoldFunctions]]:
    """Decision values on test samples, one array (n_test, n_functions) per point, and the functions."""
    states = [found.state for point in points for found in point]
    pairs = zip(states, parts * len(points), strict=True)
    alphas = [part.spread(state.alpha, dictionary.gram.n_samples) for state, part in pairs]
    weights = dictionary.all_weights(np.array([state.weights for state in states]))
    weights = np.repeat(weights, [alpha.shape[1] for alpha in alphas], axis=0)
    intercept = np.concatenate([state.certificate.intercept for state in states])
    alpha = np.hstack(alphas)
    values = dictionary.predictor(weights, alpha, intercept)(test)
    each = np.split(np.arange(len(intercept)), len(points))
    rows, rules = np.arange(len(alpha)) if train is None else train, dictionary.normalizations
    functions = [FoldFunctions(rows, rules, weights[own], alpha[:, own], intercept[own]) for own in each]
    return np.split(values, len(points), axis=1), functions


class Matrices(NamedTuple):
    """Checked, not normalised matrices of the kernels on the samples of positive weight, names, and gaps.

    Those of a store stay there; for a device the kernels themselves. And the kernels, where they are known,
    with the source of their values.
    """

    values: list[FloatArray] | GramStore | FeatureSource
    names: list[str]
    gaps: Gaps | None
    kernels: Sequence[Any]
    source: KernelSource


def matrices_of(template: BaseMKL, setup: Setup) -> Matrices:
    """The matrices that all folds are parts of."""
    used, source = np.flatnonzero(setup.weight), template._source(setup.table, setup.weight)
    if isinstance(setup.table, GramStore):
        everything = len(used) == len(setup.table)
        stored = setup.table if everything else setup.table[used, used]
        return Matrices(stored, setup.table.names, None, [None] * len(setup.table.names), source)
    if setup.spec.device is not None and isinstance(source, FeatureSource):
        check_parts(source, source.blocks())
        return Matrices(source, source.names, source.gaps, source.kernels, source)
    matrices = dict(source.train_all())
    for m, name in enumerate(source.names):
        check_kernel_matrix(matrices[m], f"kernel {name!r}", PSD_FLOPS / len(source.names))
    values, kernels = [matrices[m] for m in range(len(source.names))], getattr(source, "kernels", None)
    return Matrices(values, source.names, source.gaps, kernels or [None] * len(values), source)


class Learned(NamedTuple):
    """What every fold has learned at a point, and its values on the samples held out."""

    search: ChainSearch
    source: KernelSource
    functions: Sequence[FoldFunctions]
    values: Sequence[FloatArray]


def cost_unit(spec: Spec, y: Any, weight: FloatArray) -> float:
    """What C is measured in: of targets a y, f is a times what it was if C is by that much larger.

    With V(a y, a f) = a^v V(y, f) and Omega(a n) = a^w Omega(n), the degrees of loss and regulariser,

        C sum_i V(a y_i, a f_i) + Omega(a n) = a^w (C a^(v - w) sum_i V(y_i, f_i) + Omega(n)),

    so C is measured in s^(w - v), s the standard deviation of the targets: 1 for the squared loss and block
    norms, s for the eps-insensitive loss and block norms, 1 / s for the squared loss and a sum of norms.
    """
    if spec.loss.task != "regression":
        return 1.0
    columns = np.asarray(y, dtype=np.float64).reshape(len(weight), -1)
    apart = columns - np.average(columns, axis=0, weights=weight)
    scale = float(np.sqrt(np.average((apart**2).mean(axis=1), weights=weight)))
    return scale ** ((1.0 if spec.regularizer.homogeneous else 2.0) - spec.loss.degree) if scale > 0 else 1.0


class BaseMKLCV(BaseSearch):
    """What the two cross-validated estimators share; see them."""

    _named_cv = (LEAVE_ONE_OUT,)

    def _grid(self) -> tuple[BaseMKL, Grid]:
        """For each regulariser a line of costs."""
        listed = isinstance(self.regularizers, list | tuple)
        regularizers = list(self.regularizers) if listed else [self.regularizers]
        grid = Grid.of("C", "Cs", self.Cs, lambda n: np.geomspace(1e-2, 1e2, n))
        if len(regularizers) == 0:
            raise ValueError("regularizers=[] is empty: give at least one regularizer, for example 'lp'.")
        copies = [clone(regularizer, safe=False) for regularizer in regularizers]
        template, first = self._template(), float(grid.values[0])
        for own in copies:
            if self.missing == "margin":
                check_margin_rule(own, "regularizers")
            start = clone(template).set_params(regularizer=own, C=first)
            grid.lines.append((own, specs_along(start, "C", grid.values.tolist())[0]))
        return clone(template).set_params(regularizer=copies[0], C=first), grid

    def _lines(self, grid: Grid, y: Any, weight: FloatArray) -> dict[int, FloatArray]:
        """The same costs for every regulariser; those of an open grid in the unit of the targets."""
        units = [cost_unit(spec, y, weight) if grid.open else 1.0 for _, spec in grid.lines]
        return {line: grid.values * unit for line, unit in enumerate(units)}

    @contextmanager
    def _trying(self, template: BaseMKL, grid: Grid, setup: Setup, folds: Folds) -> Iterator[Attempt]:
        if self._leaves_one_out and not setup.spec.loss.separable:
            raise ValueError(
                f"cv={self.cv!r}: {type(setup.spec.loss).__name__} couples samples, and no formula leaves "
                "one of them out: pass a number of folds, such as cv=5."
            )
        matrices, names, gaps, _, source = matrices_of(template, setup)
        search = ChainSearch(setup, [], matrices, names, self.normalize, self.missing, gaps)
        ends: dict[int, list[list[list[Node]]]] = {}  # of each line the nodes of every fold and problem

        def attempt(lines: dict[int, FloatArray]) -> Tried:
            own = {line: grid.lines[line] for line in lines}
            chains = [[replace(own[line][1], C=float(C)) for C in lines[line]] for line in lines]
            begun = [[ends[line][k] for line in lines] for k in range(len(folds.splits))] if ends else None
            solved = self._solved_folds(replace(search, chains=chains), folds, begun)
            for c, line in enumerate(lines):
                ends[line] = [fold.nodes[c] for fold in solved]
            learned = (
                Learned(search, source, parts, values)
                for parts, values in zip(
                    zip(*(fold.functions for fold in solved), strict=True),
                    zip(*(fold.values for fold in solved), strict=True),
                    strict=True,
                )
            )
            tried = [
                (line, float(C), {"regularizer": own[line][0], "C": float(C)}, next(learned))
                for line, values in lines.items()
                for C in values
            ]
            return tried, [fold.values for fold in solved]

        yield attempt

    def _solved_folds(self, search: ChainSearch, folds: Folds, nodes: Any) -> list[Fold]:
        """Every fold, from the nodes of an earlier grid on the same chains."""
        if self._leaves_one_out:
            return [search.left_out(nodes and nodes[0])]
        solved, guides = [], None
        if nodes is None:  # the first fold guides the others: their solutions are near its own
            solved.append(search.fold(*folds.splits[0], None))
            guides, nodes = solved[0].guides, [None] * len(folds.splits)
        rest = list(zip(folds.splits, nodes, strict=True))[len(solved) :]
        tasks = (delayed(ChainSearch.fold)(search, *split, guides, own) for split, own in rest)
        for fold in in_turn(self.n_jobs, tasks):
            solved.append(fold)
            self._say(f"fold {len(solved)} of {len(folds.splits)}")
        return solved

    # -- conformal prediction -------------------------------------------------------------------

    def _keep(self, point: Trial, template: BaseMKL, setup: Setup, folds: Folds, targets: Any) -> None:
        """Set the functions of the folds at the best point, and how far samples held out were from them."""
        learned, tests = point.learned, [test for _, test in folds.splits]
        self.fold_model_, functions = None, learned.functions
        reason = self._no_measure(learned, setup)
        if reason:
            self.calibration_: dict[str, Any] = {"reason": reason}
            return
        if self._leaves_one_out:
            functions = learned.search.without_each(functions[0], point.params["C"])
            tests = list(np.arange(len(targets))[:, None])
        rows, values, weight = np.concatenate(tests), np.vstack(learned.values), setup.weight[folds.used]
        if is_classifier(self):
            scores, labels = strangeness(template._class_values(values)), setup.labels
            known = Calibration.of(tests, scores[np.arange(len(rows)), labels[rows]], weight, labels)
        else:
            known = Calibration.of(tests, np.abs(targets.reshape(len(targets), -1)[rows] - values), weight)
        device = None if setup.spec.device is None else str(setup.spec.device)
        self.fold_model_ = joint_predictor(learned.source, functions, device)
        self.calibration_ = {name: part for name, part in known._asdict().items() if part is not None}

    def _no_measure(self, learned: Learned, setup: Setup) -> str:
        """Why held-out samples say nothing of new ones, and what to do; empty where they do."""
        loss, alpha = setup.spec.loss, learned.functions[0].alpha
        if not loss.separable or not (is_classifier(self) or loss.task == "regression"):
            return f"{type(loss).__name__} has no targets that a prediction is near to: choose another loss"
        if is_classifier(self) and setup.labels.ndim == 2:
            return "samples have several labels each: fit a classifier for every label"
        if learned.search.gaps is not None and self.missing != "error":
            return f"missing={self.missing!r} completes views again in every fold: pass missing='error'"
        if self._leaves_one_out and not getattr(loss, "quadratic", False):
            return f"cv={self.cv!r} has models without a sample for loss='squared' alone: pass cv=5 or more"
        if self._leaves_one_out and alpha.size * len(alpha) > MOST_COEFFICIENTS:
            return f"cv={self.cv!r} has too many models without a sample: pass cv=5 or more"
        return ""

    def _fits_together(self) -> bool:
        model, known = getattr(self, "fold_model_", None), getattr(self, "calibration_", {})
        fits = super()._fits_together() and isinstance(known, dict)
        if not fits or model is None:
            return fits and (model is not None or set(known) <= {"reason"})
        count, names = len(self.best_estimator_.model_.intercept), set(Calibration._fields)
        if not (isinstance(model, Predictor) and set(known) | {"label"} == names):
            return False
        folds, rest = divmod(len(model.intercepts), count)
        return rest == 0 and Calibration(**{"label": None, **known}).fits(folds, is_classifier(self))

    def _fold_values(self, X: Any) -> tuple[FloatArray, Calibration]:
        """Values of every fold on new samples, (n, n_folds, n_functions), and what to compare them with."""
        check_is_fitted(self, "best_estimator_")
        model, known = getattr(self, "fold_model_", None), getattr(self, "calibration_", {})
        if model is None:
            reason = known.get("reason", "it was fitted by an earlier version: fit it again")
            raise ValueError(f"this {type(self).__name__} knows no intervals or sets: {reason}.")
        with self._own_name():
            inputs = self.best_estimator_._inputs(X)
        values = model(inputs)
        count = len(self.best_estimator_.model_.intercept)
        return values.reshape(len(values), -1, count), Calibration(**{"label": None, **known})

    @property
    def _leaves_one_out(self) -> bool:
        return isinstance(self.cv, str) and self.cv == LEAVE_ONE_OUT

    def _folds(self, y: Any, weight: FloatArray, metadata: Metadata) -> Folds:
        if not self._leaves_one_out:
            return super()._folds(y, weight, metadata)
        if metadata.split:
            given = ", ".join(metadata.split)
            raise ValueError(
                f"cv={self.cv!r} leaves out one sample at a time, so it has no use for {given}: pass a "
                "splitter, such as cv=LeaveOneGroupOut()."
            )
        used = np.flatnonzero(weight)
        every = np.arange(len(used))
        return Folds(len(weight), used, [(every, every)], metadata.score)

    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator."""
        return self._answer("predict", X)

    @property
    def n_iter_(self) -> int:
        """Number of single-kernel fits of the best estimator."""
        result: int = self.best_estimator_.n_iter_
        return result

    @property
    def dual_gap_(self) -> float:
        """Relative duality gap of the best estimator."""
        result: float = self.best_estimator_.dual_gap_
        return result


class MKLClassifierCV(LabelsMixin, BaseMKLCV):
    """`MKLClassifier` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid (on a device once per fold),
    and every point starts from the solution of its neighbour on the path of C, as in `mkl_path`.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    regularizers : regulariser, str, or list of them, default="lp"
        The regularisers to choose from, such as ``[LpNorm(1), LpNorm(4/3), LpNorm(2), "uniform"]``.
    Cs : int or sequence of float, default=10
        The costs to choose from. A number n means n values from 0.01 to 100. Where the best of them lies at
        an end, more values follow beyond it in the same ratio, until the best lies inside, the score no
        longer changes, or 1e6 times the end is reached; of equal scores the one nearest to the middle of all
        values is taken. Values of your own are not extended, and the first of equals is taken: where the best
        of three or more lies at an end, a warning says so.
    cv : int, splitter, iterable or "leave-one-out", default=None
        As in scikit-learn; 5 stratified folds by default, fewer where a class has fewer samples, and folds of
        whole groups where ``fit`` is given `groups`. "leave-one-out" (Subrahmanya & Shin 2010, section
        4.1) fits every point once, on all samples, and scores the prediction f_i of each sample by the
        model without it, at kernel weights and normalisation held fixed:

            f_i = y_i - alpha_i / (M^-1)_ii,    M = sum_m d_m K_m + diag(1 / C_i)

        bordered by ones for the intercept. This is exact for the squared loss, and holds to first order for
        other losses (`kernelweave.solvers.leave_one_out`). It costs little beside the fits, but every sample
        has had its say in the weights: with many kernels and few samples, scores are too good. Copies of a
        sample are left out together.
    scoring : str or callable, optional
        Accuracy by default. Scorers that use labels or decision values; with "leave-one-out" they score all
        samples at once.
    loss, normalize, missing, multiclass, class_weight, tol, max_iter, fit_intercept, device
        As in `MKLClassifier`; views are completed from the training samples of each fold.
    n_jobs : int, optional
        Threads over the folds.
    verbose : int, default=0

    Attributes
    ----------
    best_estimator_ : MKLClassifier
        The best pair, fitted on all samples.
    best_params_, best_score_, best_index_
    cv_results_ : dict
        "params", "mean_test_score", "std_test_score", and "split_test_scores" (folds x points); leaving one
        out is one fold of all samples.
    grid_extended_ : dict
        "C": the smallest and the largest cost tried, where the grid was extended; else empty.
    fold_model_ : Predictor or None
        The functions of every fold at the best pair, fold by fold, for intervals and sets.
    calibration_ : dict
        "fold", "score", "weight" and "label" of the held-out samples, with which new samples are compared;
        or the "reason" why there are no intervals or sets.
    model_, weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, classes_, patterns_, \
observed_, n_features_in_
        Those of `best_estimator_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> search = kw.MKLClassifierCV(per_feature(RBF()), regularizers=[kw.LpNorm(1), kw.LpNorm(2)], Cs=3)
    >>> search.fit(X, y).best_score_ > 0.9
    True
    """

    _searched = MKLClassifier

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "hinge",
        regularizers: str | Regularizer | Sequence[str | Regularizer] = "lp",
        Cs: int | Sequence[float] = 10,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        multiclass: str = "ovr",
        class_weight: dict[Any, float] | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizers = regularizers
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the best estimator."""
        result: FloatArray = self._answer("decision_function", X)
        return result

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the best estimator."""
        result: FloatArray = self._answer("predict_proba", X)
        return result

    @follows_input
    def predict_set(self, X: Any, coverage: float = 0.9, by_class: bool = False) -> BoolArray:
        """Classes that a new sample may have: the true one is among them with probability `coverage`.

        Cross-conformal prediction (Vovk 2015; Romano, Sesia & Candes 2020) from the folds of the search. A
        class y is s(x, y) = max_(y' != y) f_y'(x) - f_y(x) behind the best other one, so it was s_i for the
        class of sample i by the fold k(i) that held it out, and y is in the set where

            (1 + #{i : s_i >= s_k(i)(x, y)}) / (n + 1) > 1 - coverage.

        Nothing is assumed but that new samples come from where the others came from. Where the classes are
        easier to tell apart than `coverage` asks for, some sets are empty: such a sample is stranger than
        nearly all that were held out. Sets of several classes say which of them cannot be told apart.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        coverage : float, default=0.9
        by_class : bool, default=False
            Whether the samples of every class are covered that often, not only all of them together: class y
            is compared with held-out samples of class y alone (Mondrian). A class of fewer than
            coverage / (1 - coverage) samples is in every set then.

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            Whether each class of `classes_` is in the set.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> import kernelweave as kw
        >>> X, y = load_iris(return_X_y=True)
        >>> search = kw.MKLClassifierCV(Cs=[1.0], cv=5).fit(X[::2], y[::2])
        >>> sets = search.predict_set(X[1::2], coverage=0.95)
        >>> bool(sets[range(75), y[1::2]].mean() >= 0.9)
        True
        """
        coverage = check_coverage(coverage)
        values, known = self._fold_values(X)
        of_classes = self.best_estimator_._class_values

        def scores(fold: int) -> FloatArray:
            return strangeness(of_classes(values[:, fold]))

        return label_sets(scores, len(values), known, coverage, by_class)


class MKLRegressorCV(LossScore, BaseMKLCV):
    """`MKLRegressor` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid (on a device once per fold),
    and every point starts from the solution of its neighbour on the path of C, as in `mkl_path`.

    Parameters
    ----------
    kernels, regularizers, cv, device, n_jobs, verbose
        As in `MKLClassifierCV`.
    Cs : int or sequence of float, default=10
        As in `MKLClassifierCV`. A number of costs is measured in the unit that the targets ask for, so that
        targets in any unit choose the same model: 1 for the squared and the Huber loss, the standard
        deviation s of the targets for the eps-insensitive loss; 1/s of that for regularisers that are sums of
        norms, such as `SMKL`. The width of a loss is in the unit of the targets: it has to follow them.
    scoring : str or callable, optional
        R^2 by default; for ``loss="ranking"`` the share of pairs in the right order
        (`losses.Ranking.agreement`).
    loss, normalize, missing, multioutput, tol, max_iter, fit_intercept
        As in `MKLRegressor`.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, grid_extended_, fold_model_, \
calibration_, model_, weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, patterns_, \
observed_, n_features_in_
        As in `MKLClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = kw.MKLRegressorCV(per_feature(Linear()), regularizers=[kw.LpNorm(1), "uniform"], Cs=3)
    >>> search.fit(X, y).best_score_ > 0.4
    True
    """

    _searched = MKLRegressor

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "squared",
        regularizers: str | Regularizer | Sequence[str | Regularizer] = "lp",
        Cs: int | Sequence[float] = 10,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        multioutput: str = "shared",
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizers = regularizers
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.multioutput = multioutput
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    @follows_input
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Intervals that hold the target of a new sample with probability `coverage`.

        CV+ (Barber, Candes, Ramdas & Tibshirani 2021) from the folds of the search. With f_k(i) the function
        of the fold that held out sample i, and R_i = |y_i - f_k(i)(x_i)| how far that was,

            lower = the ceil(coverage (n + 1))-th largest of the f_k(i)(x) - R_i,
            upper = the ceil(coverage (n + 1))-th smallest of the f_k(i)(x) + R_i.

        With one split this is split conformal prediction; with ``cv="leave-one-out"`` it is the jackknife+,
        whose functions have a closed form for the squared loss, at the kernel weights of the fit. Nothing is
        assumed but that new samples come from where the others came from. At least a share 2 coverage - 1 of
        them is covered (less about 1 / sqrt(n) with few folds), and `coverage` itself where models of
        different folds agree.

        Parameters
        ----------
        X : array-like
            Samples as `predict` takes them.
        coverage : float, default=0.9

        Returns
        -------
        ndarray of shape (n, 2), or (n, n_outputs, 2)
            Lower and upper ends, for each output separately.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> import kernelweave as kw
        >>> X, y = load_diabetes(return_X_y=True)
        >>> search = kw.MKLRegressorCV(Cs=[1.0], cv=5).fit(X[::2], y[::2])
        >>> lower, upper = search.predict_interval(X[1::2], coverage=0.9).T
        >>> bool(((lower <= y[1::2]) & (y[1::2] <= upper)).mean() > 0.85)
        True
        """
        coverage = check_coverage(coverage)
        found = intervals(*self._fold_values(X), coverage)
        return found[:, 0] if self.best_estimator_._flat else found
