"""What the names of HCCL's operators and kernels mean, in whatever a profiler of CANN writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.lazy import regex
from commcheck.trace import names
from commcheck.trace.store import Transfer

_OPERATOR: Final = regex(
    r"^hcom_(?P<kind>[A-Za-z]+?)_*(?:AicpuKernel_*)?(?P<ids>[\d_]*)(@(?P<group>.*))?$"
)
OF_HCCL: Final = regex(r"AicpuKernel(_\d+)?$|^AivKernel|^aiv_(all_|reduce|broadcast|scatter)")
"""Kernels by which HCCL runs an operator itself, on AI CPUs or vector cores: HCCL_OP_EXPANSION_MODE
AI_CPU, the default of Atlas A3, and AIV. They are no computing, and the operator has their time."""


WHOLE: Final = frozenset({"allreduce", "broadcast", "reduce", "send", "recv"})
"""Operators whose count is that of the whole message on every rank (hccl.h)."""


def bytes_of(args: Mapping[str, object]) -> int | None:
    """The bytes that an operator's arguments tell, by ``count`` and ``data_type`` (CANN 8)."""
    count, each = args.get("count"), names.DTYPE_BYTES.get(str(args.get("data_type")).lower())
    if isinstance(count, bool) or not isinstance(count, int) or each is None or count < 0:
        return None
    return count * each


def transfer_named(name: str) -> Transfer | None:
    """What an operator moves, by its name: kind and group; None where it is no operator."""
    operator = _OPERATOR.match(name)
    if operator is None:
        return None
    return Transfer(
        kind=names.collective(operator["kind"]),
        group=operator["group"] or operator["ids"].partition("_")[0],
        group_size=0,
        size_bytes=None,
        about="",
    )
