"""PyTorch's flight recorder: the last collectives of each rank, from pickle or JSON.

A dump is a pickle of dictionaries, lists, tuples and scalars alone, and is read by an unpickler
that knows no class, so that nothing in a file is ever executed. Version 2.10 (torch 2.13) was
recorded. Of 1.1 and 1.4 is known what c10d's TraceUtils.h wrote: one ``seq_id`` for collectives
and transfers, and groups by a number that each process counts for itself.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from commcheck.command import whole_number
from commcheck.errors import UsageError
from commcheck.files import rank_named
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


_VARIES: Final = regex(r"all_to_?all|alltoall|v$|gather_into|(?<!reduce_)scatter|barrier")
"""Of a scatter the root alone has an input; what is reduced before is as large on all ranks."""

_TRANSFER: Final = regex(r":(?:(send) (\d{1,7})->(\d{1,7})|recv (\d{1,7})<-(\d{1,7}))$")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A send or a receive, both ends by their numbers within the process group."""

    sends: bool
    own: int
    peer: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One collective or transfer that a rank called. ``group``: the process group's name."""

    group: str
    seq: int
    name: str  # "nccl:all_reduce", "nccl:send 0->1", "nccl:recv 1<-0"
    state: str  # "scheduled", "started", "completed"
    inputs: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    is_p2p: bool
    frame: str  # file and line of the caller, where the dump has it

    @property
    def transfer(self) -> Transfer | None:
        """What its name says, where it is a send or a receive."""
        match = _TRANSFER.search(self.name)
        if match is None:
            return None
        sends = match[1] is not None
        own, peer = (match[2], match[3]) if sends else (match[4], match[5])
        return Transfer(sends, int(own), int(peer))

    @property
    def varies(self) -> bool:
        """True for operations whose sizes may differ from rank to rank."""
        return _VARIES.search(self.name) is not None

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
    oldest: int | None = None  # number of its oldest entry, of all that the rank ever recorded
    shared: frozenset[str] = frozenset()  # groups that count collectives and transfers together

    @property
    def is_whole(self) -> bool:
        """True where the ring still has the first entry."""
        return self.oldest == 0

    @property
    def has_lost(self) -> bool:
        """True where the ring is known to have lost its first entries."""
        return bool(self.oldest)

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
    config = document.get("pg_config")
    names = _own_numbers(config, document["entries"], source)
    members, groups = _groups(config, names)
    entries, shared = _entries(document["entries"], names)
    return Dump(
        source=source,
        rank=_rank(source),
        version=str(document.get("version", "")),
        library=str(document.get("comm_lib_version") or document.get("nccl_version") or ""),
        entries=entries,
        members=members,
        groups=groups,
        oldest=min(
            (
                each["record_id"]
                for each in document["entries"]
                if isinstance(each, dict) and _is_number(each.get("record_id"))
            ),
            default=None,
        ),
        shared=shared,
    )


def without_frames(told: Dump) -> Dump:
    """The dump without the user's file names and lines."""
    return replace(told, entries=tuple(replace(entry, frame="") for entry in told.entries))


_LAST: Final = regex(r"(\d{1,7})(?:\.\w{1,8})?(?:\.gz)?$")


def _rank(source: str) -> int | None:
    """The global rank that a dump's name tells, or with which it ends.

    PyTorch puts it last; who collects dumps puts the host behind it.
    """
    named = rank_named(source)
    match = None if named is not None else _LAST.search(source.rpartition("/")[2])
    return int(match[1]) if match else named


def _own_numbers(config: Any, told: Sequence[Any], source: str) -> dict[str, str]:
    """Names for groups that only have a number, which each process counts for itself (1.x).

    Ranks know a group by its members; a second group of the same members is told apart. Without
    members only the first group, which is everybody's, can be compared.
    """
    names: dict[str, str] = {}
    if not isinstance(config, dict):
        numbers = {str(each.get("pg_id", "0")) for each in told if isinstance(each, dict)}
        return {number: f"{number} of {source}" for number in numbers - {"0", ""}}
    for key, ranks in config.items():
        if isinstance(ranks, list | tuple):
            members = str([each for each in ranks if isinstance(each, int)])
            before = sum(name.startswith(members) for name in names.values())
            names[str(key)] = f"{members} again {before}" if before else members
    return names


def _groups(
    config: Any, names: Mapping[str, str]
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    members: dict[str, tuple[int, ...]] = {}
    described: dict[str, str] = {}
    for key, told in config.items() if isinstance(config, dict) else ():
        ranks = told.get("ranks") if isinstance(told, dict) else told
        numbers = re.findall(r"\d{1,7}", ranks) if isinstance(ranks, str) else ranks
        name = names.get(str(key), str(key))
        if isinstance(numbers, list | tuple):
            members[name] = tuple(
                number for each in numbers if (number := whole_number(each)) is not None
            )
        if isinstance(told, dict):
            described[name] = str(told.get("desc", ""))
    return members, described


def _entries(
    told: Sequence[Any], names: Mapping[str, str]
) -> tuple[tuple[Entry, ...], frozenset[str]]:
    """All entries, and the groups whose collectives cannot be matched by number.

    Of a batch (``batch_isend_irecv``) only ``coalesced`` behind it has a state; each transfer of it
    stays ``scheduled`` (pytorch#120270). Until torch 2.5 a batch counted as a collective, on the
    ranks that took part only (pytorch#134833).
    """
    found: list[Entry] = []
    batches: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    shared: set[str] = set()
    for each in told:
        entry = _entry(each, names)
        if entry is None:
            continue
        if entry.is_p2p and entry.transfer:
            for key in _NUMBERS:
                if _is_number(each.get(key)):
                    batches[entry.group, key, each[key]].append(len(found))
            if "seq_id" in each:
                shared.add(entry.group)
        elif entry.name.endswith(":coalesced"):
            key = next(key for key in _keys(entry.is_p2p) if _is_number(each.get(key)))
            batch = batches.pop((entry.group, key, entry.seq), [])
            for index in batch:
                if found[index].state == "scheduled":
                    found[index] = replace(found[index], state=entry.state)
            if batch and not entry.is_p2p:
                shared.add(entry.group)
                entry = replace(entry, is_p2p=True)
        found.append(entry)
    return tuple(found), frozenset(shared)


_NUMBERS: Final = ("p2p_seq_id", "collective_seq_id", "seq_id")


def _keys(is_p2p: bool) -> tuple[str, str]:
    return (_NUMBERS[0] if is_p2p else _NUMBERS[1], _NUMBERS[2])


def _is_number(told: Any) -> bool:
    return isinstance(told, int) and not isinstance(told, bool)


def _entry(told: Any, names: Mapping[str, str]) -> Entry | None:
    if not isinstance(told, dict):
        return None
    called = str(told.get("profiling_name", ""))
    is_p2p = told.get("is_p2p") is True or _TRANSFER.search(called) is not None
    seq = next((told[key] for key in _keys(is_p2p) if _is_number(told.get(key))), None)
    if seq is None:
        return None
    group: Any = told.get("process_group")
    number = str(told.get("pg_id", ""))
    has_name = isinstance(group, list | tuple) and len(group) > 0
    types = told.get("input_dtypes")
    return Entry(
        group=str(group[0]) if has_name else names.get(number, number),
        seq=seq,
        name=called,
        state=str(told.get("state", "")),
        inputs=tuple(_sizes(told.get("input_sizes"))),
        dtypes=tuple(
            each
            for each in (types if isinstance(types, list | tuple) else ())
            if isinstance(each, str)
        ),
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
