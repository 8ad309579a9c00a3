"""Predictors evaluated on new data in batches, on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backend import free_bytes, resolve_device, torch
from ..._typing import FloatArray, IntArray
from ...kernels.base import as_numeric, form_of
from ...kernels.columns import as_table, take_columns
from ..sharing import share, share_keys
from ..terms import SumTerm
from .parts import DevicePart, part_of

if TYPE_CHECKING:
    from ..predictor import Predictor

#: bytes of what new samples and support vectors share, at a time
BATCH_BYTES = 1 << 28


def plan_of(predictor: Predictor) -> Plan | None:
    """What evaluates a predictor on its device, made once; None where the host has to."""
    if not hasattr(predictor, "_plan"):
        predictor._plan = Plan.of(predictor)  # type: ignore[attr-defined]
    return predictor._plan  # type: ignore[attr-defined, no-any-return]


class Group:
    """The share of kernels with one base: sum_k K_k coef_k.

    Parameters
    ----------
    part : DevicePart
    view : callable
        The values of new data that they see.
    coefs : list of ndarray of shape (n, J)
    """

    def __init__(self, part: DevicePart, view: Callable[[Any], Any], coefs: list[FloatArray]) -> None:
        self.part, self.view = part, view
        self.sums = [coef.sum(axis=0) for coef in coefs]
        common = _common(coefs)
        self.factors = None if common is None else common[1]
        self.coefs = [_double(coef, part) for coef in (coefs if common is None else [common[0]])]

    def add(self, Z: Any, out: Any) -> None:
        """Add the share on new points to `out`."""
        base = self.part.base.to(Z)
        if self.factors is not None:
            out += self._sum(base) @ self.coefs[0]
            return
        for k, coef in enumerate(self.coefs):
            out += self.part.values(base, k).double() @ coef

    def _sum(self, base: Any) -> Any:
        """sum_k factors[k] K_k."""
        assert self.factors is not None
        total = torch.zeros(base.shape[:2], dtype=base.dtype, device=base.device)
        self.part.add(base, self.factors, np.zeros(self.part.n_kernels), total)
        return total.double()


class Plan:
    """What evaluates a predictor on a device: its groups there, and the rest with the host."""

    def __init__(self, predictor: Predictor, device: Any) -> None:
        self.source, self.alpha, self.J = predictor.source, predictor.alpha, len(predictor.intercepts)
        # in double precision: coefficients of a large C would magnify the rounding of anything less
        self.kind = torch.empty(0, dtype=torch.float64, device=device)
        self.groups: list[Group] = []
        self.rest: list[Any] = []
        self.offset = np.zeros(self.J)
        alone = [term for term in predictor.terms if not isinstance(term, SumTerm)]
        for term in predictor.terms:
            if isinstance(term, SumTerm):
                self._add_sums(term)
        self._add_groups(alone)

    @classmethod
    def of(cls, predictor: Predictor) -> Plan | None:
        """The plan, or None where the device is not there (a model may have moved) or has nothing to do."""
        try:
            device = resolve_device("torch:cpu" if predictor.device == "cpu" else predictor.device)
        except (ImportError, ValueError):
            return None
        if not hasattr(predictor.source, "kernels"):
            return None
        plan = cls(predictor, device)
        return plan if plan.groups else None

    def _add_groups(self, terms: list[Any]) -> None:
        """Kernels of distances or products by what they share; the others stay with the host."""
        keys = share_keys(self.source.kernels)  # type: ignore[attr-defined]
        groups: dict[Any, list[Any]] = {}
        for term in terms:
            if keys[term.m][0] is None or (term.rule.needs_diag and not self._unit(term.m)):
                self.rest.append(term)
            else:
                groups.setdefault(keys[term.m], []).append(term)
        for own in groups.values():
            kernels = [self.source.kernels[term.m] for term in own]  # type: ignore[attr-defined]
            (shared,), (members,) = share(kernels, self.source.X)  # type: ignore[attr-defined]
            own = [own[k] for k in members]
            part = part_of(shared, self.kind)
            pairs = [term.coefficients(self.alpha) for term in own]
            self.groups.append(Group(part, kernels[0].base_view, [coef for coef, _ in pairs]))
            self.offset += sum(offset for _, offset in pairs)

    def _unit(self, m: int) -> bool:
        """Whether k(x, x) = 1, as for exponentials of a distance."""
        kernel = self.source.kernels[m]  # type: ignore[attr-defined]
        form = form_of(kernel)
        return form is not None and form[0] == "exp" and kernel.base.distance

    def _add_sums(self, term: SumTerm) -> None:
        """Kernels on many subsets of columns: those of one function, or of functions that weigh alike."""
        batch = self.source._batch  # type: ignore[attr-defined]
        given = self.alpha if term.coef is None else term.coef
        for functions in term.alike():
            part = part_of(batch.part.take(None, term.kernels), self.kind)
            coef = np.zeros_like(given)
            coef[:, functions] = given[:, functions]
            group = Group(part, partial(_numbers, columns=batch.columns), [coef])
            group.factors = term.factors[:, functions[0]]
            self.groups.append(group)
        self.offset += term.offset

    def __call__(self, X: Any) -> FloatArray:
        n, out = X.shape[0], np.tile(self.offset, (X.shape[0], 1))
        table = as_table(X)
        for group in self.groups:
            Z = torch.as_tensor(np.ascontiguousarray(_dense(group.view(table))))
            for rows in self._batches(n, group.part):
                found = torch.zeros(
                    (rows.stop - rows.start, self.J), dtype=torch.float64, device=self.kind.device
                )
                group.add(Z[rows].to(self.kind), found)
                out[rows] += found.cpu().numpy()
        for term in self.rest:
            for rows in self._batches(n, self.groups[0].part):
                term.add(self.source, self.alpha, self.source.rows(X, rows), out[rows])
        return out

    def _batches(self, n: int, part: DevicePart) -> list[slice]:
        free = free_bytes(self.kind.device)
        room = BATCH_BYTES if free is None else min(BATCH_BYTES, free // 8)
        step = max(1, room // max(1, part.base.row_bytes(part.n_samples)))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _common(coefs: list[FloatArray]) -> tuple[FloatArray, FloatArray] | None:
    """(coef, factors) with coefs[k] = factors[k] coef up to rounding, if there are such."""
    first = max(coefs, key=lambda coef: float(np.abs(coef).max(initial=0.0)))
    energy = float(np.einsum("ij,ij->", first, first))
    factors = np.array([float(np.einsum("ij,ij->", coef, first)) for coef in coefs]) / max(energy, 1e-300)
    size = 1e-13 * float(np.abs(first).max(initial=0.0))
    alike = all(
        np.abs(coef - factor * first).max(initial=0.0) <= size
        for coef, factor in zip(coefs, factors, strict=True)
    )
    return (first, factors) if alike else None


def _numbers(table: Any, columns: IntArray) -> Any:
    return as_numeric(take_columns(table, columns))


def _dense(values: Any) -> FloatArray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _double(coef: FloatArray, part: DevicePart) -> Any:
    return torch.as_tensor(np.ascontiguousarray(coef), device=part.base.like.device).double()
