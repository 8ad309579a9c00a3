"""The learned functions of models with low-rank kernels: feature maps and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gram.lowrank import ExactMap, FeatureMap, Features, FourierMap, NystroemMap
from ..gram.lowrank.dictionary import FactorExpansion, FactorTerm
from .codec import Form, Reader, Writer, count_of, entries, exactly, listed
from .errors import ModelFileError
from .sources import check_kernel, check_shape, kernel_index, read_source, write_source


def _write(expansion: FactorExpansion, writer: Writer) -> dict[str, Any]:
    terms = expansion.terms
    return {
        "source": write_source(expansion.source, [term.m for term in terms], writer),  # type: ignore[union-attr]
        "terms": [_write_term(term, writer) for term in terms],
        "n_functions": int(expansion.n_functions),
        "support": writer.array(expansion.support),
    }


def _read(json: Any, reader: Reader) -> FactorExpansion:
    source, terms, n_functions, support = entries(json, "source", "terms", "n_functions", "support")
    expansion = object.__new__(FactorExpansion)
    expansion.source, expansion.n_functions = read_source(source, reader), count_of(n_functions)
    expansion.support = reader.array(support, "i", 1)
    if len(expansion.support) == 0:
        raise ModelFileError("it is damaged: it has no training rows.")
    functions = (expansion.source, expansion.n_functions)
    expansion.terms = [_read_term(term, *functions, reader) for term in listed(terms)]  # type: ignore[misc]
    return expansion


def _write_term(term: Any, writer: Writer) -> dict[str, Any]:
    one = term.features
    constants = [float(one.scale), float(one.error), float(one.size)]
    return {
        "kernel": int(term.m),
        "map": _write_map(one.map, writer),
        "spherical": bool(one.spherical),
        "mean": None if one.mean is None else writer.array(one.mean),
        "constants": writer.array(np.array(constants)),
        "coef": writer.array(term.coef),
    }


def _write_map(phi: FeatureMap, writer: Writer) -> dict[str, Any]:
    if type(phi) is ExactMap:
        return {"exact": phi.rank}
    if type(phi) is NystroemMap:
        return {"nystroem": [writer.value(phi.landmarks, "landmarks"), writer.array(phi.root)]}
    if type(phi) is FourierMap:
        return {"fourier": writer.array(phi.frequencies)}
    writer.refuse(f"its features are made by a {type(phi).__name__}", "use approximation='nystroem'")
    raise AssertionError


def _read_term(json: Any, source: Any, n_functions: int, reader: Reader) -> FactorTerm:
    names = ("kernel", "map", "spherical", "mean", "constants", "coef")
    m, phi, spherical, mean, constants, coef = entries(json, *names)
    check_kernel(source, kernel_index(m, len(source.names)))
    one = Features(_read_map(phi, source.kernels[m], reader), bool(spherical))
    values = reader.array(constants, "f", 1)
    check_shape(values, (3,))
    one.scale, one.error, one.size = map(float, values)
    if mean is not None:
        one.mean = reader.array(mean, "f", 1)
        check_shape(one.mean, (one.map.rank,))
    term = FactorTerm(m, one, reader.array(coef, "f", 2))
    check_shape(term.coef, (one.map.rank, n_functions))
    return term


def _read_map(json: Any, kernel: Any, reader: Reader) -> FeatureMap:
    if not isinstance(json, dict) or len(json) != 1:
        raise ModelFileError("it is damaged: a kernel has no features.")
    ((kind, content),) = json.items()
    if kind == "exact":
        return ExactMap(kernel, count_of(content))
    if kind == "fourier":
        return FourierMap(kernel, reader.array(content, "f", 2))
    if kind != "nystroem" or len(listed(content)) != 2:
        raise ModelFileError(f"it has features of the kind {kind!r:.40}, which is not known.")
    phi = object.__new__(NystroemMap)
    phi.kernel, phi.landmarks = kernel, reader.value(content[0])
    phi.root = reader.array(content[1], "f", 2)
    phi.rank = phi.root.shape[1]
    if len(getattr(phi.landmarks, "shape", ())) != 2 or phi.landmarks.shape[0] != len(phi.root):
        raise ModelFileError("it is damaged: its landmarks do not fit its features.")
    return phi


FACTORS = (Form("factors", exactly(FactorExpansion), _write, _read),)
