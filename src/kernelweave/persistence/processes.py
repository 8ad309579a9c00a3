"""Gaussian processes: posteriors, and the kernels and training rows they refer to."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..estimators._process import Process
from ..kernels import Normalization
from ..solvers.multiple.empirical_bayes import Posterior
from .codec import NUMBER, Form, Reader, Writer, entries, exactly, listed, pair_of
from .errors import ModelFileError
from .sources import check_kernel, check_shape, kernel_index, n_rows, read_source, write_source


def _write_process(process: Process, writer: Writer) -> dict[str, Any]:
    return {
        "source": write_source(process.source, process.live.tolist(), writer),
        "live": writer.array(process.live),
        "rules": [writer.value(rule) for rule in process.rules],
        "factors": writer.array(process.factors),
        "columns": writer.array(process.columns),
        "posteriors": [_write_posterior(posterior, writer) for posterior in process.posteriors],
    }


def _read_process(json: Any, reader: Reader) -> Process:
    names = ("source", "live", "rules", "factors", "columns", "posteriors")
    source, live, rules, factors, columns, posteriors = entries(json, *names)
    process = object.__new__(Process)
    process.source, process.live = read_source(source, reader), reader.array(live, "i", 1)
    process.rules = [reader.value(rule, Normalization) for rule in listed(rules)]
    reader.spend(NUMBER * process.live.size)
    process.columns, process.factors = reader.array(columns, "i", 1), reader.array(factors, "f")
    process.posteriors = [_read_posterior(item, len(process.columns), reader) for item in listed(posteriors)]
    for m in process.live.tolist():
        check_kernel(process.source, kernel_index(m, len(process.source.names)))
    check_shape(process.factors, (len(process.posteriors), len(process.live)))
    if len(process.rules) != len(process.live):
        raise ModelFileError("it is damaged: its kernels have not as many normalisations.")
    _check_columns(process.columns, n_rows(process.source))
    return process


def _check_columns(columns: IntArray, rows: int) -> None:
    if len(columns) == 0 or not 0 <= columns.min() <= columns.max() < rows:
        raise ModelFileError("it is damaged: its posterior refers to training rows that are not there.")


def _write_posterior(posterior: Posterior, writer: Writer) -> dict[str, Any]:
    """Without the matrix that only slopes need, and with the lower triangle of the factor."""
    arrays = {
        name: writer.array(getattr(posterior, name)) for name in ("weights", "alpha", "intercept", "root")
    }
    lower = np.concatenate([row[: i + 1] for i, row in enumerate(posterior.L)])
    order = "C" if posterior.L.flags.c_contiguous else "F"
    return {
        **arrays,
        "ones": None if posterior.ones is None else writer.array(posterior.ones),
        "factor": [order, writer.array(lower)],
        "noise": writer.value(float(posterior.noise)),
        "objective": writer.value(float(posterior.objective)),
    }


def _read_posterior(json: Any, n: int, reader: Reader) -> Posterior:
    names = ("weights", "alpha", "intercept", "root", "ones", "factor", "noise", "objective")
    weights, alpha, intercept, root, ones, factor, noise, objective = entries(json, *names)
    posterior = Posterior(
        weights=reader.array(weights, "f", 1),
        noise=reader.value(noise, float),
        objective=reader.value(objective, float),
        alpha=reader.array(alpha, "f", 2),
        intercept=reader.array(intercept, "f", 1),
        L=_read_factor(factor, n, reader),
        root=reader.array(root, "f", 1),
        ones=None if ones is None else reader.array(ones, "f", 1),
    )
    check_shape(posterior.alpha, (n, len(posterior.intercept)))
    check_shape(posterior.root, (n,))
    return posterior


def _read_factor(json: Any, n: int, reader: Reader) -> FloatArray:
    order, number = pair_of(json)
    packed = reader.array(number, "f", 1)
    check_shape(packed, (n * (n + 1) // 2,))
    reader.spend(n * n * packed.itemsize)
    L = np.zeros((n, n), dtype=packed.dtype, order="C" if order == "C" else "F")
    for i in range(n):
        L[i, : i + 1] = packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    return L


PROCESSES = (Form("process", exactly(Process), _write_process, _read_process),)
