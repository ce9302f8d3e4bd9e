"""Reports of NCCL's RAS service: who of a running job is alive, and how far each rank has come.

Text of ``ncclras -v`` (2.24 and newer) and JSON (2.28.7 and newer), as their format strings are in
NCCL src/ras/client_support.cc.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from commcheck.check import Reader
from commcheck.command import Command, Output, clean
from commcheck.errors import CommandFailed, ParseError
from commcheck.lazy import dataclass, regex

TOOL: Final = "nccl-ras"


@dataclass(frozen=True, slots=True)
class Proc:
    """A process of the job: its node's address, its pid, its GPUs as the report names them."""

    node: str
    pid: int
    gpus: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.node} (GPU {self.gpus})"


@dataclass(frozen=True, slots=True)
class RankState:
    """A rank of a communicator. ``counts``: collectives launched, by name; empty: not told."""

    rank: int
    proc: Proc | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    init_state: int = 0
    async_error: int = 0
    responds: bool = True
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Comm:
    """A communicator. ``ranks``: all of JSON, of text those that are named.

    ``problems``: INCOMPLETE, ERROR, MISMATCH. ``differing``: the operation whose counts differ.
    """

    id: str
    size: int | None
    ranks: tuple[RankState, ...]
    problems: frozenset[str] = frozenset()
    differing: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One answer of the service. ``statuses``: of the groups, in text."""

    version: str
    comms: tuple[Comm, ...]
    unreachable: tuple[Proc, ...] = ()
    dead: tuple[Proc, ...] = ()
    statuses: tuple[tuple[str, str], ...] = ()  # (status, errors) of each group
    gpus: int | None = None
    timeouts: int = 0
    seconds: float | None = None

    def counts(self) -> dict[tuple[str, int, str], int]:
        """Launched collectives by communicator, rank and name."""
        return {
            (comm.id, rank.rank, name): count
            for comm in self.comms
            for rank in comm.ranks
            for name, count in rank.counts.items()
        }


def looks_like(text: str) -> bool:
    """True for a report of either form."""
    return bool(_HEAD.search(text[:4096])) or ('"communicators"' in text and '"ras"' in text)


def parse_text(text: str) -> Report:
    """Either form. Raises ``ParseError`` where it is none, or was cut."""
    text = clean(text)
    document = re.search(r"^\{", text, re.MULTILINE)
    try:
        return _of_json(text[document.start() :]) if document else _of_text(text)
    except ValueError as error:  # a number that int() refuses
        raise ParseError(TOOL, text, "numbers of ranks and operations") from error


# --- text ---------------------------------------------------------------------------------------

_HEAD: Final = regex(r"^NCCL version (\d+\.\d+\S*) compiled with CUDA", re.MULTILINE)
_TAKEN: Final = regex(r"^Communicators\.\.\. \((\d+\.\d+)s\)", re.MULTILINE)
_GROUP: Final = regex(
    r"^ *\d+ +\d+ +\d+ +[\d-]+ +[\d-]+ +\d+ +([A-Z][A-Z,]*) +([A-Z][A-Z,]*) *$", re.MULTILINE
)
_TOTALS: Final = regex(r"^ +\d+ +[\d-]+ +[\d-]+ +\d+ +(\d+) *$", re.MULTILINE)
_PROC: Final = regex(r"^  Process (\d+) on node (\S+) managing GPUs? (.+)$")
_RANK: Final = regex(
    r"^  Rank (\d+)(?: has launched up to operation (\d+))?"
    r"(?: -- GPU (.+?) managed by process (\d+) on node (\S+))?"
)
_BLOCK: Final = regex(r"^#\d+-\d+ \(([0-9a-f]+)\) ([A-Z]+)")
_MOST: Final = regex(r"^  (\d+) ranks have launched up to operation (\d+)")
_MISSING: Final = regex(r"^  The missing ranks?: ([\d, ]+)")
_DIFFERS: Final = regex(r"^  Communicator ranks have different (.+?)(?: operation counts)?$")
_TIMEOUTS: Final = regex(r"Encountered (\d+) communication timeout")


@dataclass(slots=True)
class _Block:
    """What is being read of one communicator."""

    id: str
    problems: set[str] = field(default_factory=set)
    ranks: dict[int, RankState] = field(default_factory=dict)
    differing: str = ""


@dataclass(slots=True)
class _Draft:
    section: str = ""
    unreachable: list[Proc] = field(default_factory=list)
    dead: list[Proc] = field(default_factory=list)
    blocks: dict[str, _Block] = field(default_factory=dict)
    block: _Block | None = None


def _of_text(text: str) -> Report:
    head, taken = _HEAD.search(text), _TAKEN.search(text)
    if head is None:
        raise ParseError(TOOL, text, "'NCCL version ... compiled with CUDA ...'")
    draft = _Draft()
    tail = text[taken.end() :] if taken else ""
    for line in tail.split("\n"):
        _take(draft, line)
    totals = _TOTALS.findall(text[: taken.start()] if taken else text)
    timeouts = _TIMEOUTS.search(tail)
    is_whole = taken is not None and re.search(r"^Warnings\n=+\n", tail, re.MULTILINE) is not None
    statuses = tuple(_GROUP.findall(tail))
    listed = {word for _, errors in statuses for word in errors.split(",")} - {"OK"}
    told = {problem for block in draft.blocks.values() for problem in block.problems}
    if not is_whole or not text.endswith("\n") or listed - told:
        raise ParseError(TOOL, text, "a report to its end, with Errors and Warnings")
    return Report(
        version=head[1],
        comms=tuple(
            Comm(b.id, None, tuple(b.ranks.values()), frozenset(b.problems), b.differing)
            for b in draft.blocks.values()
        ),
        unreachable=tuple(draft.unreachable),
        dead=tuple(draft.dead),
        statuses=statuses,
        gpus=int(totals[-1]) if totals else None,
        timeouts=int(timeouts[1]) if timeouts else 0,
        seconds=float(taken[1]) if taken else None,
    )


def _take(draft: _Draft, line: str) -> None:
    if block := _BLOCK.match(line):
        draft.section = block[2]
        draft.block = draft.blocks.setdefault(block[1], _Block(block[1]))
        draft.block.problems.add(block[2])
    elif line in ("INCOMPLETE", "DEAD", "TIMEOUT"):
        draft.section, draft.block = line, None
    elif proc := _PROC.match(line):
        found = Proc(proc[2], int(proc[1]), proc[3].strip())
        (draft.dead if draft.section == "DEAD" else draft.unreachable).append(found)
    elif draft.block is not None:
        _take_rank(draft, draft.block, line)


def _take_rank(draft: _Draft, block: _Block, line: str) -> None:
    if differs := _DIFFERS.match(line):
        block.differing = differs[1].removesuffix(" operation counts").strip() or "operation counts"
    elif missing := _MISSING.match(line):
        for rank in re.findall(r"\d+", missing[1]):
            block.ranks[int(rank)] = RankState(int(rank), responds=False)
    elif most := _MOST.match(line):
        # Those that are not named: only how many they are is told.
        block.ranks[-1] = RankState(-1, counts={block.differing: int(most[2])})
    elif rank := _RANK.match(line):
        proc = Proc(rank[5], int(rank[4]), rank[3]) if rank[4] else None
        counts = {block.differing: int(rank[2])} if rank[2] else {}
        block.ranks[int(rank[1])] = RankState(
            int(rank[1]), proc, counts, responds=draft.section != "INCOMPLETE"
        )


# --- JSON ---------------------------------------------------------------------------------------


def _of_json(text: str) -> Report:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError(TOOL, text, "a JSON report to its end") from None
    match document:
        case {"nccl_version": str(version), "communicators": list(comms)}:
            pass
        case _:
            raise ParseError(TOOL, text, "nccl_version and communicators")
    ras = document.get("ras")
    ras = ras if isinstance(ras, dict) else {}
    found = tuple(_comm(each, text) for each in comms)
    lost = {
        rank.proc: rank.dead
        for comm in found
        for rank in comm.ranks
        if rank.proc is not None and not rank.responds
    }
    return Report(
        version=version,
        comms=found,
        unreachable=tuple(proc for proc, dead in lost.items() if not dead),
        dead=tuple(proc for proc, dead in lost.items() if dead),
        timeouts=_int(ras.get("timeouts_count")),
        seconds=_float(ras.get("collection_time_sec")),
    )


def _comm(told: Any, text: str) -> Comm:
    match told:
        case {"hash": str(key), "size": int(size), "ranks": list(ranks)}:
            pass
        case _:
            raise ParseError(TOOL, text, "hash, size and ranks of each communicator")
    missing = told.get("missing_ranks")
    states = [_rank(each, text) for each in ranks]
    states += [_lost(each, text) for each in (missing if isinstance(missing, list) else ())]
    problems = set()
    if any(not rank.responds for rank in states):
        problems.add("INCOMPLETE")
    if any(rank.init_state not in FINE or rank.async_error not in FINE for rank in states):
        problems.add("ERROR")
    differing = _differing(states)
    if differing:
        problems.add("MISMATCH")
    return Comm(key.removeprefix("0x"), size, tuple(states), frozenset(problems), differing)


FINE: Final = (0, 7)
"""Result codes that are no errors: success and in progress."""


def _differing(states: list[RankState]) -> str:
    for name in dict.fromkeys(name for state in states for name in state.counts):
        if len({state.counts.get(name) for state in states if state.counts}) > 1:
            return name
    return ""


def _rank(told: Any, text: str) -> RankState:
    match told:
        case {"rank": int(rank), "status": dict(status)}:
            counts = told.get("collective_counts")
            return RankState(
                rank,
                _proc(told),
                {str(name): _int(n) for name, n in counts.items()}
                if isinstance(counts, dict)
                else {},
                _int(status.get("init_state")),
                _int(status.get("async_error")),
            )
        case _:
            raise ParseError(TOOL, text, "rank and status of each rank")


def _lost(told: Any, text: str) -> RankState:
    match told:
        case {"rank": int(rank), "status": dict(status)}:
            dead = status.get("considered_dead") is True
            return RankState(rank, _proc(told), responds=False, dead=dead)
        case _:
            raise ParseError(TOOL, text, "rank and status of each missing rank")


def _proc(told: Mapping[str, Any]) -> Proc | None:
    match told:
        case {"host": str(host), "pid": int(pid)}:
            cuda, nvml = told.get("cuda_dev"), told.get("nvml_dev")
            gpus = f"{cuda}" if cuda == nvml else f"{cuda} (NVML {nvml})"
            return Proc(host, pid, gpus)
        case _:
            return None


def _int(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


# --- on a host ----------------------------------------------------------------------------------

ASK: Final = "gopher://localhost:28028/_set%20format%20json%0Averbose%20status"
"""The service takes plain lines, and with this address curl sends these two and nothing else.

Releases before 2.28.7 answer "unknown command" to the first, and the second in text. The client
``ncclras`` is not used: where nobody listens it tries again for ever.
"""

_REFUSED: Final = 7
"""Exit code of curl where nothing listens."""


def parse(output: Output) -> Report:
    """What the service answered. Raises ``CommandFailed`` where nobody did."""
    text = output.text
    if looks_like(text):
        return parse_text(text)
    why = "nothing listens on port 28028" if output.rc == _REFUSED else output.complaint
    raise CommandFailed(
        f"NCCL's RAS service did not answer: {why}",
        "it needs NCCL 2.24 or newer without NCCL_RAS_ENABLE=0, in the network namespace of the "
        "login, and curl with gopher; in a pod: kubectl exec POD -- ncclras -v",
    )


# A gather takes at most 11 s.
RAS: Final = Reader(
    tool=TOOL,
    commands=(Command(("curl", "-s", "-m", "13", ASK), timeout_s=15.0, cap_bytes=8 << 20),),
    parse=parse,
    varies=True,
)
"""The status of the job whose service listens on this host. It reads; CONTROL is never sent."""
