"""The kernels of one fit on a device: normalisations fitted there, and the engine."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, overload

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ...kernels import Normalization, resolve_normalization
from ...kernels.normalize import Variance
from ..blocks import Blocks
from ..normalised import normalised
from .engine import TorchGram
from .sums import Constants


class ScaledRules(Sequence[Normalization]):
    """Normalisations of many kernels that only scale, made when they are asked for.

    Parameters
    ----------
    rule : Normalization
    scales : ndarray of shape (M,)
    """

    def __init__(self, rule: Normalization, scales: FloatArray) -> None:
        self.rule, self.scales = rule, scales

    def __len__(self) -> int:
        return len(self.scales)

    @overload
    def __getitem__(self, m: int) -> Normalization: ...
    @overload
    def __getitem__(self, m: slice) -> Sequence[Normalization]: ...
    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return ScaledRules(self.rule, self.scales[m])
        rule = copy(self.rule)
        rule.scale_ = float(self.scales[m])
        return rule


class _OnDevice(Blocks):
    """Raw kernels whose products an engine computes."""

    def __init__(self, blocks: Blocks, engine: TorchGram) -> None:
        super().__init__(blocks.parts, blocks.members)
        self.engine = engine

    def products(self, vectors: FloatArray) -> FloatArray:
        if (vectors == vectors[0]).all():
            return self.engine.products(vectors[0])
        each = (self.engine.subset(kernels=np.array([m])) for m in range(self.n_kernels))
        return np.concatenate([one.products(v) for one, v in zip(each, vectors, strict=True)])

    def take(self, samples: Any = None, kernels: Any = None) -> Blocks:
        return _OnDevice(super().take(samples, kernels), self.engine.subset(samples, kernels))


def fit_on_device(
    blocks: Blocks, normalize: Any, sample_weight: FloatArray | None, engine: TorchGram
) -> tuple[Sequence[Normalization], FloatArray]:
    """Fit the normalisations of raw kernels and give their constants to the engine of these kernels.

    Returns
    -------
    rules : sequence of Normalization
    scales : ndarray of shape (M,)
    """
    rule = resolve_normalization(normalize)
    if type(rule) is Variance:
        scales = _inverse_variances(engine, sample_weight)
        engine.constants.scales = scales
        return ScaledRules(rule, scales), scales
    fitted, rules = normalised(_OnDevice(blocks, engine), normalize, sample_weight)
    scales = np.array([own.scale_ for own in rules])
    constants = Constants(scales, fitted.roots, fitted.means, fitted.grands, np.zeros(len(scales)))
    engine.constants = constants
    constants.centres = engine.mean_entries()
    return rules, scales


def _inverse_variances(engine: TorchGram, sample_weight: FloatArray | None) -> FloatArray:
    """1 / (mean diagonal - mean of all entries) of every kernel, or 0 where that is only rounding."""
    n = engine.n_samples
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    share = weight / weight.sum()
    diagonals = engine.mean_diagonals(share)
    spread = diagonals - engine.quad(share)
    eps = float(torch.finfo(engine.kind.dtype).eps)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e3 * eps * np.abs(diagonals))


def open_engine(
    blocks: Blocks, device: Any, double: bool, memory_limit: int | None, host_sums: bool
) -> TorchGram:
    """The engine of raw kernels."""
    dtype = torch.float64 if double else torch.float32
    return TorchGram(blocks, None, device, dtype, memory_limit, host_sums)
