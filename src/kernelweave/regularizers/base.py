"""What every weight regulariser is: a penalty on component norms, and the weights behind it."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._typing import FloatArray, IntArray


class Regularizer(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regulariser of the kernel weights d >= 0, seen through its two block norms.

    With h(d) the price of the weights, n_m = ||f_m|| the norm of component m and
    r_m = sqrt(alpha' K_m alpha) its dual norm,

        Omega(n)  = min_{d>=0} 1/2 sum_m n_m^2 / d_m + 1/2 h(d)      penalty, weights
        Omega*(r) = max_{d>=0} 1/2 sum_m d_m r_m^2 - 1/2 h(d)        conjugate

    Optional abilities, which solvers ask for by name:

    * ``price_slopes(z)``: h' and h'' of a separable h, for Newton steps on the weights;
    * ``weights_from_dual(r)``: 2 dOmega*/d(r^2), the weights of given dual norms, for the joint ascent and
      the program of cutting planes, where weights do not become zero;
    * ``bend(z)`` and ``shares(d)``: where weights are `bent`, they are functions d_m(z_m) of shares on the
      simplex: these with two derivatives, and their inverse;
    * ``log_slopes(n)``: d log d_m / d log n_l in closed form instead of by differences;
    * ``largest_norm(a, q)``: a bound of ||a d||_q over the weights of a constraint, for `theory`.
    """

    name: str

    #: concave penalties have no conjugate, and their fits no duality gap
    convex = True
    #: some weights are exactly zero at the optimum
    sparse = False
    #: the weights, or where these are `bent` their shares, live on the simplex
    tied = False
    #: each weight is a concave function of its share: `bend`, `shares`
    bent = False
    #: Omega(n) grows no faster than n; when convex, Omega(c n) = c Omega(n) and Omega* is 0 or infinite
    homogeneous = False
    #: weights come from a maximum, not from a minimum: `weights_from_dual`
    ascends = False
    #: Omega is a minimum or a maximum over weights of some price; else there is a `model_step` for norms
    priced = True
    #: weights stay below this
    max_weight = np.inf
    #: parameters that hold one number per kernel
    per_kernel: tuple[str, ...] = ()
    #: why there is no second form, a constraint of a penalty or a penalty of a constraint
    one_form = "no norm of the weights is known for a function of your own; write the other form by hand"

    @abstractmethod
    def price(self, weights: FloatArray) -> float:
        """h(d); +inf outside its domain, up to rounding."""

    @abstractmethod
    def penalty(self, norms: FloatArray) -> float:
        """Omega(n)."""

    @abstractmethod
    def weights(self, norms: FloatArray) -> FloatArray:
        """The minimising d in Omega(n)."""

    def log_slopes(self, norms: FloatArray) -> FloatArray:
        """d log d_m / d log n_l of the weights of positive norms: by differences, or by a formula."""
        step, start = 1e-5, np.log(self.weights(norms))
        moved = [np.log(self.weights(norms * np.exp(step * unit))) for unit in np.eye(len(norms))]
        return np.asarray((np.array(moved) - start).T / step)

    def conjugate(self, dual_norms: FloatArray) -> float:
        """Omega*(r)."""
        raise NotImplementedError(f"{type(self).__name__} has no conjugate, so no duality gap.")

    def dual_scale(self, dual_norms: FloatArray) -> float:
        """The largest c <= 1 for which Omega*(c r) is finite."""
        return 1.0

    def initial_weights(self, n_kernels: int) -> FloatArray:
        """Where solvers start: the weights of equal norms."""
        return self.weights(np.ones(n_kernels))

    def multiple(self, weights: FloatArray) -> float | None:
        """The c for which c d may be the weights of a model, d being nearly such weights; None if unknown.

        Under a penalty it is 1 within the domain of the price; under a constraint it takes d to the bound.
        """
        once, twice = (self.weights(size * np.ones(len(weights))) for size in (1.0, 2.0))
        bounded = np.allclose(once, twice, rtol=1e-6)  # only ratios of norms count, as under a constraint
        return None if bounded or not np.isfinite(self.price(weights)) else 1.0

    def generators(self, n_kernels: int) -> FloatArray:
        """T in d = T z, with h a function of z >= 0: an invertible matrix, or its diagonal."""
        return np.ones(n_kernels)

    def in_form(self, form: str, norms: FloatArray | None = None) -> Regularizer:
        """The regulariser of the same models as a "constraint" or as a "penalty", at the `equivalent_cost`.

        Parameters
        ----------
        form : {"constraint", "penalty"}
        norms : ndarray of shape (M,), optional
            Component norms of the model; asked for by regularisers whose parameters change too.
        """
        raise ValueError(f"{type(self).__name__} has one form: {self.one_form}.")

    def size_of_weights(self, norms: FloatArray, mu: float = 1.0, degree: float | None = None) -> float:
        """C of the constraint over C of the penalty, at which both have the component norms n."""
        raise ValueError(f"{type(self).__name__} has one form: {self.one_form}.")

    def bound_to(self, gram: Any) -> Regularizer:
        """The regulariser with whatever it takes from the Gram matrices."""
        return self

    def select(self, kernels: IntArray, n_kernels: int) -> Self:
        """The regulariser of some of `n_kernels` kernels: parameters of the others are dropped."""
        part = copy(self)
        for parameter in self.per_kernel:
            value = getattr(self, parameter)
            if np.ndim(value) == 0:
                continue
            if len(value) != n_kernels:
                raise ValueError(
                    f"{type(self).__name__}: {parameter} has {len(value)} entries for {n_kernels} kernels."
                )
            setattr(part, parameter, np.asarray(value)[np.ix_(*[kernels] * np.ndim(value))])
        return part


FORMS = ("constraint", "penalty")


class TwoForms(Regularizer):
    """Weights bounded by a norm N(d), in two forms that have the same models at different C.

        form="constraint":  h(d) = 0 if N(d) <= 1, else +inf
        form="penalty":     h(d) = N(d)^k / k,  k = `degree`

    Everything follows from two functions of the constraint,

        A(n) = min_{N(d)<=1} sum_m n_m^2 / d_m        B(r) = max_{N(d)<=1} sum_m d_m r_m^2

        constraint   Omega = A / 2                          Omega* = B / 2
        penalty      Omega = (1 + 1/k) A^(k/(k+1)) / 2      Omega* = B^{k*} / (2 k*),  k* = k / (k-1)

    The weights of the penalty are t = A^(1/(k+1)) times those of the constraint (at the minimum over
    t > 0 of A / t + t^k / k). k = 1 has Omega* = 0 if B <= 1, else +inf; at k = inf the penalty is
    the constraint. Kloft et al. (2011), Theorem 1.

    A subclass writes `degree`, `size` (N), `least` (A), `most` (B) and `unit_weights` (of the constraint).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.regularizers import Wedge
    >>> penalty, constraint = Wedge(), Wedge().in_form("constraint")
    >>> n = np.array([2.0, 1.0])
    >>> penalty.penalty(n), constraint.penalty(n)  # t and t^2 / 2 with t = N(d), k = 1
    (3.0, 4.5)
    """

    form: str

    @property
    @abstractmethod
    def degree(self) -> float:
        """k."""

    @abstractmethod
    def size(self, weights: FloatArray) -> float:
        """N(d)."""

    @abstractmethod
    def least(self, norms: FloatArray) -> float:
        """A(n)."""

    @abstractmethod
    def most(self, dual_norms: FloatArray) -> float:
        """B(r)."""

    @abstractmethod
    def unit_weights(self, norms: FloatArray) -> FloatArray:
        """The minimising d in A(n), N(d) = 1."""

    @property
    def penalised(self) -> bool:
        """Whether h is a penalty."""
        return checked_form(self) == "penalty" and np.isfinite(self.degree)

    def price(self, weights: FloatArray) -> float:
        size = self.size(weights)
        return float(size**self.degree / self.degree) if self.penalised else indicator(size - 1.0)

    def penalty(self, norms: FloatArray) -> float:
        if not self.penalised:
            return 0.5 * self.least(norms)
        k = self.degree
        return float(0.5 * (1.0 + 1.0 / k) * self.least(norms) ** (k / (k + 1.0)))

    def weights(self, norms: FloatArray) -> FloatArray:
        unit = self.unit_weights(norms)
        return self.least(norms) ** (1.0 / (self.degree + 1.0)) * unit if self.penalised else unit

    def multiple(self, weights: FloatArray) -> float | None:
        size = self.size(weights)
        if np.isinf(self.degree) or not 0.0 < size < np.inf:  # all weights are 1, or d has no multiple within
            return None
        return 1.0 if self.penalised else 1.0 / size

    def conjugate(self, dual_norms: FloatArray) -> float:
        most, k = self.most(dual_norms), self.degree
        if not self.penalised:
            return 0.5 * most
        return indicator(most - 1.0) if k == 1.0 else float(0.5 * most ** (k / (k - 1.0)) * (k - 1.0) / k)

    def dual_scale(self, dual_norms: FloatArray) -> float:
        if not (self.penalised and self.degree == 1.0):
            return 1.0
        return float(min(1.0, max(self.most(dual_norms), 1e-300) ** -0.5))

    def in_form(self, form: str, norms: FloatArray | None = None) -> Regularizer:
        other: Self = clone(self)
        other.form = form
        checked_form(other)
        return other

    def size_of_weights(self, norms: FloatArray, mu: float = 1.0, degree: float | None = None) -> float:
        """t = (A / mu)^(1/(k+1)) for the penalty mu N(d)^k / k."""
        k = self.degree if degree is None else degree
        return 1.0 if np.isinf(k) else float((self.least(norms) / mu) ** (1.0 / (k + 1.0)))


def checked_form(regularizer: Any) -> str:
    """Its `form`, one of the two."""
    if regularizer.form not in FORMS:
        name = type(regularizer).__name__
        raise ValueError(f"{name}: form={regularizer.form!r} must be 'constraint' or 'penalty'.")
    return str(regularizer.form)


def power_norm(x: FloatArray, p: float) -> float:
    """||x||_p of a non-negative vector, scaled so that large p does not overflow."""
    top = float(x.max(initial=0.0))
    if top == 0.0 or np.isinf(p):
        return top
    return top * float(((x / top) ** p).sum() ** (1.0 / p))


def indicator(outside: float) -> float:
    """0 inside, +inf where a constraint is broken by more than rounding."""
    return 0.0 if outside <= 1e-9 else np.inf
