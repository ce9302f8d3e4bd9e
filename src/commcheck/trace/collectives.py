"""The collectives of one rank: what each moved, how long it took, and sums of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

from commcheck.trace import names
from commcheck.trace.facts import Call, Moved
from commcheck.trace.names import TINY_BYTES, Kind
from commcheck.trace.roles import Role, role_of_kernel
from commcheck.trace.store import Device, Trace, Transfer
from commcheck.trace.windows import Window

SMALL_BYTES: Final = 1 << 20
"""Below this a collective's time is mostly latency: n_half = alpha x beta is 25 us x 40 GB/s = 1 MB
for NCCL inside one rail (nccl-tests, small-message end of an all-reduce sweep)."""


def link_records(trace: Trace) -> None:
    """Give device events without arguments those of the host call that launched them.

    Older torch writes no arguments on kernels. And NCCL 2.28 moves data inside a host by copy
    engines: then copies launched within a collective call, with no kernel, are the communication.
    """
    if not trace.records:
        return
    records = sorted(trace.records)
    begins = [record.start for record in records]
    for name, device in trace.devices.items():
        of_kernel = set(device.transfers)
        copies: dict[int, list[int]] = {}
        with_kernel: set[int] = set()
        kinds = [code.kind for code in trace.codes]
        computes = [kind is Kind.COMPUTE for kind in kinds]
        others = [index for index, code in enumerate(device.code) if not computes[code]]
        for index in others:
            kind, launch = kinds[device.code[index]], device.launch_start[index]
            if launch < 0:
                continue
            place = bisect_right(begins, launch) - 1
            if place < 0 or launch >= records[place].end:
                continue
            if kind is Kind.COMM:
                with_kernel.add(place)
                if index not in of_kernel:
                    device.transfers[index] = (records[place].transfer, records[place].seq)
            else:
                copies.setdefault(place, []).append(index)
        for place, indices in copies.items():
            if place not in with_kernel:
                _copied(trace, name, device, indices, records[place].transfer, records[place].seq)


def _copied(
    trace: Trace, name: str, device: Device, indices: list[int], transfer: Transfer, seq: int
) -> None:
    for number, index in enumerate(indices):
        stream = trace.codes[device.code[index]].stream
        code = trace.code(Kind.COMM, f"copy engine {transfer.kind}", name, stream)
        device.code[index] = code
        # The bytes are those of the call: told once, however many copies it took.
        whole = transfer if number == 0 else transfer._replace(size_bytes=None)
        device.transfers[index] = (whole, seq)


def _is_call(trace: Trace, device: Device) -> list[bool]:
    """By code: True where an event of it is a collective to be counted."""
    united = any(trace.codes[code].kind is Kind.OPERATOR for code in set(device.code))
    counted = Kind.OPERATOR if united else Kind.COMM
    return [code.kind is counted for code in trace.codes]


def calls_of(trace: Trace, device: Device, found: Sequence[Window]) -> tuple[Call, ...]:
    """Every collective that belongs to a step, in order of time within the step."""
    is_call = _is_call(trace, device)
    calls = []
    for step, window in enumerate(found):
        mine = [index for index in window.events if is_call[device.code[index]]]
        mine.sort(key=lambda index: (device.start[index], device.end[index]))
        for index in mine:
            code = trace.codes[device.code[index]]
            transfer, seq = device.transfers.get(index) or (named(trace, code.name), -1)
            calls.append(
                Call(
                    step,
                    transfer,
                    seq,
                    code.stream,
                    device.start[index] + trace.base_ns,
                    device.end[index] + trace.base_ns,
                )
            )
    return tuple(calls)


def named(trace: Trace, kernel: str) -> Transfer:
    """What a kernel moves that has no arguments, by its name alone."""
    size = (trace.world or 0) if trace.layout == "cpu" else 0
    role = role_of_kernel(kernel)
    about = "" if role is Role.OTHER else str(role)
    return Transfer(names.collective(kernel), "", size, None, about)


def moved_of(calls: Sequence[Call]) -> tuple[Moved, ...]:
    """Sums of calls by kind and group, the longest first."""
    groups: dict[tuple[str, str, int, str], list[Call]] = {}
    for call in calls:
        what = call.transfer
        key = (what.kind, what.group, what.group_size, what.about)
        groups.setdefault(key, []).append(call)
    sums = [_sum(key, mine) for key, mine in groups.items()]
    return tuple(sorted(sums, key=lambda each: (-each.time_ns, each.kind, each.group)))


def _sum(key: tuple[str, str, int, str], calls: Sequence[Call]) -> Moved:
    sized = [
        (size, call.end - call.start)
        for call in calls
        if (size := call.transfer.size_bytes) is not None
    ]
    small = [ns for size, ns in sized if size < SMALL_BYTES]
    tiny = [ns for size, ns in sized if size < TINY_BYTES]
    return Moved(
        *key,
        count=len(calls),
        time_ns=sum(call.end - call.start for call in calls),
        sized=len(sized),
        sized_ns=sum(ns for _, ns in sized),
        size_bytes=sum(size for size, _ in sized),
        sizes=Counter(size for size, _ in sized),
        small_ns=sum(small),
        tiny_ns=sum(tiny),
        tiny_count=len(tiny),
    )
