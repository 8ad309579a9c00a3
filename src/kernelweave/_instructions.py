"""Instructions of the processor that compiled functions use and Python has no word for."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

#: bytes that come into the cache together
LINE = 64


@intrinsic
def larger(typing_context, a, b):  # type: ignore[no-untyped-def]
    """max(a, b) such that loops over it are vectorised: comparisons of Python's `max` are not."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = args[0].type
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(maximum, args, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), emit


@intrinsic
def pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """The place in memory that has this address."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.intp), emit


@intrinsic
def fetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Bring the `LINE` of an address into the cache, and do not wait for it; any address will do."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        known = ir.FunctionType(ir.VoidType(), [kind, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [kind], known)
        to_read, keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(prefetch, [builder.inttoptr(args[0], kind), to_read, keep, data])
        return context.get_dummy_value()

    return types.void(types.intp), emit
