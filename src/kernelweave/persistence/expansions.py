"""The learned functions: kernels on support vectors, normalisations, coefficients.

Only what an evaluation reads is written: the kernels with weight, the training rows with a coefficient.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._typing import IntArray
from ..estimators._stages import StagedExpansion
from ..gram.dictionary import Expansion, _Term
from ..gram.sum_terms import SumTerm
from ..kernels import Normalization
from .codec import Form, Reader, Writer, count_of, entries, exactly, listed, pair_of, text
from .errors import ModelFileError
from .sources import (
    check_kernel,
    check_shape,
    kernel_index,
    n_rows,
    read_batch,
    read_source,
    write_batch,
    write_source,
)


def _write_expansion(expansion: Expansion, writer: Writer) -> dict[str, Any]:
    terms = [term for term in expansion.terms if isinstance(term, _Term)]
    sums = [term for term in expansion.terms if isinstance(term, SumTerm)]
    if len(terms) + len(sums) < len(expansion.terms):
        writer.refuse("it adds up terms of an unknown kind", "fit with another engine")
    together = np.unique(np.concatenate([term.kernels for term in sums])) if sums else None
    return {
        "source": write_source(expansion.source, [term.m for term in terms], writer),
        "batch": None if together is None else write_batch(expansion.source, together, writer),
        "terms": [_write_term(term, writer) for term in terms],
        "sums": [_write_sum(term, together, writer) for term in sums],
        "n_functions": int(expansion.n_functions),
        "support": writer.array(expansion.support),
        "device": getattr(expansion, "device", None),
    }


def _read_expansion(json: Any, reader: Reader) -> Expansion:
    names = ("source", "batch", "terms", "sums", "n_functions", "support", "device")
    source, batch, terms, sums, n_functions, support, device = entries(json, *names)
    expansion = object.__new__(Expansion)
    origin = read_source(source, reader)
    expansion.source, expansion.n_functions = origin, count_of(n_functions)
    expansion.support = reader.array(support, "i", 1)
    reader.spend(expansion.support.nbytes)
    if batch is not None:
        read_batch(batch, origin, reader)
    shape = (n_rows(origin), expansion.n_functions)
    expansion.terms = [_read_term(term, origin, shape, reader) for term in listed(terms)]
    expansion.terms += [_read_sum(term, origin, shape, reader) for term in listed(sums)]
    if len(expansion.support) != shape[0]:
        raise ModelFileError("it is damaged: its support vectors are not as many as its training rows.")
    if device is not None:
        expansion.device = _device(device)
    return expansion


def _device(json: Any) -> str:
    if not re.fullmatch(r"[a-z]{2,8}(:\d{1,3})?", text(json)):
        raise ModelFileError(f"it names the device {json!r:.40}, which there is not.")
    return json


def _write_term(term: _Term, writer: Writer) -> dict[str, Any]:
    rule = type(term.rule)()  # its sums over training samples are in the coefficients already
    rule.scale_ = term.rule.scale_
    coefs = {"coef": writer.array(term.coef), "offset": writer.array(np.asarray(term.offset))}
    return {"kernel": int(term.m), "rule": writer.value(rule), **coefs}


def _read_term(json: Any, source: Any, shape: tuple[int, int], reader: Reader) -> _Term:
    m, rule, coef, offset = entries(json, "kernel", "rule", "coef", "offset")
    check_kernel(source, kernel_index(m, len(source.names)))
    term = _Term(m, reader.value(rule, Normalization), reader.array(coef, "f"), reader.array(offset, "f"))
    check_shape(term.coef, shape)
    check_shape(term.offset, shape[1:])
    return term


def _write_sum(term: SumTerm, together: Any, writer: Writer) -> dict[str, Any]:
    arrays = {name: writer.array(getattr(term, name)) for name in ("coef", "factors", "offset")}
    offsets = None if term.offsets is None else writer.array(term.offsets)
    return {"kernels": writer.array(np.searchsorted(together, term.kernels)), "offsets": offsets, **arrays}


def _read_sum(json: Any, source: Any, shape: tuple[int, int], reader: Reader) -> SumTerm:
    kernels, coef, factors, offset, offsets = entries(json, "kernels", "coef", "factors", "offset", "offsets")
    chosen = reader.array(kernels, "i", 1)
    reader.spend(chosen.nbytes)
    term = SumTerm(chosen, reader.array(coef, "f"), reader.array(factors, "f"), reader.array(offset, "f"))
    check_shape(term.coef, shape)
    check_shape(term.factors, (len(chosen), shape[1]))
    check_shape(term.offset, shape[1:])
    if offsets is not None:
        term.offsets = reader.array(offsets, "f")
        check_shape(term.offsets, term.factors.shape)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(source.together):
        raise ModelFileError("it is damaged: it adds up kernels that are not there.")
    return term


# -- paths ------------------------------------------------------------------------------------


def _write_stages(stages: StagedExpansion, writer: Writer) -> dict[str, Any]:
    rules = sorted(stages.rules.items())
    return {
        "source": write_source(stages.source, [m for m, _ in rules], writer),
        "rules": [[int(m), writer.value(rule)] for m, rule in rules],
        "sets": [[int(m) for m in kernels] for kernels in stages.sets],
        "alphas": writer.array(stages.alphas),
        "support": writer.array(stages.support),
    }


def _read_stages(json: Any, reader: Reader) -> StagedExpansion:
    source, rules, sets, alphas, support = entries(json, "source", "rules", "sets", "alphas", "support")
    stages = object.__new__(StagedExpansion)
    stages.source = read_source(source, reader)
    size = len(stages.source.names)
    stages.rules = {
        kernel_index(m, size): reader.value(rule, Normalization) for m, rule in map(pair_of, listed(rules))
    }
    stages.sets = [tuple(kernel_index(m, size) for m in listed(kernels)) for kernels in listed(sets)]
    stages.alphas, stages.support = reader.array(alphas, "f", 3), reader.array(support, "i", 1)
    reader.spend(stages.support.nbytes)
    for m in {m for kernels in stages.sets for m in kernels} | set(stages.rules):
        check_kernel(stages.source, m)
        if m not in stages.rules:
            raise ModelFileError(f"it is damaged: kernel {m} has no normalisation.")
    _check_support(stages.support, stages.alphas.shape[1], n_rows(stages.source))
    if len(stages.sets) != len(stages.alphas):
        raise ModelFileError("it is damaged: its path has as many coefficients as kernels in no model.")
    return stages


def _check_support(support: IntArray, n_samples: int, rows: int) -> None:
    inside = len(support) == 0 or 0 <= support.min() <= support.max() < n_samples
    if not inside or len(support) != rows:
        raise ModelFileError("it is damaged: its support vectors are not its training rows.")


EXPANSIONS = (
    Form("expansion", exactly(Expansion), _write_expansion, _read_expansion),
    Form("stages", exactly(StagedExpansion), _write_stages, _read_stages),
)
