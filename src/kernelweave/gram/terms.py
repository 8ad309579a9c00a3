"""Terms of a predictor: what one kernel, or several computed together, add to every function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..kernels import Kernel, Linear, Normalization
from ..kernels.columns import as_table
from .games import Expansion, NotByFeatureError, constant_diagonal
from .lowrank.maps import ExactMap, Features, FourierMap, NystroemMap
from .sources import FeatureSource, KernelSource, without

#: W of shape (n_features, J) and c of shape (J,) with values x'W + c
Affine = tuple[FloatArray, FloatArray]


class NotLinearError(ValueError):
    """Why a model is not a linear function of the columns."""


class KernelTerm:
    """What one normalised kernel adds: factors[j] sum_i k'(x, x_i) alpha_ij / scale to function j.

    Parameters
    ----------
    m : int
        Which kernel of the source.
    rule : Normalization
        Fitted on the training samples.
    factors : ndarray of shape (J,)
        The weight of the kernel in each function times the scale of the rule.
    """

    def __init__(self, m: int, rule: Normalization, factors: FloatArray) -> None:
        self.m, self.rule, self.factors = m, rule, factors

    def coefficients(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """coef (n, J) and offset (J,) with row_scale(x) * (K(x, .) coef + offset) the values."""
        coef, offset = self.rule.expand(alpha)
        return coef * self.factors, offset * self.factors

    def add(self, source: KernelSource, alpha: FloatArray, X: Any, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        live = slice(None) if self.factors.all() else np.flatnonzero(self.factors)
        coef, offset = self.rule.expand(alpha[:, live])
        values = source.cross(self.m, X) @ coef + offset
        if self.rule.needs_diag:
            values *= np.reshape(self.rule.row_scale(source.diag(self.m, X)), (-1, 1))
        out[:, live] += values * self.factors[live]

    def diagonal(self, source: KernelSource, X: Any) -> FloatArray:
        """What the kernel adds to sum_m d_m k_m(x, x) of every function; shape (n_new, J)."""
        return np.asarray(np.multiply.outer(self.rule.diag(source.diag(self.m, X)), self.factors))

    def used(self, alpha: FloatArray) -> BoolArray:
        """Training samples that have a coefficient, before or after the normalisation changes it."""
        live = slice(None) if self.factors.all() else np.flatnonzero(self.factors)
        own = alpha[:, live]
        coef, _ = self.rule.expand(own)
        found = np.asarray(own.any(axis=1))
        # centring may cancel a coefficient that still takes part in the sum that is subtracted
        return found if coef is own else found | coef.any(axis=1)

    def restrict(self, support: IntArray) -> KernelTerm:
        """The term on some of the training samples."""
        return KernelTerm(self.m, self.rule.take(support), self.factors)

    def take(self, functions: Sequence[int]) -> KernelTerm:
        """The term of some of the functions."""
        return KernelTerm(self.m, self.rule, self.factors[functions])

    def split(self, source: KernelSource) -> Iterator[tuple[int, Any]]:
        """The component that each kernel of the term belongs to, and its own term."""
        yield source.component(self.m), self

    def expansion(self, source: KernelSource, alpha: FloatArray) -> Expansion:
        """The term, up to a constant, as an expansion in its kernel; else `NotByFeatureError`."""
        kernel = source.kernel_of_columns(self.m)
        coef = self.coefficients(alpha)[0]
        if self.rule.needs_diag:
            coef = coef * self.rule.row_scale(_unit_length(kernel))
        return Expansion(kernel, source.X, coef)  # type: ignore[attr-defined]

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """The term as a linear function of the columns; `NotLinearError` if it is not."""
        _refuse_sphere(self.rule.needs_diag)
        coef, offset = self.coefficients(alpha)
        part = source.kernels[self.m].affine(as_table(source.X), coef)  # type: ignore[attr-defined]
        if part is None:
            raise NotLinearError(f"kernel {source.names[self.m]!r} is not linear")
        return part[0], part[1] + offset

    def state(self) -> dict[str, Any]:
        """What the term is restored from; see `Predictor.state`."""
        return {"kernel": int(self.m), "rule": self.rule, "factors": self.factors}

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> KernelTerm:
        """The term of a `state`, checked against a source and the shape (rows, J) of alpha."""
        m = held_kernel(state["kernel"], source)
        rule = state["rule"]
        demand(isinstance(rule, Normalization), f"kernel {m} has no normalisation")
        for name in rule.per_sample:
            checked(vars(rule).get(name), "f", shape[:1])
        return cls(m, rule, checked(state["factors"], "f", shape[1:]))


class SumTerm:
    """What several kernels add that have the same coefficients and that a source computes together.

        f_j(x) = sum_k factors[k, j] K_k(x, .) coef[:, j] + offsets[k, j]

    Parameters
    ----------
    kernels : ndarray of int, shape (K,)
        Which of the kernels that the source computes together.
    factors : ndarray of shape (K, J)
    coef : ndarray of shape (n, J), optional
        alpha by default.
    offsets : ndarray of shape (K, J), optional
        Zero by default.
    """

    def __init__(
        self,
        kernels: IntArray,
        factors: FloatArray,
        coef: FloatArray | None = None,
        offsets: FloatArray | None = None,
    ) -> None:
        self.kernels, self.factors, self.coef, self.offsets = kernels, factors, coef, offsets
        self.offset = 0.0 if offsets is None else offsets.sum(axis=0)

    def add(self, source: KernelSource, alpha: FloatArray, X: Any, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        coef = alpha if self.coef is None else self.coef
        for functions in self.alike():
            if len(self.kernels) == 1:
                own = self.factors[0, functions[0]] * source.cross(int(source.together[self.kernels[0]]), X)
            else:
                factors = np.zeros(len(source.together))
                factors[self.kernels] = self.factors[:, functions[0]]
                own = source.cross_sum(factors, X)
            out[:, functions] += own @ coef[:, functions]
        out += self.offset

    def diagonal(self, source: KernelSource, X: Any) -> FloatArray:
        """What the kernels, all with k(x, x) = 1, add to sum_m d_m k_m(x, x) of each function; (n_new, J)."""
        return np.tile(self.factors.sum(axis=0), (X.shape[0], 1))

    def take(self, functions: Sequence[int]) -> SumTerm:
        """The term of some of the functions."""
        coef, offsets = (None if part is None else part[:, functions] for part in (self.coef, self.offsets))
        return SumTerm(self.kernels, self.factors[:, functions], coef, offsets)

    def alike(self) -> list[list[int]]:
        """Groups of functions with the same kernel weights; functions without any weight are left out."""
        groups: dict[bytes, list[int]] = {}
        for j, own in enumerate(self.factors.T):
            if own.any():
                groups.setdefault(own.tobytes(), []).append(j)
        return list(groups.values())

    def used(self, alpha: FloatArray) -> BoolArray:
        """Training samples that have a coefficient."""
        return np.asarray((alpha if self.coef is None else self.coef).any(axis=1))

    def restrict(self, support: IntArray) -> SumTerm:
        """The term on some of the training samples."""
        coef = None if self.coef is None else self.coef[support]
        return SumTerm(self.kernels, self.factors, coef, self.offsets)

    def split(self, source: KernelSource) -> Iterator[tuple[int, Any]]:
        """Each kernel, and its own term."""
        for i, k in enumerate(self.kernels.tolist()):
            offsets = None if self.offsets is None else self.offsets[[i]]
            yield int(source.together[k]), SumTerm(self.kernels[[i]], self.factors[[i]], self.coef, offsets)

    def expansion(self, source: KernelSource, alpha: FloatArray) -> Expansion:
        """The term of one kernel as an expansion in it."""
        (k,) = self.kernels.tolist()
        coef = alpha if self.coef is None else self.coef
        kernel = source.kernel_of_columns(int(source.together[k]))
        return Expansion(kernel, source.X, coef * self.factors[0])  # type: ignore[attr-defined]

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """Never: kernels computed together are Gaussian."""
        raise NotLinearError(f"kernel {source.names[int(source.together[self.kernels[0]])]!r} is not linear")

    def state(self) -> dict[str, Any]:
        """What the term is restored from."""
        names = ("kernels", "factors", "coef", "offsets")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> SumTerm:
        """The term of a `state`, checked."""
        kernels = checked(state["kernels"], "i", (None,))
        inside = len(kernels) and 0 <= kernels.min() <= kernels.max() < len(source.together)
        demand(inside, "it adds up kernels that are not there")
        factors = checked(state["factors"], "f", (len(kernels), shape[1]))
        coef, offsets = state["coef"], state["offsets"]
        coef = None if coef is None else checked(coef, "f", shape)
        return cls(kernels, factors, coef, None if offsets is None else checked(offsets, "f", factors.shape))


class FactorTerm:
    """What one kernel adds by its features: z(x)'coef.

    Parameters
    ----------
    m : int
    features : Features
    coef : ndarray of shape (rank, J)
    """

    def __init__(self, m: int, features: Features, coef: FloatArray) -> None:
        self.m, self.features, self.coef = m, features, coef

    def add(self, source: KernelSource, alpha: FloatArray, X: Any, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        Z = self.features(X)
        out += Z @ self.coef.astype(Z.dtype, copy=False)

    def used(self, alpha: FloatArray) -> BoolArray:
        """No training samples: the features have their landmarks."""
        return np.zeros(len(alpha), dtype=bool)

    def restrict(self, support: IntArray) -> Self:
        """The term itself."""
        return self

    def split(self, source: KernelSource) -> Iterator[tuple[int, Any]]:
        """The kernel, and the term itself."""
        yield self.m, self

    def expansion(self, source: KernelSource, alpha: FloatArray) -> Expansion:
        """The term as an expansion in its landmarks, or in a linear kernel."""
        phi, coef = self.features.map, self.coef
        if isinstance(phi, NystroemMap):
            coef = phi.root @ coef
            if self.features.spherical:
                coef = coef / np.sqrt(_unit_length(phi.kernel))
            return Expansion(phi.kernel, phi.landmarks, coef)
        part = None if self.features.spherical else self._affine_map(as_table(source.X).shape[1])  # type: ignore[attr-defined]
        if part is None:
            raise NotByFeatureError(f"{phi.kernel.label} is known by its features alone")
        W = np.ascontiguousarray(part[0].T)
        return Expansion(Linear().fit(W), W, np.eye(len(W)))

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """z(x) = phi(x) - mean, and phi is linear if the kernel is."""
        _refuse_sphere(self.features.spherical)
        part = self._affine_map(as_table(source.X).shape[1])  # type: ignore[attr-defined]
        if part is None:
            raise NotLinearError(f"kernel {source.names[self.m]!r} is not linear")
        mean = self.features.mean
        return part[0], part[1] - (0.0 if mean is None else mean @ self.coef)

    def _affine_map(self, p: int) -> Affine | None:
        """W and c with phi(x)'coef = x'W + c, or None."""
        phi = self.features.map
        if isinstance(phi, NystroemMap):
            found: Affine | None = phi.kernel.affine(phi.landmarks, phi.root @ self.coef)
            return found
        if not isinstance(phi, ExactMap) or phi.kernel.affine(np.zeros((1, p)), np.zeros((1, 1))) is None:
            return None
        at_zero = phi(np.zeros((1, p)))
        return (phi(np.eye(p)) - at_zero) @ self.coef, at_zero[0] @ self.coef

    def state(self) -> dict[str, Any]:
        """What the term is restored from; the feature map uses the kernel of the source."""
        phi, one = self.features.map, self.features
        maps = {
            ExactMap: ("rank",),
            NystroemMap: ("landmarks", "root"),
            FourierMap: ("frequencies",),
        }
        demand(type(phi) in maps, f"features made by a {type(phi).__name__} cannot be stored")
        return {
            "kernel": int(self.m),
            "map": {name: getattr(phi, name) for name in maps[type(phi)]},
            "spherical": bool(one.spherical),
            "mean": one.mean,
            "constants": np.array([one.scale, one.error, one.size], dtype=np.float64),
            "coef": self.coef,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> FactorTerm:
        """The term of a `state`, checked."""
        m, mean = held_kernel(state["kernel"], source), state["mean"]
        phi = _map_of(state["map"], source.kernels[m])
        mean = None if mean is None else checked(mean, "f", (phi.rank,))
        constants = map(float, checked(state["constants"], "f", (3,)))
        features = Features(phi, bool(state["spherical"]), mean, *constants)
        return cls(m, features, checked(state["coef"], "f", (phi.rank, shape[1])))


TERMS: dict[str, Any] = {"kernel": KernelTerm, "sum": SumTerm, "factor": FactorTerm}


def _map_of(state: dict[str, Any], kernel: Any) -> Any:
    if set(state) == {"rank"}:
        demand(type(state["rank"]) is int and state["rank"] >= 0, "the features of a kernel have no number")
        return ExactMap(kernel, state["rank"])
    if set(state) == {"frequencies"}:
        return FourierMap(kernel, checked(state["frequencies"], "f", (None, None)))
    phi = object.__new__(NystroemMap)
    phi.kernel, phi.landmarks, phi.root = kernel, state["landmarks"], state["root"]
    demand(len(getattr(phi.landmarks, "shape", ())) == 2, "its landmarks are not a table")
    phi.rank = checked(phi.root, "f", (phi.landmarks.shape[0], None)).shape[1]
    return phi


def kernel_terms(
    source: KernelSource, rules: Sequence[Normalization], weights: FloatArray, alpha: FloatArray
) -> list[Any]:
    """Terms of f_j = sum_m weights[j, m] K'_m alpha[:, j]; kernels computed together become a few sums.

    Parameters
    ----------
    source : KernelSource
    rules : sequence of Normalization
        Of all kernels, fitted.
    weights : ndarray of shape (J, M)
    alpha : ndarray of shape (n, J)
    """
    together = source.together
    alone = without(np.asarray(weights.any(axis=0)), together).tolist()
    terms = [source.term(m, rules[m], weights[:, m] * rules[m].scale_, alpha) for m in alone]
    if len(together) == 0:
        return terms
    whole = len(together) == len(source.names)
    return terms + sum_terms(rules if whole else [rules[m] for m in together], weights[:, together], alpha)


def sum_terms(rules: Sequence[Normalization], weights: FloatArray, alpha: FloatArray) -> list[SumTerm]:
    """f_j = sum_k weights[j, k] K'_k alpha[:, j] as a few sums, for kernels with k(x, x) = 1.

    Examples
    --------
    >>> from kernelweave.kernels import resolve_normalization
    >>> rules = [resolve_normalization("variance").fit(np.eye(2)) for _ in range(3)]
    >>> [term] = sum_terms(rules, np.array([[0.5, 0.0, 1.0]]), np.ones((2, 1)))
    >>> term.kernels, term.factors.ravel()
    (array([0, 2]), array([1., 2.]))
    """
    live = np.flatnonzero(weights.any(axis=0))
    scales = getattr(rules, "scales", None)  # for many rules that only scale
    if scales is not None:
        return [SumTerm(live, (weights * scales)[:, live].T)]
    coefs: dict[bytes, FloatArray | None] = {}
    groups: dict[bytes, list[Any]] = {}
    for k in live.tolist():
        rule = rules[k]
        coef, offset = rule.expand(alpha)
        factor = weights[:, k] * rule.scale_
        if rule.needs_diag:
            factor = factor * rule.row_scale(np.ones(1))
        key = b"" if coef is alpha else coef.tobytes()
        coefs[key] = None if coef is alpha else coef
        groups.setdefault(key, []).append((k, factor, offset * factor))
    found = []
    for key, group in groups.items():
        kernels, factors, offsets = map(np.array, zip(*group, strict=True))
        found.append(SumTerm(kernels, factors, coefs[key], offsets if offsets.any() else None))
    return found


def _unit_length(kernel: Kernel) -> FloatArray:
    """k(x, x) of a kernel for which it is the same for all x; `NotByFeatureError` for other kernels."""
    found = constant_diagonal(kernel)
    if found is None:
        raise NotByFeatureError("normalize='spherical' divides by the length of each sample")
    return np.array([found])


def _refuse_sphere(needs_diag: bool) -> None:
    """Raise if a normalisation scales every new sample by its own length."""
    if needs_diag:
        raise NotLinearError("normalize='spherical' divides by the length of each sample")


# -- checks of a state ------------------------------------------------------------------------


def demand(holds: Any, what: str) -> None:
    """Raise unless a state makes sense."""
    if not holds:
        raise ValueError(f"{what}.")


def checked(array: Any, kinds: str, shape: tuple[int | None, ...]) -> Any:
    """An array with a type among `kinds` and this shape, in which None stands for any number."""
    demand(isinstance(array, np.ndarray) and array.dtype.kind in kinds, f"an array of {kinds} is missing")
    fits = len(array.shape) == len(shape)
    fits = fits and all(size in (None, n) for size, n in zip(shape, array.shape, strict=True))
    demand(fits, f"coefficients have shape {array.shape} in place of {shape}")
    return array


def held_kernel(m: Any, source: Any) -> int:
    """The number of a kernel that a source can evaluate."""
    demand(type(m) is int and 0 <= m < source.n_kernels, f"there is no kernel {m!r:.20}")
    held = not isinstance(source, FeatureSource) or source.kernels[m] is not None
    demand(held, f"it weighs kernel {m}, which is not there")
    return int(m)
