"""Ways to spoil a model file, those that leave the checksums wrong and those that make them right again."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

from kernelweave._container import FIELDS, FORMAT, MAGIC, PREAMBLE, seal
from kernelweave.persistence.classes import GP_KERNELS, own_classes
from kernelweave.persistence.pipelines import CLASSES

from .test_container import mend

TRICKS = [
    "../../../etc/passwd",
    "/dev/zero",
    "file:///etc/passwd",
    "os.system",
    "__builtins__",
    "builtins.eval",
    "__class__",
    "__reduce__",
    "kernel:FunctionKernel",
    "model:../x",
    "\x00",
    "\ud800",
    "A" * 5000,
    "",
    "nan",
    "|O",
    "<f8",
    *own_classes(),
    *(f"gp:{name}" for name in GP_KERNELS),
    *(f"sklearn:{name}" for name in CLASSES),
]
NUMBERS = [0, 1, -1, 2, 7, 2**31, 2**63, 2**64, 10**30, -(10**18), 0.5, 1e308, -0.0, True, False, None]


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


# -- bytes ------------------------------------------------------------------------------------


def flip_bits(raw: bytes, rng: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def truncate(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(len(raw))]


def extend(raw: bytes, rng: random.Random) -> bytes:
    return raw + rng.randbytes(rng.randrange(1, 200))


def swap_sections(raw: bytes, rng: random.Random) -> bytes:
    a, b, c = sorted(rng.sample([0, FIELDS.size, PREAMBLE, _json_end(raw), *_cuts(raw, rng), len(raw)], 3))
    return raw[:a] + raw[b:c] + raw[a:b] + raw[c:]


def blank(raw: bytes, rng: random.Random) -> bytes:
    start, end = sorted(_cuts(raw, rng))
    return raw[:start] + bytes(end - start) + raw[end:]


def oversize_header(raw: bytes, rng: random.Random) -> bytes:
    """Lengths and versions that lie, with and without a checksum of the lie."""
    version = rng.choice((FORMAT, FORMAT, 0, 2, 2**32 - 1))
    lengths = [
        rng.choice((0, 1, len(raw), 2**31, 2**63, 2**64 - 1, _json_end(raw) - PREAMBLE)) for _ in range(2)
    ]
    fields = FIELDS.pack(MAGIC, version, rng.choice((0, 0, 1)), *lengths)
    text = raw[PREAMBLE : _json_end(raw)]
    digest = hashlib.sha256(fields + text).digest() if rng.random() < 0.7 else raw[FIELDS.size : PREAMBLE]
    return fields + digest + raw[PREAMBLE:]


def disguise_pickle(raw: bytes, rng: random.Random) -> bytes:
    """A pickle alone, behind the magic, in place of the JSON or of the data."""
    evil = pickle.dumps(Evil(), protocol=rng.randrange(6))
    text, data = raw[PREAMBLE : _json_end(raw)], raw[_json_end(raw) :]
    wrapped = seal(evil, PREAMBLE + len(evil) + len(data)) + evil + data
    resealed = seal(text, PREAMBLE + len(text) + len(evil)) + text + evil
    return rng.choice((evil, MAGIC + evil, raw[:PREAMBLE] + evil, wrapped, resealed, evil + raw))


def _cuts(raw: bytes, rng: random.Random) -> list[int]:
    return [rng.randrange(len(raw)), rng.randrange(len(raw))]


def _json_end(raw: bytes) -> int:
    return PREAMBLE + FIELDS.unpack(raw[: FIELDS.size])[3]


# -- content, under right checksums -----------------------------------------------------------


def mutate_json(raw: bytes, rng: random.Random) -> bytes:
    """One to three values of the description replaced, removed, repeated or exchanged."""
    head, data = _open(raw)
    for _ in range(rng.choice((1, 1, 2, 3))):
        nodes = list(_nodes(head))
        holder, key = rng.choice(nodes)
        rng.choice(EDITS)(holder, key, nodes, rng)
    return _close(head, data)


def mutate_layout(raw: bytes, rng: random.Random) -> bytes:
    """The table of arrays says other types, orders and shapes."""
    head, data = _open(raw)
    entry = rng.choice(head["arrays"])
    place = rng.randrange(3)
    types = ["|O", "<f4", "<f8", "<i8", "|b1", "<U2", "|S8", "V8", ">f8", "<M8[ns]", "<U999999"]
    shapes = [[], [0], [2**40], [2**31, 2**31, 4], entry[2][::-1], [*entry[2], 1], [-1], [1] * 40, [10**30]]
    entry[place] = rng.choice((types, ["C", "F", "K", 1], shapes)[place])
    if rng.random() < 0.2:
        rng.shuffle(head["arrays"])
    return _close(head, data)


def mutate_data(raw: bytes, rng: random.Random) -> bytes:
    """Other numbers in the arrays."""
    head, data = _open(raw)
    out = bytearray(data)
    for _ in range(rng.choice((1, 4, 32))):
        out[rng.randrange(len(out))] = rng.choice((0, 255, rng.randrange(256)))
    return _close(head, bytes(out))


def deep_json(raw: bytes, rng: random.Random) -> bytes:
    """Brackets without end, digits without end, and text that is not JSON."""
    _, data = _open(raw)
    depth = rng.choice((50, 100, 1000, 20_000))
    opening, closing = rng.choice((("[", "]"), ('{"tuple":[', "]}"), ('{"a":', "}")))
    texts = (
        opening * depth + "1" + closing * depth,
        opening * depth,
        "[" + "9" * depth + "]",
        "[" + "[]," * depth + "1]",
        '{"content":NaN}',
        '{"a":1,"a":2}',
        '"' + "\\u0041" * depth + '"',
        rng.randbytes(depth).hex(),
    )
    text = rng.choice(texts).encode()
    return seal(text, PREAMBLE + len(text) + len(data)) + text + data


def _open(raw: bytes) -> tuple[Any, bytes]:
    end = _json_end(raw)
    return json.loads(raw[PREAMBLE:end]), raw[end:]


def _close(head: Any, data: bytes) -> bytes:
    with contextlib.suppress(KeyError, TypeError, IndexError):
        mend(head, data)
    text = json.dumps(head).encode()
    return seal(text, PREAMBLE + len(text) + len(data)) + text + data


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: the container, and the key in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _nodes(value[key])


def _replace(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    holder[key] = rng.choice(
        (rng.choice(NUMBERS), rng.choice(TRICKS), [], {}, [0], {"array": rng.randrange(40)})
    )


def _nudge(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    if type(holder[key]) in (int, float):
        holder[key] += rng.choice((-1, 1, 100))
    elif isinstance(holder[key], str):
        holder[key] = holder[key][::-1] + rng.choice(TRICKS)[:40]
    else:
        _replace(holder, key, nodes, rng)


def _exchange(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    other, place = rng.choice(nodes)
    holder[key] = copy.deepcopy(other[place]) if place in _keys(other) else None


def _remove(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[rng.choice(TRICKS)] = copy.deepcopy(holder[key])


def _wrap(holder: Any, key: Any, nodes: Any, rng: random.Random) -> None:
    kind = rng.choice(
        (
            "tuple",
            "list",
            "object",
            "array",
            "dict",
            "probability",
            "objects",
            "frame",
            "csr",
            "sklearn",
            "dtype",
        )
    )
    holder[key] = {kind: copy.deepcopy(holder[key])}


def _keys(value: Any) -> Any:
    return value if isinstance(value, dict) else range(len(value))


EDITS = (_replace, _replace, _nudge, _exchange, _remove, _repeat, _wrap)

#: whose checksums are wrong, unless the file is the same
BROKEN: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits,
    truncate,
    extend,
    swap_sections,
    blank,
    oversize_header,
    disguise_pickle,
)

#: whose checksums are right
SEALED = (mutate_json, mutate_json, mutate_json, mutate_layout, mutate_data, deep_json)
