"""torch_npu's trace_view.json: a bare list whose rows are told by process and thread names.

Operators stand on the threads "Group N Communication"; the planes beneath them are their parts and
are not counted. The rows of "Overlap Analysis" are unions already and are used for the times where
they exist; else computing is the union of the tasks of compute types on "Ascend Hardware".
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.lazy import regex
from commcheck.trace import hcclgroups, names
from commcheck.trace.chrome import Event, closed, times
from commcheck.trace.hcclnames import OF_HCCL, WHOLE, bytes_of, transfer_named
from commcheck.trace.names import Kind
from commcheck.trace.source import Source
from commcheck.trace.store import Trace, Transfer

COMPUTE: Final = regex(r"AI_?CORE|AI_VECTOR|AIVEC|AI_?CPU|MIX_AI|DSA|FFTS", re.I)
MEMORY: Final = regex(r"MEMCPY|MEMSET|SDMA", re.I)
_STEP: Final = regex(r"^ProfilerStep#\d+$")
_ROWS: Final = {"Computing": Kind.COMPUTE, "Communication": Kind.COMM}
_IGNORED: Final = frozenset({"CANN", "AscendCL"})

Row = tuple[str, str]
"""Process and thread of an event, as the file numbers them."""


def scan(path: Source, found: Iterator[Event], trace: Trace) -> None:
    """Read the events into ``trace``: one device, its steps, its operators."""
    trace.layout = "ascend"
    processes: dict[str, str] = {}
    threads: dict[Row, str] = {}
    held: dict[tuple[Row, str, str], tuple[array[int], array[int]]] = {}
    sizes: dict[tuple[Row, str], int | None] = {}

    def named() -> Iterator[Event]:
        for event in found:
            if event.get("ph") == "M":
                args = event.get("args")
                name = str(args.get("name", "")) if isinstance(args, dict) else ""
                if event.get("name") == "process_name":
                    processes[str(event.get("pid"))] = name
                elif event.get("name") == "thread_name":
                    threads[(str(event.get("pid")), str(event.get("tid")))] = name
            else:
                yield event

    for event in closed(path, named()):
        row = (str(event.get("pid")), str(event.get("tid")))
        if processes.get(row[0]) in _IGNORED:
            continue
        name = str(event.get("name"))
        if _STEP.match(name) or names.INPUT.match(name) or event.get("cat") == "user_annotation":
            trace.annotate(name, *times(path, event), trace.thread(*row))
        elif "cat" not in event:
            args = event.get("args")
            args = args if isinstance(args, dict) else {}
            task = str(args.get("Task Type", ""))
            if "data_type" in args:
                size = bytes_of(args)
                sizes[row, name] = size if sizes.get((row, name), size) == size else None
            # The processes' names may stand behind their events: what a row is, is settled below.
            starts, ends = held.setdefault((row, name, task), (array("q"), array("q")))
            start, end = times(path, event)
            starts.append(start)
            ends.append(end)
    groups = hcclgroups.beside(path)
    trace.world = groups.world
    _settle(trace, processes, threads, held, sizes, groups)


def _settle(
    trace: Trace,
    processes: dict[str, str],
    threads: dict[Row, str],
    held: dict[tuple[Row, str, str], tuple[array[int], array[int]]],
    sizes: Mapping[tuple[Row, str], int | None],
    groups: hcclgroups.Groups,
) -> None:
    device = trace.device("npu")
    united = any(
        processes.get(row[0]) == "Overlap Analysis" and name in _ROWS for row, name, _ in held
    )
    told = any(transfer_named(name) for _, name, _ in held)
    for (row, name, task), (starts, ends) in held.items():
        process, thread = processes.get(row[0], ""), threads.get(row, row[1])
        kind = Kind.OTHER
        transfer: Transfer | None = None
        if process == "Overlap Analysis":
            kind = _ROWS.get(name, Kind.OTHER)
        elif process in ("HCCL", "Communication"):
            transfer = None if thread.startswith("Plane") else transfer_named(name)
            if transfer is not None:
                # Of an all-gather or a reduce-scatter it is what one rank gives or gets.
                size = sizes.get((row, name)) if transfer.kind in WHOLE else None
                transfer = groups.told(transfer)._replace(size_bytes=size)
                kind = Kind.OPERATOR if united else Kind.COMM
        elif process == "Ascend Hardware" and OF_HCCL.search(name):
            kind = Kind.OTHER if told or united else Kind.COMM
        elif process == "Ascend Hardware" and MEMORY.search(task or name):
            kind = Kind.MEM
        elif process == "Ascend Hardware" and COMPUTE.search(task):
            kind = Kind.TASK if united else Kind.COMPUTE
        if kind is Kind.OTHER:
            continue
        # Operators carry their number in their name: one code for all of a kind.
        code = trace.code(kind, transfer.kind if transfer else name, "npu", thread)
        for start, end in zip(starts, ends, strict=True):
            index = device.add(start, end, code)
            if transfer is not None:
                device.transfers[index] = (transfer, -1)
