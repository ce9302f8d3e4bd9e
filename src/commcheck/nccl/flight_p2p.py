"""Sends and receives that do not end, on the dumps of all ranks: FR-008 and FR-009.

The n-th send of a rank to another belongs to that one's n-th receive from it (NCCL user guide,
"Point-to-point communication"). Where a ring has lost the first ones only a group of two can be
matched, by ``p2p_seq_id``: in a larger one each rank counts its transfers with all of its peers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from commcheck.check import failed, undecidable
from commcheck.lazy import dataclass
from commcheck.model import Cause, Words
from commcheck.nccl.causes import READS, RESTART, step
from commcheck.nccl.flight import Dump, Entry, Transfer
from commcheck.nccl.flight_groups import ALL_DUMPS, WATCHED, Group, Parted, some

PEER_MISSING: Final = Cause(
    slug="hang-peer-missing",
    title=Words("A rank never sent, or never received", "某 rank 从未发送或从未接收"),
    meaning=Words(
        "Its peer waits for it inside a send or a receive: it is stuck or died earlier, took "
        "another branch, or counts its micro-batches otherwise.",
        "对端正在发送或接收中等待它：它更早卡住或已退出、进入了别的分支，或微批次计数不同。",
    ),
    remedies=(
        step(
            "Shows where that rank's process stands. Then its host, by layer 1.",
            "查看该 rank 进程停在何处；再从第一层检查其主机。",
            "py-spy dump --pid {pid}",
            before=READS,
        ),
    ),
)
EACH_WAITS: Final = Cause(
    slug="hang-peers-each-wait",
    title=Words("Ranks wait for each other's transfer", "各 rank 互相等待对方的收发"),
    meaning=Words(
        "The program is at fault, not the network: each waits in a call that only ends after "
        "one that the other has not reached.",
        "是程序的问题而非网络：双方都停在一个调用里，而对方尚未执行到与之配对的调用。",
    ),
    remedies=(
        step(
            "Let one send first and the other receive first, or give both calls to "
            "batch_isend_irecv together.",
            "让一方先发、另一方先收，或将两个调用一并交给 batch_isend_irecv。",
            before=RESTART,
        ),
    ),
)
INSIDE: Final = Cause(
    slug="hang-transfer-inside",
    title=Words("Both ranks are inside one transfer", "收发双方都卡在同一次传输内"),
    meaning=Words(
        "One sends, the other receives, and it does not end: a link, a NIC or a GPU between them.",
        "一方在发送、另一方在接收，却不结束：问题在两者之间的链路、网卡或 GPU。",
    ),
    remedies=(
        step(
            "Climb from layer 1 on the hosts of the two.",
            "从第一层开始检查这两台主机。",
            "commcheck run -i INVENTORY --limit HOSTS",
            before=READS,
        ),
    ),
)

Fate = Literal["called", "absent", "silent", "unknown"]


@dataclass(frozen=True, slots=True)
class Wait:
    """A send or receive that has not ended, and what of its peer is known.

    ``peer`` is a global rank, None where the group's members are not told.
    """

    rank: int
    peer: int | None
    group: Group
    entry: Entry
    number: int
    fate: Fate
    partner: Entry | None = None

    @property
    def verb(self) -> str:
        """What it waits to do."""
        return "send to" if self.entry.transfer and self.entry.transfer.sends else "receive from"

    def __str__(self) -> str:
        peer = "a peer" if self.peer is None else f"rank {self.peer}"
        at = f" at {self.entry.frame}" if self.entry.frame else ""
        return f"rank {self.rank} waits to {self.verb} {peer}{at}"


@dataclass(frozen=True, slots=True)
class _Side:
    """The transfers of one rank in one group, by peer and direction, in the order of its calls."""

    calls: Mapping[tuple[int, bool], tuple[Entry, ...]]
    is_whole: bool
    is_shared: bool

    def of(self, peer: int, *, sends: bool) -> tuple[Entry, ...]:
        return self.calls.get((peer, sends), ())


def judge(known: Sequence[Group], dumps: Mapping[int, Dump]) -> list[Parted]:
    """What transfers that have not ended show; empty where all have."""
    of_groups = _sides(dumps)
    found = [wait for group in known for wait in _of_group(group, of_groups[group.name])]
    absent = [wait for wait in found if wait.fate == "absent"]
    waiting = {wait.rank for wait in absent}
    roots = [wait for wait in absent if wait.peer not in waiting]
    if roots:
        peers = sorted({wait.peer for wait in roots if wait.peer is not None})
        return [
            _missing(peer, [w for w in roots if w.peer == peer], absent, dumps) for peer in peers
        ]
    if absent:
        return [_crossed(absent)]
    called = [wait for wait in found if wait.fate == "called"]
    inside = [wait for wait in called if _is_inside(wait)]
    if inside and len(inside) == len(found):
        return [_inside(inside)]
    return [_untold(found)] if found else []


def _sides(dumps: Mapping[int, Dump]) -> Mapping[str, dict[int, _Side]]:
    """Every rank's side in each group: also that of a member without a transfer of its own."""
    found: dict[str, dict[int, _Side]] = defaultdict(dict)
    calls: dict[tuple[str, int], dict[tuple[int, bool], list[Entry]]]
    calls = defaultdict(lambda: defaultdict(list))
    for rank, dump in dumps.items():
        for entry in dump.entries:
            if entry.is_p2p and (told := entry.transfer):
                calls[entry.group, rank][told.peer, told.sends].append(entry)
    names = {name for name, _ in calls}
    for name in names:
        for rank, dump in dumps.items():
            own = {key: tuple(of) for key, of in calls.get((name, rank), {}).items()}
            found[name][rank] = _Side(own, dump.is_whole, name in dump.shared)
    return found


def _of_group(group: Group, sides: Mapping[int, _Side]) -> Iterator[Wait]:
    for rank, side in sides.items():
        for calls in side.calls.values():
            for index, entry in enumerate(calls):
                if entry.state == "completed" or not entry.name.startswith(WATCHED):
                    continue
                wait = _wait(group, sides, rank, entry, index)
                yield wait
                if wait.fate == "absent":
                    break  # what comes behind it only follows


def _wait(group: Group, sides: Mapping[int, _Side], rank: int, entry: Entry, index: int) -> Wait:
    side, told = sides[rank], entry.transfer
    number = index + 1 if side.is_whole else entry.seq
    size = len(group.members)
    if told is None or max(told.own, told.peer) >= size or group.members[told.own] != rank:
        # Not the numbers of this group's members, as far as these are told.
        return Wait(rank, None, group, entry, number, "unknown")
    peer = group.members[told.peer]
    other = sides.get(peer)
    if other is None:
        return Wait(rank, peer, group, entry, number, "silent")
    fate, partner = _partner(group, side, other, entry, told, index)
    return Wait(rank, peer, group, entry, number, fate, partner)


def _partner(
    group: Group, side: _Side, other: _Side, entry: Entry, told: Transfer, index: int
) -> tuple[Fate, Entry | None]:
    """The peer's call that belongs to this one, which is the ``index``-th of its kind."""
    theirs = other.of(told.own, sends=not told.sends)
    if side.is_whole and other.is_whole:
        return ("called", theirs[index]) if index < len(theirs) else ("absent", None)
    still_open = next((each for each in theirs if each.state != "completed"), None)
    if still_open is not None:
        return "called", still_open
    if len(group.members) != 2 or side.is_shared or other.is_shared:
        return "unknown", None
    return _by_number(side, other, entry, told)


def _by_number(
    side: _Side, other: _Side, entry: Entry, told: Transfer
) -> tuple[Fate, Entry | None]:
    """In a group of two both count alike, as long as both put the same calls into their batches."""
    for sends in (True, False):
        mine = [e.seq for e in side.of(told.peer, sends=sends) if e.state == "completed"]
        theirs = [e.seq for e in other.of(told.own, sends=not sends)]
        first = max(mine[:1] + theirs[:1], default=0)
        last = min(mine[-1:] + theirs[-1:], default=0)
        common = range(first, last)  # without the ends, where a ring may have cut a batch
        if [n for n in mine if n in common] != [n for n in theirs if n in common]:
            return "unknown", None
    kept = [each.seq for sends in (True, False) for each in other.of(told.own, sends=sends)]
    if not kept or entry.seq < min(kept):
        return "unknown", None
    same = [e for e in other.of(told.own, sends=not told.sends) if e.seq == entry.seq]
    before = [e for e in side.of(told.peer, sends=told.sends) if e.seq == entry.seq]
    place = before.index(entry)
    return ("called", same[place]) if place < len(same) else ("absent", None)


def _is_inside(wait: Wait) -> bool:
    """True where it began on this rank, and on its peer."""
    began = ("started", "completed")
    return (
        wait.entry.state == "started" and wait.partner is not None and wait.partner.state in began
    )


def _missing(
    peer: int, roots: Sequence[Wait], absent: Sequence[Wait], dumps: Mapping[int, Dump]
) -> Parted:
    first = roots[0]
    never = "received" if first.verb == "send to" else "sent"
    entries = dumps[peer].entries
    last = (
        f"its last is {entries[-1].name} ({entries[-1].state})" if entries else "it recorded none"
    )
    what = f"number {first.number} of group {first.group.label}"
    reason = f"{first} ({what}), which never {never}: {last}"
    others = sorted({wait.rank for wait in absent} - {first.rank})
    if others:
        reason += f"; {some(others)} wait behind it"
    waiting = frozenset(wait.rank for wait in absent)
    verdict = failed(
        PEER_MISSING,
        reason,
        rule="FR-008",
        pid="",
        measured={"missing_ranks": [peer], "waiting_ranks": len(waiting)},
    )
    return Parted(verdict, frozenset({peer}), waiting)


def _crossed(absent: Sequence[Wait]) -> Parted:
    """Each of them waits for one that waits: the circle, without those that only wait behind it."""
    next_of = {wait.rank: wait for wait in reversed(absent)}
    seen: list[int] = []
    rank: int | None = absent[0].rank
    while rank is not None and rank not in seen:
        seen.append(rank)
        rank = next_of[rank].peer
    circle = seen[seen.index(rank) :] if rank in seen else seen
    told = ", ".join(f"{next_of[each]}" for each in circle[:6])
    reason = f"{told}: none of these calls has its other half, each comes behind another"
    verdict = failed(EACH_WAITS, reason, rule="FR-009", measured={"ranks": sorted(circle)[:200]})
    return Parted(verdict, frozenset(), frozenset(next_of))


def _inside(inside: Sequence[Wait]) -> Parted:
    first = inside[0]
    ranks = sorted({each for wait in inside for each in (wait.rank, wait.peer) if each is not None})
    reason = (
        f"{first} (number {first.number} of group {first.group.label}), which called its half: the "
        "transfer began and does not end"
    )
    measured = {"started_ranks": len({wait.rank for wait in inside}), "ranks": ranks[:200]}
    verdict = failed(INSIDE, reason, rule="FR-005", measured=measured)
    return Parted(verdict, frozenset(), frozenset(wait.rank for wait in inside))


TIMES: Final = "TORCH_NCCL_ENABLE_TIMING=1; py-spy and nvidia-smi on these ranks"


def _untold(found: Sequence[Wait]) -> Parted:
    """Somebody waits, and the dumps do not tell for what."""
    order = ("silent", "unknown", "called")
    wait = min(found, key=lambda each: order.index(each.fate))
    why, turn_on = {
        "silent": ("of which there is no dump: often the culprit", ALL_DUMPS),
        "unknown": ("and the dumps do not reach back far enough to tell its half", ALL_DUMPS),
        "called": ("which called its half; whether it began on both is not recorded", TIMES),
    }[wait.fate]
    reason = f"{wait} ({wait.entry.name} of group {wait.group.label}), {why}"
    rule = "FR-006" if wait.fate == "called" else "FR-001"
    verdict = replace(undecidable(reason, turn_on=turn_on), rule=rule)
    return Parted(verdict, frozenset(), frozenset(each.rank for each in found))
