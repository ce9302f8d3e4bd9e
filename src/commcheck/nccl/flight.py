"""PyTorch's flight recorder: the last collectives of each rank, from pickle or JSON.

A dump is a pickle of dictionaries, lists, tuples and scalars alone (torch 2.2 to 2.13, measured):
it is read by an unpickler that knows no class, so that nothing in a file is ever executed.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex

OPCODES_MOST: Final = 20_000_000

_HARMLESS: Final = frozenset(
    [
        "PROTO",
        "FRAME",
        "STOP",
        "MARK",
        "POP",
        "POP_MARK",
        "DUP",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "FLOAT",
        "BINFLOAT",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "UNICODE",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE8",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "LIST",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "EMPTY_DICT",
        "DICT",
        "SETITEM",
        "SETITEMS",
        "GET",
        "BINGET",
        "LONG_BINGET",
        "PUT",
        "BINPUT",
        "LONG_BINPUT",
        "MEMOIZE",
    ]
)
"""Opcodes that make plain data; every other one could call something."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One collective that a rank called. ``group``: the process group's name."""

    group: str
    seq: int
    name: str  # "nccl:all_reduce"
    state: str  # "scheduled", "started", "completed"
    inputs: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    is_p2p: bool
    frame: str  # file and line of the caller, where the dump has it

    @property
    def varies(self) -> bool:
        """True for operations whose sizes may differ from rank to rank."""
        return (
            re.search(r"all_to_?all|alltoall|v$|gather_into|scatter|barrier", self.name) is not None
        )

    @property
    def shape(self) -> tuple[object, ...]:
        """What must be equal on all ranks, where it must."""
        return (self.inputs, self.dtypes)


@dataclass(frozen=True, slots=True)
class Dump:
    """What one rank recorded."""

    source: str
    rank: int | None
    version: str
    library: str
    entries: tuple[Entry, ...]
    members: Mapping[str, tuple[int, ...]]  # of each process group
    groups: Mapping[str, str]  # descriptions

    @property
    def backend(self) -> str:
        """``nccl``, ``gloo``, ... as most entries say."""
        names = [entry.name.partition(":")[0] for entry in self.entries if ":" in entry.name]
        return max(set(names), key=names.count) if names else ""


class _NoClasses(pickle.Unpickler):
    """Plain data only: whatever a pickle asks for, it does not get."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it asks for an outside object")


def plain_pickle(data: bytes, source: str) -> Any:
    """The data of a pickle. Raises ``UsageError`` where it is none, or asks for more than data."""
    try:
        for count, (opcode, _, _) in enumerate(pickletools.genops(data)):
            if opcode.name not in _HARMLESS:
                raise UsageError(
                    f"{source}: refused: the pickle does {opcode.name}, which is no data"
                )
            if count > OPCODES_MOST:
                raise UsageError(f"{source}: refused: too large for a dump")
        return _NoClasses(io.BytesIO(data)).load()
    except UsageError:
        raise
    except (MemoryError, RecursionError):
        raise UsageError(f"{source}: refused: nested too deeply, or too large") from None
    except Exception as error:  # noqa: BLE001 - the unpickler raises almost anything on damage
        raise UsageError(f"{source}: damaged: {type(error).__name__}: {error}"[:300]) from None


def looks_like_pickle(data: bytes) -> bool:
    """True for protocol 2 and newer, which is what PyTorch writes."""
    return len(data) > 2 and data[0] == 0x80 and 2 <= data[1] <= 5


def is_dump(document: object) -> bool:
    """True for a document with a flight recorder's entries."""
    return isinstance(document, dict) and isinstance(document.get("entries"), list)


def read(data: bytes, source: str) -> Dump | None:
    """One dump, or None where the file is something else. Raises ``UsageError``."""
    if looks_like_pickle(data):
        document = plain_pickle(data, source)
    elif data.lstrip()[:1] == b"{":
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return None
    else:
        return None
    return dump(document, source) if is_dump(document) else None


def dump(document: Mapping[str, Any], source: str) -> Dump:
    """The facts of a document that ``is_dump``; entries without a number are left out.

    Raises ``KeyError`` for another one.
    """
    members, groups = _groups(document.get("pg_config"))
    entries = tuple(entry for each in document["entries"] if (entry := _entry(each)))
    return Dump(
        source=source,
        rank=_rank(source),
        version=str(document.get("version", "")),
        library=str(document.get("comm_lib_version") or document.get("nccl_version") or ""),
        entries=entries,
        members=members,
        groups=groups,
    )


def without_frames(told: Dump) -> Dump:
    """The dump without the user's file names and lines."""
    return replace(told, entries=tuple(replace(entry, frame="") for entry in told.entries))


_RANK: Final = regex(r"(\d{1,7})(?:\.\w{1,8})?(?:\.gz)?$")


def _rank(source: str) -> int | None:
    """The global rank, with which a dump's name ends."""
    match = _RANK.search(source.rpartition("/")[2])
    return int(match[1]) if match else None


def _groups(config: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    members: dict[str, tuple[int, ...]] = {}
    described: dict[str, str] = {}
    for key, told in config.items() if isinstance(config, dict) else ():
        if not isinstance(told, dict):
            continue
        ranks = told.get("ranks")
        numbers = re.findall(r"\d{1,7}", ranks) if isinstance(ranks, str) else ranks
        if isinstance(numbers, list | tuple):
            members[str(key)] = tuple(int(each) for each in numbers if str(each).isdigit())
        described[str(key)] = str(told.get("desc", ""))
    return members, described


def _entry(told: Any) -> Entry | None:
    if not isinstance(told, dict):
        return None
    is_p2p = told.get("is_p2p") is True
    seq = told.get("p2p_seq_id" if is_p2p else "collective_seq_id")
    if not isinstance(seq, int) or isinstance(seq, bool):
        return None
    group = told.get("process_group")
    name = (
        str(group[0]) if isinstance(group, list | tuple) and group else str(told.get("pg_id", ""))
    )
    return Entry(
        group=name,
        seq=seq,
        name=str(told.get("profiling_name", "")),
        state=str(told.get("state", "")),
        inputs=tuple(_sizes(told.get("input_sizes"))),
        dtypes=tuple(str(each) for each in told.get("input_dtypes") or () if isinstance(each, str)),
        is_p2p=is_p2p,
        frame=_frame(told.get("frames")),
    )


def _sizes(told: Any) -> Iterator[tuple[int, ...]]:
    for each in told if isinstance(told, list | tuple) else ():
        if isinstance(each, list | tuple):
            yield tuple(size for size in each if isinstance(size, int))


def _frame(frames: Any) -> str:
    """The first frame that is not PyTorch's own."""
    for each in frames if isinstance(frames, list | tuple) else ():
        match each:
            case {"filename": str(file), "line": int(line)} if "/torch/" not in file:
                return f"{file}:{line}"
            case _:
                pass
    return ""
