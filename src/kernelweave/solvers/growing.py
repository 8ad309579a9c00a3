"""Solving on a part: a few samples or kernels for a first look, then rounds on those that matter.

The samples that matter have a dual variable, or ask for one. The kernels that matter have weight, or promise
most.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..gram import Gram
from ..gram.dictionary import Guess
from ..losses import Loss
from ..regularizers import Regularizer
from .problem import Problem, best_intercept
from .run import Method, Part, Run

if TYPE_CHECKING:
    from .base import State

#: from this many samples on, a matrix of all samples is avoided
FEWEST = 4000

#: gap of the first round on the violated samples, and share of the last gap asked for in the next
FIRST_GAP, NEXT_SHARE = 5e-3, 0.1

#: number of samples that may join, as a share of the support vectors, however short memory is
LEAST_JOINING = 0.25

#: above this share of the samples, all are taken
NEARLY_ALL = 0.9

#: the first look that chooses the samples to begin with takes one sample in this many
GROWING_SHARE = 4

#: fewest samples of a first look (half as many where parts are read in place), most samples, and most
#: single-kernel fits
PILOT_SAMPLES, PILOT_MOST, LOOK_FITS = 200, 4000, 30

#: the next look takes this many times as many samples, as long as all samples are this many times as many
#: again
LEVEL = 6

#: up to this many times the tolerance, a gap is nearly closed
NEARLY = 10.0

#: from this many models trained together on, they take their first look together, with shared weights
FEWEST_LOOKING = 3

#: number of kernels from which a dictionary is large, and number taken in the first round
MANY, FEW = 2000, 500

#: kernels that join in a round: this many times the number with weight, and at least this many
JOINING_SHARE, JOINING = 2, 100

#: steps of the weights at fixed alpha
RESTING = 20

#: gap of the solve with a few evenly chosen kernels, and share of the last gap asked for in a round
BLIND_GAP, KERNELS_SHARE = 0.02, 0.3


@dataclass(frozen=True)
class Pilot:
    """A first solve on a few of the samples.

    Attributes
    ----------
    rows : ndarray of int
        The samples.
    problem, gram
        What was solved.
    state : State
        The best iterate.
    matrix : ndarray
        sum_m d_m K_m at its weights.
    norms : ndarray of shape (M,)
        Component norms to expect on all samples.
    newton : ndarray of shape (M, M), optional
        The matrix that a residual of log norms is multiplied with in a Newton step.
    """

    rows: IntArray
    problem: Problem
    gram: Gram
    state: State
    matrix: FloatArray = field(repr=False)
    norms: FloatArray = field(repr=False)
    newton: FloatArray | None = field(repr=False, default=None)


class Known(NamedTuple):
    """What the solution of one problem passes on to a similar problem.

    Attributes
    ----------
    norms, weights : ndarray of shape (M,)
        Component norms, and their weights.
    matrix : ndarray or other matrix, or None
        The result of ``gram.combine`` for these weights; without it a run does not begin at them.
    newton : ndarray of shape (M, M), optional
        (I - J)^-1, J the Jacobian of the map of log norms.
    start : State, optional
        The iterate at these weights, if the problem is the same.
    n_machines : int
        How many machines it took.
    """

    norms: FloatArray
    weights: FloatArray
    matrix: Any = None
    newton: FloatArray | None = None
    start: State | None = None
    n_machines: int = 1


class Begin(NamedTuple):
    """Where a run starts: norms, dual variables, a first solve on a few samples, or a similar problem."""

    norms: FloatArray | None = None
    alpha: FloatArray | None = None
    pilot: Pilot | None = None
    known: Known | None = None


def opening(run: Run) -> Method:
    """The method that begins, perhaps on a part of samples or kernels; its start is put into `run`."""
    begin, cold = run.begin, run.best is None
    if begin.norms is None and can_select(run.gram, run.regularizer):
        return SelectingKernels()
    if can_grow(run.problem, run.gram, run.regularizer):
        if begin.alpha is None or not cold:
            run.begin = Begin(pilot=pilot_of(run, GROWING_SHARE) if cold else None)
        return Growing()
    if cold and begin.norms is None:
        pilot = first_look(run)
        many = pilot is None and run.gram.n_kernels >= MANY
        run.begin = start_of(run) if many else begin._replace(pilot=pilot)
        if pilot is not None and run.gram.streams and begin.alpha is None:  # machines are expensive there
            alpha = spread(pilot.state.alpha, pilot.rows, run.gram.n_samples)
            run.begin = run.begin._replace(alpha=alpha)
    method: Method = run.method
    return method


def first_look(run: Run) -> Pilot | None:
    """The pilot of a run, or of all models that are trained together with weights that they share.

    A class has only a few of the few samples, so what they say about it is mostly noise, and the rest is
    similar for all classes. So all classes begin at the same weights, with one weighted sum of the kernels.
    The norms of the machines there, which see all samples, then lead each class to its own weights.
    """
    several, share = run.problem.of_all(), run.method.pilot_share
    if not (run.gram.parts_in_place and _look_together(run.method, run.problem, run.gram.n_models)):
        return pilot_of(run, share)

    def look(gram: Gram) -> Pilot | None:
        return pilot_of(Run(run.method, several, gram, run.regularizer, run.tol), share)

    result: Pilot | None = run.gram.once(look)
    return result


def _look_together(method: Any, problem: Problem, n_models: int) -> bool:
    """Whether models that are trained together, this one among them, take their first look together."""
    classes = problem.loss.task == "classification" and problem.of_all().shape[1] >= FEWEST_LOOKING
    return bool(method.common_looks and classes and n_models >= FEWEST_LOOKING)


def looked_at(method: Any, problems: Sequence[Problem]) -> IntArray | None:
    """Samples of the first look at matrices in memory; None if there is none, or if models differ in it.

    Parameters
    ----------
    method : MKLSolver
    problems : sequence of Problem
        Of the models that are trained together, on the same samples.
    """
    sizes = _sizes_of_looks(len(problems[0].y), method.pilot_share, in_place=True)
    strata = problems[0].strata
    alike = strata is not None and all(problem.strata is strata for problem in problems)
    return problems[0].spread(sizes[0]) if len(sizes) == 1 and (alike or len(problems) == 1) else None


class Foresight:
    """What looks at parts tell of the weights with which all models begin, before all matrices are read.

    Parameters
    ----------
    method : MKLSolver
    problems : sequence of Problem
        Of the models that are trained together, on the same samples.
    regularizer, tol
        As in `Run`.
    """

    def __init__(
        self, method: Any, problems: Sequence[Problem], regularizer: Regularizer, tol: float
    ) -> None:
        self.method, self.regularizer, self.tol = method, regularizer, tol
        self.problem = problems[0] if len(problems) == 1 else problems[0].of_all()
        self.trains = len(problems) == 1 and self.problem.shape[1] == 1  # one machine, one alpha
        self._pilot: Pilot | None = None

    @staticmethod
    def is_of(method: Any, problems: Sequence[Problem]) -> bool:
        """Whether all models begin with the same weights, which a solver can tell."""
        return bool(
            method.foresees and (len(problems) == 1 or _look_together(method, problems[0], len(problems)))
        )

    def look(self, gram: Gram) -> Guess | None:
        """The norms and weights; None if there are no looks. `gram` has matrices in memory.

        Nor are there for weights that depend on no norms, as of the uniform sum, or on the matrices besides.
        """
        rule = self.regularizer
        if rule.bound_to(gram) is not rule or rule.multiple(np.ones(gram.n_kernels)) is None:
            return None
        run = Run(copy(self.method), self.problem, gram, self.regularizer, self.tol)
        self._pilot = pilot = pilot_of(run, self.method.pilot_share)
        if pilot is None:
            return None
        return Guess(pilot.norms, run.method.init(run, pilot.norms), pilot.newton)

    def multiple(self, weights: FloatArray) -> float | None:
        """The c for which the solver may begin at c d, since scales have changed after the look; or None."""
        c = self.regularizer.multiple(weights)
        return c if c is not None and self.method.may_begin_at(self.regularizer, c * weights) else None

    def train(self, gram: Gram, kernels: IntArray, guess: Guess) -> tuple[State, Any, int]:
        """The iterate at the guessed weights, the sum of the kernels there, and how many machines it took.

        `gram` has only the `kernels` with weight. If their gap is nearly closed, one more step is made on
        them: most likely it is the gap of all kernels.
        """
        assert self._pilot is not None
        begin = Begin(pilot=replace(self._pilot, norms=guess.norms[kernels]))
        rule = self.regularizer.select(kernels, len(guess.norms))
        run = Run(copy(self.method), self.problem, gram, rule, self.tol, begin=begin)
        state: State = run.method.start(run)
        better = run.method.step(run, state) if self.tol < state.residual <= NEARLY * self.tol else None
        return (state, run.K, 1) if better is None else (better, run.K, 2)


def _sizes_of_looks(n_samples: int, share: int, in_place: bool) -> list[int]:
    """Numbers of samples of the solves of a first look; none if there are too few samples."""
    least = PILOT_SAMPLES // 2 if in_place else PILOT_SAMPLES
    count = min(max(least, n_samples // max(share, 1)), PILOT_MOST)
    if not share or n_samples < 3 * max(count, PILOT_SAMPLES):
        return []
    sizes = [count] if in_place else [count // 2, count]
    while sizes[-1] >= PILOT_MOST and LEVEL**2 * sizes[-1] <= n_samples:
        sizes.append(LEVEL * sizes[-1])
    return sizes


def pilot_of(run: Run, share: int) -> Pilot | None:
    """The problem of a run solved on one sample in `share`: a good start, found at little cost.

    It is first solved on half of these samples, unless larger parts can be read in place: their norms then
    say more about how the norms on all samples differ (`foresee`). None if there are too few samples, or if
    `share` is 0.
    """
    problem, gram = run.problem, run.gram
    sizes = _sizes_of_looks(gram.n_samples, share, gram.parts_in_place)
    if not sizes:
        return None
    places = [problem.spread(sizes[-1])]  # each level is a part of the next
    for size in sizes[-2::-1]:
        places.append(places[-1][problem.subset(places[-1]).spread(size)])
    pilots: list[Pilot] = []
    for rows in reversed(places):
        part = gram.subset(rows)
        pilots.append(_solved_on(run, problem.subset(rows), part, pilots[-1] if pilots else None))
        gram.n_passes += part.n_passes * (len(rows) / gram.n_samples) ** 2
    pilots[-1] = replace(pilots[-1], rows=rows)
    result: Pilot | None = run.method.foresee(run, pilots)
    return result


def _solved_on(whole: Run, problem: Problem, gram: Gram, start: Pilot | None = None) -> Pilot:
    """The problem solved on some of the samples."""
    parts = (problem, gram, whole.regularizer, whole.method.pilot_tol)
    run = _look(whole, f"pilot {gram.n_samples}", *parts, Begin(pilot=start))
    matrix = gram.combine(run.best.weights) if run.matrix is None else run.matrix
    norms = run.best.certificate.norms
    return Pilot(np.arange(gram.n_samples), problem, gram, run.best, matrix, norms)


def _look(
    whole: Run, phase: str, problem: Problem, gram: Gram, regularizer: Regularizer, tol: float, begin: Begin
) -> Run:
    """A first look: a separate run on a part, which resumes an earlier one if there is one."""
    solver = copy(whole.method)
    solver.rough = solver.rough_looks
    run = Run(solver, problem, gram, regularizer, tol, LOOK_FITS, None, whole.keeper, phase, begin)
    solver.resume(run)
    if run.best is None or not run.converged:
        run.iterate()
    return run


class Rounds(Method):
    """Solves on a part, certifies on the whole, and continues with a better part.

    The method of the run solves the rounds; a first look, or the resumed iterate, chooses the first part.
    """

    counts_start = True

    def _on_part(
        self, part: Part, problem: Problem, gram: Gram, regularizer: Regularizer, tol: float, begin: Begin
    ) -> Run:
        """A round: the run on a part, whose iterations count for the whole."""
        run = part.whole
        parts = (problem, gram, regularizer, tol, run.max_iter - run.n_iter)
        inner = Run(copy(run.method), *parts, run.tell, run.keeper, run.phase, begin, part)
        inner.iterate()
        run.n_iter += inner.n_iter - 1
        return inner


def spread(part: FloatArray, where: IntArray | None, size: int) -> FloatArray:
    """`part` at its places along the first axis, zero elsewhere; unchanged if it fills all places."""
    if where is None:
        return part
    whole: FloatArray = np.zeros((size, *part.shape[1:]))
    whole[where] = part
    return whole


def may_grow(loss: Loss, regularizer: Regularizer, n_samples: int) -> bool:
    """Whether there are many samples, most of whose dual variables may be zero."""
    sparse = hasattr(loss, "linear_dual") or hasattr(loss, "simplex_dual")
    return sparse and regularizer.convex and n_samples >= FEWEST


def can_grow(problem: Problem, gram: Gram, regularizer: Regularizer) -> bool:
    """Whether most dual variables may be zero, and the matrix of all samples is expensive."""
    return gram.streams and may_grow(problem.loss, regularizer, gram.n_samples)


class Growing(Rounds):
    """Rounds on a growing part of the samples, each certified on all of them.

    Samples outside the part have alpha_i = 0, which is feasible, so the dual value of the part is also a dual
    value of the whole problem, and alpha' K_m alpha is the same. The primal value takes one product, f =
    sum_m d_m K_m alpha on the other samples. Samples where alpha_i = 0 is not optimal,

        -C_i V'(y_i, f_i) != 0

    join the part. Only pairs with a support vector are ever computed: n n_sv instead of n^2.
    """

    def start(self, run: Run) -> State:
        start, self.pilot = run.best, run.begin.pilot
        if start is not None:
            self.alpha, fitted, self.norms = start.alpha, start.fitted, start.certificate.norms
            first = min(FIRST_GAP, NEXT_SHARE * start.residual)
        elif self.pilot is not None:
            start, self.norms = self.pilot.state, self.pilot.norms
            self.alpha = spread(start.alpha, self.pilot.rows, run.gram.n_samples)
            fitted, first = run.gram.dot(start.weights, self.alpha), FIRST_GAP
        else:  # start where a similar problem ended
            self.norms, self.alpha = run.begin.norms, run.problem.feasible(run.begin.alpha)
            fitted = run.gram.dot(run.regularizer.weights(self.norms), self.alpha)
            first = NEXT_SHARE * FIRST_GAP
        intercept = best_intercept(run.problem, fitted) if start is None else start.certificate.intercept
        violated = _violated(run.problem, fitted + intercept)
        self.rows = self._with(run.gram, violated, _support(self.alpha))
        self.wanted = max(first, 0.5 * run.tol)
        return self._round(run)

    def step(self, run: Run, state: State) -> State:
        violated = _violated(run.problem, state.fitted + state.certificate.intercept)
        joining = _without(violated, self.rows, run.gram.n_samples)
        self.rows = self._with(run.gram, joining, self.rows)
        left = min(state.residual, self.wanted if len(joining) == 0 else 1.0)
        self.wanted = max(NEXT_SHARE * left, 0.5 * run.tol)
        return self._round(run)

    def _round(self, run: Run) -> State:
        """Solve on the samples of the part, and certify on all of them."""
        gram, problem = run.gram.subset(self.rows), run.problem.part(self.rows)
        begin = Begin(self.norms, self.alpha[self.rows], self.pilot)
        parts = (problem, gram, run.regularizer, self.wanted, begin)
        found = self._on_part(Part(run, rows=self.rows), *parts).best
        run.gram.n_passes += gram.n_passes * (len(self.rows) / run.gram.n_samples) ** 2
        every = np.arange(run.gram.n_samples)
        rest = _without(every, self.rows, len(every))
        self.alpha = spread(found.alpha, self.rows, run.gram.n_samples)
        fitted = spread(found.fitted, self.rows, run.gram.n_samples)
        fitted[rest] = run.gram.dot(found.weights, self.alpha, rest)
        parts = (found.weights, self.alpha, fitted, found.squares, found.machine_tol)
        state: State = run.method.certified(run, *parts)
        self.norms = state.certificate.norms
        return state

    def _with(self, gram: Gram, joining: IntArray, rows: IntArray) -> IntArray:
        """The rows and those that join them; if memory is short, support vectors and some that join."""
        n, most = gram.n_samples, gram.most_combined or gram.n_samples
        if len(rows) + len(joining) > most:
            rows = _support(self.alpha)
            joining = _without(joining, rows, n)
            room = max(most - len(rows), int(LEAST_JOINING * len(rows)))
            if len(joining) > room:
                joining = joining[np.linspace(0, len(joining) - 1, room).astype(int)]
        rows = np.sort(np.concatenate([_without(rows, joining, n), joining]))
        return rows if len(rows) < NEARLY_ALL * n or n > most else np.arange(n)


def _without(samples: IntArray, others: IntArray, n: int) -> IntArray:
    """Those of some samples of n that are not among `others`, in their order."""
    left = np.ones(n, dtype=bool)
    left[others] = False
    return samples[left[samples]]


def _violated(problem: Problem, f: FloatArray) -> IntArray:
    """Samples whose dual variable should not be zero at predictions f."""
    return np.flatnonzero(problem.alpha_of(f).any(axis=1))


def _support(alpha: FloatArray) -> IntArray:
    return np.flatnonzero(alpha.any(axis=1))


def can_select(gram: Gram, regularizer: Regularizer) -> bool:
    """Whether there are many kernels, most of which will have no weight."""
    if gram.n_kernels < MANY or not (regularizer.convex and regularizer.sparse):
        return False
    return regularizer.generators(1).ndim == 1


def few_kernels(whole: Run) -> tuple[FloatArray, FloatArray]:
    """alpha of the problem with a few kernels spread over the dictionary, and s_m of all kernels at it.

    Evenly chosen kernels look much like all of them, so alpha is a good start.
    """
    gram = whole.gram
    chosen = np.unique(np.linspace(0, gram.n_kernels - 1, FEW).astype(int))
    part, rule = gram.subset(kernels=chosen), whole.regularizer.select(chosen, gram.n_kernels)
    run = _look(whole, "few kernels", whole.problem, part, rule, BLIND_GAP, Begin())
    gram.n_passes += part.n_passes * len(chosen) / gram.n_kernels
    return run.best.alpha, gram.quad(run.best.alpha)


def start_of(run: Run) -> Begin:
    """Norms of all kernels and alpha to start from, after a solve with a few.

    The weights at fixed alpha are the fixed point of weights -> norms d_m sqrt(s_m) -> weights.
    """
    alpha, squares = few_kernels(run)
    roots = np.sqrt(np.maximum(squares, 0.0))
    norms = roots.copy()
    for _ in range(RESTING):
        norms = run.regularizer.weights(norms) * roots
    return Begin(norms, alpha)


class SelectingKernels(Rounds):
    """Rounds with a few kernels, each certified on all of them.

    With alpha of the kernels taken so far, s_m = alpha' K_m alpha of all kernels gives the dual
    value on the whole dictionary, and tells which kernels would lower the objective most: they
    replace those that got no weight. All kernels are looked at once per round.
    """

    def start(self, run: Run) -> State:
        if run.best is None:
            self.wanted, weights = BLIND_GAP, np.zeros(run.gram.n_kernels)
            return self._round(run, *few_kernels(run), weights)
        self.wanted = KERNELS_SHARE * min(BLIND_GAP, run.best.residual)
        return self._round(run, run.best.alpha, run.best.squares, run.best.weights)

    def step(self, run: Run, state: State) -> State:
        self.wanted = KERNELS_SHARE * min(self.wanted, state.residual)
        return self._round(run, state.alpha, state.squares, state.weights)

    def _round(self, run: Run, alpha: FloatArray, squares: FloatArray, weights: FloatArray) -> State:
        """Solve with the kernels that have weight and those that promise most, and certify on all."""
        kernels, M = _promising(run, squares, weights), run.gram.n_kernels
        gram, chosen = run.gram.subset(kernels=kernels), run.regularizer.select(kernels, M)
        norms = weights[kernels] * np.sqrt(np.maximum(squares[kernels], 0.0))
        parts = (run.problem, gram, chosen, max(self.wanted, 0.3 * run.tol))
        begin = Begin(norms if norms.any() else None, alpha)
        inner = self._on_part(Part(run, kernels=kernels), *parts, begin)
        run.gram.n_passes += gram.n_passes * len(kernels) / M
        run.K, found = inner.matrix, inner.best
        weights = spread(found.weights, kernels, M)
        values = (weights, found.alpha, found.fitted, run.gram.quad(found.alpha), found.machine_tol)
        state: State = run.method.certified(run, *values)
        return state


def _promising(run: Run, squares: FloatArray, weights: FloatArray) -> IntArray:
    """Kernels with weight, and those that promise most."""
    live = np.flatnonzero(weights)
    count = min(max(JOINING, JOINING_SHARE * len(live)), run.gram.n_kernels)
    # a kernel is worth its s_m less its cost, which is the same for all up to the regulariser's costs
    promise = squares * run.regularizer.generators(run.gram.n_kernels)
    best = np.argpartition(-promise, count - 1)[:count]
    return np.union1d(live, best)
