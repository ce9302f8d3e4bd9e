"""A trace as columns of integers: what the readers fill and ``steps`` measures.

An event costs 40 bytes, whatever the file holds of it, so that a trace of gigabytes fits.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Final, NamedTuple

from commcheck.lazy import dataclass, regex
from commcheck.trace import names
from commcheck.trace.names import Kind

ANNOTATIONS_MOST: Final = 10_000
"""Names of annotations that are kept: some programs write a new one for every batch."""


class Code(NamedTuple):
    """What many events have in common."""

    kind: Kind
    name: str
    device: str
    stream: str


class Transfer(NamedTuple):
    """What is moved by a collective. ``size_bytes`` is None where the trace does not tell."""

    kind: str  # "allreduce", "allgather", ...
    group: str  # its ranks, or its name
    group_size: int  # 0: not told
    size_bytes: int | None
    about: str  # the framework's own description of the group
    element_bytes: int = 0  # 0: not told


class Annotation(NamedTuple):
    """A span on a thread of the host, in ns."""

    name: str
    start: int
    end: int
    thread: int


class Record(NamedTuple):
    """A collective call on the host (record_param_comms)."""

    start: int
    end: int
    transfer: Transfer
    seq: int


@dataclass(slots=True)
class Device:
    """The events of one device.

    ``launch_start``, ``launch_end`` and ``thread`` are -1 where the host's call is not known.
    """

    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    launch_start: array[int] = field(default_factory=lambda: array("q"))
    launch_end: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    code: array[int] = field(default_factory=lambda: array("i"))
    transfers: dict[int, tuple[Transfer, int]] = field(default_factory=dict)
    """By event: what it moved, and its sequence number (-1: none)."""

    def add(self, start: int, end: int, code: int, launch: tuple[int, int] = (-1, -1)) -> int:
        """Append an event; its index."""
        self.start.append(start)
        self.end.append(end)
        self.code.append(code)
        self.launch_start.append(launch[0])
        self.launch_end.append(launch[1])
        self.thread.append(-1)
        return len(self.start) - 1


@dataclass(slots=True)
class Trace:
    """One file: who wrote it, its devices, its annotations."""

    file: str
    layout: str = "kineto"  # "kineto", "ascend", "cpu"
    rank: int | None = None
    world: int | None = None
    backend: str = ""
    library: str = ""
    host: str = ""
    base_ns: int = 0
    comm: re.Pattern[str] = field(default_factory=names.comm_pattern)
    codes: list[Code] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)
    steps: list[Annotation] = field(default_factory=list)
    forwards: list[Annotation] = field(default_factory=list)
    inputs: list[Annotation] = field(default_factory=list)
    host_comm: list[Annotation] = field(default_factory=list)
    annotations: set[str] = field(default_factory=set)
    records: list[Record] = field(default_factory=list)
    _threads: dict[str, int] = field(default_factory=dict)
    _by_code: dict[Code, int] = field(default_factory=dict)

    def code(self, kind: Kind, name: str, device: str, stream: str) -> int:
        """The number of a code, a new one where it is new."""
        code = Code(kind, name, device, stream)
        number = self._by_code.get(code)
        if number is None:
            number = self._by_code[code] = len(self.codes)
            self.codes.append(code)
        return number

    def device(self, name: str) -> Device:
        """A device by its name in the file, made where it is new."""
        return self.devices.setdefault(name, Device())

    def kind_of(self, category: str, name: str) -> Kind:
        """The kind of a device event, by its category and name."""
        if category.lower() not in ("kernel", "concurrent_kernel"):
            return Kind.MEM
        return Kind.COMM if self.comm.search(name) else Kind.COMPUTE

    def thread(self, pid: str, tid: str) -> int:
        """The number of a thread of the host."""
        return self._threads.setdefault(f"{pid}/{tid}", len(self._threads))

    def annotate(self, name: str, start: int, end: int, thread: int) -> None:
        """Keep an annotation of the host where it means something."""
        if name.startswith("ProfilerStep#"):
            self.steps.append(Annotation(name, start, end, thread))
        elif names.FORWARD.match(name):
            self.forwards.append(Annotation(name, start, end, thread))
        elif names.INPUT.match(name):
            self.inputs.append(Annotation(name, start, end, thread))
        elif names.CPU_COMM.match(name):
            self.host_comm.append(Annotation(name, start, end, thread))
        if len(self.annotations) < ANNOTATIONS_MOST:
            self.annotations.add(name)

    def read_head(self, head: Mapping[str, object]) -> None:
        """Take what keys beside the events tell. Values of an unexpected type tell nothing."""
        about = head.get("distributedInfo")
        if isinstance(about, dict):
            rank, world = about.get("rank"), about.get("world_size")
            self.rank = rank if isinstance(rank, int) else self.rank
            self.world = world if isinstance(world, int) else self.world
            self.backend = str(about.get("backend") or self.backend)
            library = str(about.get("nccl_version") or "unknown")
            self.library = self.library if library == "unknown" else library
        base = head.get("baseTimeNanoseconds")
        self.base_ns = base if isinstance(base, int) else self.base_ns
        host = head.get("host_name")
        self.host = host if isinstance(host, str) else self.host


def transfer_of(args: Mapping[str, object]) -> Transfer | None:
    """What the arguments of a collective say; None where they name no transfer."""
    name = str(args.get("Collective name") or "")
    if not name or name in names.NO_TRANSFER:
        return None
    elements = [args.get("In msg nelems"), args.get("Out msg nelems")]
    counts = [each for each in elements if isinstance(each, int)]
    each_bytes = names.DTYPE_BYTES.get(str(args.get("dtype") or "").lower())
    ranks = str(args.get("Process Group Ranks") or "")
    label = str(args.get("Process Group Name") or args.get("Process Group ID") or "")
    size = args.get("Group size")
    return Transfer(
        kind=names.collective(name),
        # A long list of ranks is cut ("..."), and cut lists of two groups may be alike.
        group=ranks if ranks.startswith("[") and "..." not in ranks else label,
        group_size=size if isinstance(size, int) else 0,
        size_bytes=max(counts) * each_bytes if counts and each_bytes else None,
        about=str(args.get("Process Group Description") or ""),
        element_bytes=each_bytes or 0,
    )


_MEMBERS: Final = regex(r"\[(\d+(?:, ?\d+)*)\](?:@.*)?")


def of_members(ranks: Iterable[int], name: str) -> str:
    """What a group of these ranks is called that has a name besides."""
    return f"[{', '.join(map(str, ranks))}]@{name}"


def members_of(group: str) -> frozenset[int]:
    """The ranks of a group that tells them; empty for a name."""
    found = _MEMBERS.fullmatch(group)
    return frozenset(map(int, found[1].split(","))) if found else frozenset()


def seq_of(args: Mapping[str, object]) -> int:
    """The sequence number of a collective in its group, -1 where it is not told."""
    seq = args.get("Seq")
    return seq if isinstance(seq, int) else -1


Progress = Callable[[int], None]
"""Called with the bytes of the file that were read since the last call."""

DECODER = json.JSONDecoder(parse_float=str)
"""Numbers with a point stay text: see ``microseconds``."""
