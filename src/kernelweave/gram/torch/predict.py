"""Terms of a predictor that are evaluated on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backend import free_bytes, torch
from ..._typing import FloatArray, IntArray
from ...kernels.base import as_numeric, form_of
from ...kernels.columns import as_table, take_columns
from ..sharing import share, share_keys
from ..terms import SumTerm
from .parts import DevicePart, part_of

if TYPE_CHECKING:
    from ..predictor import Predictor

#: bytes of the base between a block of new samples and the support vectors
BLOCK_BYTES = 1 << 28


class GroupTerm:
    """What kernels with one base add: sum_k K_k coef_k.

    Parameters
    ----------
    part : DevicePart
    view : callable
        Returns the values of new data that the kernels see.
    coefs : list of ndarray of shape (n, J)
    factors : ndarray of shape (K,), optional
        Given if there is one array of coefficients: K_k then has factors[k] times these.
    """

    def __init__(
        self,
        part: DevicePart,
        view: Callable[[Any], Any],
        coefs: list[FloatArray],
        factors: FloatArray | None = None,
    ) -> None:
        common = _common(coefs) if factors is None else (coefs[0], factors)
        self.part, self.view, self.factors = part, view, None if common is None else common[1]
        self.coefs = [_double(coef, part) for coef in (coefs if common is None else [common[0]])]

    def add(self, source: Any, alpha: FloatArray, X: Any, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        values = self.view(as_table(X))
        Z = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        base = self.part.base.to(_double(Z, self.part))
        found = torch.zeros(out.shape, dtype=torch.float64, device=base.device)
        if self.factors is not None:
            total = torch.zeros(base.shape[:2], dtype=base.dtype, device=base.device)
            self.part.add(base, self.factors, np.zeros(self.part.n_kernels), total)
            found += total.double() @ self.coefs[0]
        else:
            for k, coef in enumerate(self.coefs):
                found += self.part.values(base, k).double() @ coef
        out += found.cpu().numpy()


class DeviceTerms:
    """The terms of a predictor on a device, followed by the terms that stay on the host.

    Attributes
    ----------
    groups : list of GroupTerm
    rest : list of KernelTerm
    offset : ndarray of shape (J,)
        What is left to add to the values of the groups.
    """

    def __init__(self, predictor: Predictor, device: Any) -> None:
        self.source: Any = predictor.source
        self.alpha, self.offset = predictor.alpha, np.zeros(len(predictor.intercepts))
        # in double precision: the coefficients of a large C would magnify any coarser rounding
        self.kind = torch.empty(0, dtype=torch.float64, device=device)
        self.groups: list[GroupTerm] = []
        self.rest: list[Any] = []
        for term in predictor.terms:
            if isinstance(term, SumTerm):
                self._add_sums(term)
        self._add_groups([term for term in predictor.terms if not isinstance(term, SumTerm)])

    @classmethod
    def of(cls, predictor: Predictor) -> DeviceTerms | None:
        """The terms, made once; None if the device is missing (a model may have moved) or not needed."""
        if not hasattr(predictor, "_on_device"):
            device = predictor.torch_device
            able = device is not None and hasattr(predictor.source, "kernels")
            found = cls(predictor, device) if able else None
            predictor._on_device = found if found is not None and found.groups else None  # type: ignore[attr-defined]
        return predictor._on_device  # type: ignore[attr-defined, no-any-return]

    @property
    def block_rows(self) -> int:
        """Number of new samples to evaluate at a time."""
        free = free_bytes(self.kind.device)
        room = BLOCK_BYTES if free is None else min(BLOCK_BYTES, free // 8)
        return room // max(group.part.base.row_bytes(group.part.n_samples) for group in self.groups)

    def _add_groups(self, terms: list[Any]) -> None:
        """Kernels of distances or products, grouped by what they share; the others stay on the host."""
        keys = share_keys(self.source.kernels)
        groups: dict[Any, list[Any]] = {}
        for term in terms:
            base = keys[term.m][0]
            form = None if base is None or not base.distance else form_of(self.source.kernels[term.m])
            unit = form is not None and form[0] == "exp"
            if base is None or (term.rule.needs_diag and not unit):  # unit: k(x, x) = 1
                self.rest.append(term)
            else:
                groups.setdefault(keys[term.m], []).append(term)
        for own in groups.values():
            kernels = [self.source.kernels[term.m] for term in own]
            (shared,), (members,) = share(kernels, self.source.X)
            pairs = [own[k].coefficients(self.alpha) for k in members]
            part = part_of(shared, self.kind)
            self.groups.append(GroupTerm(part, kernels[0].base_view, [coef for coef, _ in pairs]))
            self.offset += sum(offset for _, offset in pairs)

    def _add_sums(self, term: SumTerm) -> None:
        """Kernels on many subsets of columns, of one function or of functions with the same weights."""
        batch = self.source._batch
        given = self.alpha if term.coef is None else term.coef
        for functions in term.alike():
            part = part_of(batch.part.take(None, term.kernels), self.kind)
            coef = np.zeros_like(given)
            coef[:, functions] = given[:, functions]
            factors = term.factors[:, functions[0]]
            self.groups.append(GroupTerm(part, partial(_numbers, columns=batch.columns), [coef], factors))
        self.offset += term.offset


def _common(coefs: list[FloatArray]) -> tuple[FloatArray, FloatArray] | None:
    """(coef, factors) with coefs[k] = factors[k] coef up to rounding, if they exist."""
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


def _double(coef: FloatArray, part: DevicePart) -> Any:
    return torch.as_tensor(np.ascontiguousarray(coef), device=part.base.like.device).double()
