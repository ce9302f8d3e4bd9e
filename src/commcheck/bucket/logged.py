"""DDP's own logging data beside a trace that tells no sizes: of gloo, or of torch before 2.1.

``_get_ddp_logging_data()`` lists the buckets in the order in which they are reduced, so that the
k-th all-reduce of a step moves the k-th of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from commcheck.errors import UsageError
from commcheck.frameworks.documents import LOG_KEYS
from commcheck.trace.collectives import named
from commcheck.trace.names import Kind
from commcheck.trace.store import Device, Trace
from commcheck.trace.windows import Window


def is_logged(head: str) -> bool:
    """True where the beginning of a file is that of such data, saved as JSON."""
    return head.lstrip("\ufeff \t\r\n").startswith("{") and any(
        f'"{key}"' in head for key in LOG_KEYS
    )


def logged_sizes(text: str, file: str) -> tuple[int, ...]:
    """Bytes of each bucket, as rebuilt after the first step. Raises ``UsageError``, one line."""
    try:
        document = json.loads(text)
        told = str(document.get("rebuilt_bucket_sizes") or document.get("bucket_sizes") or "")
        sizes = tuple(int(each) for each in told.replace(",", " ").split())
    except (ValueError, AttributeError, RecursionError):
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise UsageError(
            f"{file}: error: no rebuilt_bucket_sizes in it: save _get_ddp_logging_data() after a "
            "few steps [bucket]"
        )
    return sizes


def lay_over(
    trace: Trace, device: Device, found: Sequence[Window], sizes: Sequence[int]
) -> int | None:
    """Give the all-reduces of each step that tell no bytes those of the buckets.

    Returns how many a step has where that is another number, else None.
    """
    other: int | None = None
    for window in found:
        mine = []
        for index in window.events:
            code = trace.codes[device.code[index]]
            if code.kind is Kind.COMM and index not in device.transfers:
                transfer = named(trace, code.name)
                if transfer.kind == "allreduce":
                    mine.append((device.start[index], index, transfer))
        if len(mine) != len(sizes):
            other = len(mine)
            continue
        for (_, index, transfer), size in zip(sorted(mine), sizes, strict=True):
            device.transfers[index] = (transfer._replace(size_bytes=size), -1)
    return other
