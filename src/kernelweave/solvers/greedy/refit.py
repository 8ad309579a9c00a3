"""What a greedy fit minimises, and the refit of all chosen kernels, for every loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from ..._typing import FloatArray
from ...gram._workers import mirror_lower
from ...losses import Loss
from ..leave_one_out import copies, leave_one_out
from ..problem import Problem, best_intercept
from ..single import choose_single
from .dictionary import FactorDictionary, Full, cholesky


@dataclass(frozen=True)
class GreedyTask:
    """Targets, loss and ridge of a greedy fit.

        J(G) = min_f  2/l sum_i w_i V(y_i, f(x_i)) + lambda ||f||^2,     f in the sum of the spaces of G

    with l the sum of the sample weights w; for the squared loss 2 V is (y - f)^2, and `Problem` is the same
    with C_i = w_i / (lambda l), divided by 2 lambda. A loss L that couples samples and has no intercept takes
    the place of the sum.

    Parameters
    ----------
    y : ndarray of shape (n, c)
    weight : ndarray of shape (n,)
        Positive.
    loss : Loss
    ridge : float
        lambda.
    fit_intercept : bool

    Examples
    --------
    >>> from kernelweave.losses import Squared
    >>> GreedyTask(np.ones((4, 1)), np.ones(4), Squared(), ridge=0.5).shift
    2.0
    """

    y: FloatArray
    weight: FloatArray
    loss: Loss
    ridge: float
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        known: Any = self.loss
        if not known.separable and not known.shift_invariant:
            raise ValueError(
                f"{type(self.loss).__name__} couples samples, and greedy selection needs a sum over samples, "
                "or a loss without an intercept: use an MKL estimator, such as MKLRegressor with "
                "regularizer='elasticnet'."
            )

    @property
    def total(self) -> float:
        """The number of samples l, each counted by its weight."""
        return float(self.weight.sum())

    @property
    def shift(self) -> float:
        """What is added to the diagonal of the kernels: lambda l."""
        return self.ridge * self.total

    @property
    def rounding(self) -> float:
        """How much variance rounding alone can give the targets."""
        if not self.loss.separable:
            return 0.0
        return float((self.weight @ (8.0 * np.finfo(np.float64).eps * self.y) ** 2).sum() / self.total)

    @property
    def root(self) -> FloatArray:
        """sqrt(w), shape (n, 1)."""
        return np.sqrt(self.weight)[:, None]

    @cached_property
    def problem(self) -> Problem:
        """The same with one cost per sample, for single-kernel machines."""
        return Problem.weighted(self.y, self.loss, 1.0 / self.shift, self.weight, self.fit_intercept)


@dataclass(frozen=True)
class Fit:
    """The best function of a set of kernels.

    Attributes
    ----------
    kernels : tuple of int
        In the order in which they came in.
    scaled_alpha : ndarray of shape (n, c)
        a with alpha = sqrt(w) a; for the squared loss (K_G + lambda l I) a = sqrt(w) y.
    intercept : ndarray of shape (c,)
    objective, error : float
        J, and its first term.
    level : float
        J(G') >= level - lambda sum_{m in G'} a'K_m a for any other set G' (weak duality).
    """

    kernels: tuple[int, ...]
    scaled_alpha: FloatArray = field(repr=False)
    intercept: FloatArray
    objective: float
    error: float
    level: float

    def gap(self, energy: float) -> float:
        """Relative duality gap (J - (level - energy)) / J of the fit among functions of its own kernels.

        Parameters
        ----------
        energy : float
            lambda sum_{m in G} a'K_m a.
        """
        return max(self.objective - self.level + energy, 0.0) / self.objective if self.objective > 0 else 0.0


class Kept(NamedTuple):
    """What a refit that lets in no more kernels needs of its dictionary."""

    n_samples: int
    means: dict[int, FloatArray]


#: most columns, as a share of n, that thin factors may have together before they become one matrix
STACKED_RANK = 1 / 3


class Refit(ABC):
    """Fits the task on a growing set of kernels.

    Parameters
    ----------
    dictionary : FactorDictionary
    task : GreedyTask
    """

    dictionary: Any  # a `Kept` once it is closed

    def __init__(self, dictionary: FactorDictionary, task: GreedyTask) -> None:
        self.dictionary, self.task = dictionary, task
        self.kernels: tuple[int, ...] = ()

    def with_kernels(self, kernels: Sequence[int]) -> Self:
        """A new refit, on these kernels."""
        other = type(self)(self.dictionary, self.task)
        for m in kernels:
            other.add(int(m))
        return other

    def closed(self) -> Self:
        """The same refit without the dictionary, so that this need not stay in memory."""
        other, own = copy(self), self.dictionary
        means = {m: own.means[m] for m in self.kernels} if self.task.fit_intercept else {}
        other.dictionary = Kept(own.n_samples, means)
        return other

    def add(self, m: int, weight: float = 1.0) -> None:
        """Let kernel m in, with a weight."""
        self._add(m, weight)
        self.kernels = (*self.kernels, m)

    @abstractmethod
    def _add(self, m: int, weight: float) -> None:
        """Take note of the kernel."""

    @abstractmethod
    def fit(self) -> Fit:
        """The best function on the kernels that are in."""

    def energies(self, fit: Fit) -> FloatArray:
        """a'K_m a of the kernels of a fit: the squared norms of its components."""
        result: FloatArray = self.dictionary.quads(fit.scaled_alpha, np.array(fit.kernels, dtype=int))
        return result

    def offset(self, alpha: FloatArray) -> FloatArray:
        """What centring took from the mean prediction; the intercept gives it back."""
        out = np.zeros(alpha.shape[1])
        if self.task.fit_intercept:
            for m in self.kernels:
                out += self.dictionary.means[m] @ alpha
        return out


class RidgeRefit(Refit):
    """Solves (K_G + lambda l I) a = sqrt(w) y.

    Thin factors are stacked into Phi, on top of a base B: the matrix of the other kernels plus lambda l I
    (only lambda l I while there are no others). By Woodbury's identity

        (B + Phi Phi')^-1 = B^-1 - U (I + Phi'U)^-1 U',    U = B^-1 Phi

    and a new factor of r columns adds r rows to the Cholesky factor of I + Phi'U. A kernel without a thin
    factor joins the base, which is factored again.

    Examples
    --------
    >>> from kernelweave.gram import KernelStack, StackSource
    >>> from kernelweave.losses import Squared
    >>> task = GreedyTask(np.array([[2.0], [-2.0]]), np.ones(2), Squared(), ridge=0.5)
    >>> source = StackSource(KernelStack([np.eye(2)]))
    >>> dictionary = FactorDictionary(source, None, task.weight, True, task.shift)
    >>> RidgeRefit(dictionary, task).with_kernels([0]).fit().scaled_alpha.ravel()
    array([ 1., -1.])
    """

    def __init__(self, dictionary: FactorDictionary, task: GreedyTask) -> None:
        super().__init__(dictionary, task)
        mean = task.weight @ task.y / task.total if task.fit_intercept else np.zeros(task.y.shape[1])
        self.mean, self.target = mean, task.root * (task.y - mean)
        self.base: FloatArray | None = None
        self.base_factor: FloatArray | None = None
        self._clear_stack()

    def _clear_stack(self) -> None:
        n = self.dictionary.n_samples
        self.rank = 0
        self._Phi: FloatArray = np.empty((n, 0), order="F")
        self._U: FloatArray = np.empty((n, 0), order="F")
        self._L: FloatArray = np.empty((0, 0))

    # -- kernels coming in --------------------------------------------------------------------

    def _add(self, m: int, weight: float) -> None:
        block, n = self.dictionary.block(m), self.dictionary.n_samples
        if not isinstance(block, Full) and self.rank + block.Phi.shape[1] <= STACKED_RANK * n:
            self._stack(np.sqrt(weight) * block.Phi)
            return
        if self.base is None:
            self.base = np.zeros((n, n), order="F")
        block.add_to(self.base, weight)
        if self.rank:
            self.base += self.Phi @ self.Phi.T
            self._clear_stack()
        self.base_factor = None

    def _stack(self, Phi: FloatArray) -> None:
        """Add rows to the Cholesky factor L of I + Phi'U."""
        U, old, new = self._base_solve(Phi), self.rank, self.rank + Phi.shape[1]
        below = _lower_solve(self.L, self.Phi.T @ U).T
        corner = np.eye(Phi.shape[1]) + Phi.T @ U - below @ below.T
        self._Phi, self._U = _with_room(self._Phi, new), _with_room(self._U, new)
        self._L = _with_room(_with_room(self._L, new).T, new).T
        self._Phi[:, old:new], self._U[:, old:new] = Phi, U
        self._L[:old, old:new] = 0.0
        self._L[old:new, :old] = below
        self._L[old:new, old:new] = cholesky(corner)
        self.rank = new

    @property
    def Phi(self) -> FloatArray:  # noqa: N802
        """The stacked factors."""
        return self._Phi[:, : self.rank]

    @property
    def U(self) -> FloatArray:  # noqa: N802
        """B^-1 Phi."""
        return self._U[:, : self.rank]

    @property
    def L(self) -> FloatArray:  # noqa: N802
        """L L' = I + Phi'U."""
        return self._L[: self.rank, : self.rank]

    # -- solving ------------------------------------------------------------------------------

    def _base_solve(self, B: FloatArray) -> FloatArray:
        if self.base is None:
            return B / self.task.shift
        if self.base_factor is None:
            self.base_factor = self.base.copy(order="F")
            self.base_factor.flat[:: len(self.base) + 1] += self.task.shift
            self.base_factor, info = lapack.dpotrf(self.base_factor, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                raise ValueError("alpha is too small: its ridge drowns in rounding; raise it.")
        result: FloatArray = lapack.dpotrs(self.base_factor, B, lower=1)[0]
        return result

    def _solve(self, B: FloatArray) -> FloatArray:
        solution = self._base_solve(B)
        if self.rank:
            inner = _lower_solve(self.L, self.U.T @ B)
            solution -= self.U @ solve_triangular(self.L, inner, lower=True, trans=1, check_finite=False)
        return solution

    def apply(self, A: FloatArray) -> FloatArray:
        """(K_G + lambda l I) A."""
        out = self.task.shift * A + self.Phi @ (self.Phi.T @ A)
        return out if self.base is None else out + blas.dsymm(1.0, self.base, A, lower=1)

    def fit(self) -> Fit:
        a = self._solve(self.target)
        a += self._solve(self.target - self.apply(a))  # one step of iterative refinement
        task, objective = self.task, self.task.ridge * float((self.target * a).sum())
        if task.fit_intercept:
            a -= task.root * ((task.root * a).sum(axis=0) / task.total)  # sum(alpha) = 0, to the last bit
        error = task.shift**2 / task.total * float((a**2).sum())
        intercept = self.mean - self.offset(task.root * a)
        # lambda a'K_G a = J - error
        return Fit(self.kernels, a, intercept, objective, error, 2.0 * objective - error)

    def inverse_diagonal(self) -> FloatArray:
        """Diagonal of (K_G + lambda l I)^-1."""
        if self.base is None:
            diagonal = np.full(self.dictionary.n_samples, 1.0 / self.task.shift)
        else:
            self._base_solve(self.target)
            inverse = lapack.dtrtri(self.base_factor, lower=1)[0]
            diagonal = (np.tril(inverse) ** 2).sum(axis=0)
        result: FloatArray = diagonal - (_lower_solve(self.L, self.U.T) ** 2).sum(axis=0)
        return result


def _lower_solve(L: FloatArray, B: FloatArray) -> FloatArray:
    return solve_triangular(L, B, lower=True, check_finite=False) if len(L) else B


def _with_room(buffer: FloatArray, columns: int) -> FloatArray:
    """`buffer`, or a copy with room for more columns than asked for."""
    if columns <= buffer.shape[1]:
        return buffer
    larger = np.zeros((buffer.shape[0], max(2 * buffer.shape[1], columns, 8)), order="F")
    larger[:, : buffer.shape[1]] = buffer
    return larger


#: relative duality gap of the single-kernel fits
MACHINE_TOL = 1e-6


class MachineRefit(Refit):
    """Makes the single-kernel fit of the loss on the sum of the kernels, from the last solution."""

    def __init__(self, dictionary: FactorDictionary, task: GreedyTask) -> None:
        super().__init__(dictionary, task)
        n = dictionary.n_samples
        self.base = np.zeros((n, n), order="F")
        self.machine = choose_single("auto", task.loss)
        self.last: FloatArray | None = None

    def _add(self, m: int, weight: float) -> None:
        self.dictionary.block(m).add_to(self.base, weight)

    def fit(self) -> Fit:
        if not self.kernels:
            return self._constant()
        machine = self.machine.solve(self.matrix(), self.task.problem, MACHINE_TOL, self.last)
        self.last = alpha = machine.alpha
        if not self.task.loss.separable:  # centring does not see this: sum(alpha) = 0, as for an intercept
            weight = self.task.weight[:, None]
            alpha = alpha - bool(self.task.fit_intercept) * weight * (alpha.sum(axis=0) / self.task.total)
        return self._certified(alpha, machine.fitted)

    def matrix(self) -> FloatArray:
        """The sum of the kernels, centred but not weighted."""
        mirror_lower(self.base)
        return np.ascontiguousarray(self.base) / (self.task.root * self.task.root.T)

    def _constant(self) -> Fit:
        """The model without kernels, and dual variables that prove it optimal."""
        problem = self.task.problem
        nothing = np.zeros(problem.shape)
        alpha = problem.feasible(problem.alpha_of(nothing + best_intercept(problem, nothing)))
        return self._certified(alpha, nothing)

    def _certified(self, alpha: FloatArray, fitted: FloatArray) -> Fit:
        problem, scale = self.task.problem, 2.0 * self.task.ridge
        intercept = best_intercept(problem, fitted)
        error = scale * problem.primal_loss(fitted, intercept)
        objective = error + 0.5 * scale * float((alpha * fitted).sum())
        level = scale * (problem.dual_loss(alpha) if problem.loss.separable else self._level(alpha, fitted))
        return Fit(
            self.kernels, alpha / self.task.root, intercept - self.offset(alpha), objective, error, level
        )

    def _level(self, a: FloatArray, fitted: FloatArray) -> float:
        """D + 1/2 a'K a of a loss that couples samples, whose dual point alpha belongs to the predictions.

        D = C L(f) + <alpha, f> - 1/2 alpha'K alpha, so this value less 1/2 a'K a is D, which is what
        `Fit.gap` asks for.
        """
        problem, zero = self.task.problem, np.zeros(1)
        alpha = problem.alpha_of(fitted)
        dual = problem.primal_loss(fitted, zero) + float((alpha * fitted).sum())
        energy = float((alpha * (self.matrix() @ alpha)).sum()) if self.kernels else 0.0
        return dual - 0.5 * energy + 0.5 * float((a * fitted).sum())


def refit_for(dictionary: FactorDictionary, task: GreedyTask) -> Refit:
    """Linear systems for the squared loss, machines for the others."""
    quadratic = getattr(task.loss, "quadratic", False)
    return (RidgeRefit if quadratic else MachineRefit)(dictionary, task)


def left_out_margins(refit: Refit, fit: Fit) -> FloatArray:
    """Predictions on each training sample by the fit without it, with the same kernels; shape (n, c).

    Equal samples are left out together, so that a sample of weight 2 and a sample given twice agree.
    """
    if isinstance(refit, RidgeRefit):
        return _exact(refit, fit)
    assert isinstance(refit, MachineRefit)
    problem, alpha = refit.task.problem, refit.task.root * fit.scaled_alpha
    K = refit.matrix()
    f = K @ alpha + fit.intercept + refit.offset(alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = leave_one_out(K, problem, alpha, f)
    # a lone free sample decides the intercept: without it, the intercept is not known to first order
    return np.where(np.isfinite(out), out, f)


def _exact(refit: RidgeRefit, fit: Fit) -> FloatArray:
    """y_i - a_i / (sqrt(w_i) N_ii), with a = N sqrt(w) y the fit as a linear map.

    N = (K_G + lambda l I)^-1, less its part in the direction of the intercept. On equal samples, with u the
    unit vector of their sqrt(w), N is b uu' + (I - uu') / (lambda l), and b takes the place of N_ii.
    """
    task = refit.task
    diagonal = refit.inverse_diagonal() - task.fit_intercept * task.weight / (task.shift * task.total)
    share = task.weight / _weight_of_equals(refit)
    b = (diagonal - (1.0 - share) / task.shift) / share
    b = np.maximum(b, 1e-12 / task.shift)
    return task.y - fit.scaled_alpha / (task.root * b[:, None])


def _weight_of_equals(refit: RidgeRefit) -> FloatArray:
    """Total weight of the samples that are copies of each."""
    task = refit.task
    probe = np.random.RandomState(0).standard_normal((len(task.y), 1))
    mark = (refit.apply(probe) - task.shift * probe) / task.root
    group = copies(mark[:, 0], task.y)
    return np.asarray(np.bincount(group, task.weight)[group], dtype=np.float64)
