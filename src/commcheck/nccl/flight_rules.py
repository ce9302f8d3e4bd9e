"""Where ranks of a job went apart: FR-001 to FR-007, on the dumps of all of them.

Collectives are matched by process group and ``collective_seq_id``; of each group the first number
on which its members do not agree is the finding, and what comes after it only follows. Sends and
receives are FR-008 and FR-009, in ``flight_p2p``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import failed, passed, undecidable
from commcheck.model import Cause, Verdict, Words
from commcheck.nccl import flight_p2p
from commcheck.nccl.causes import READS, RESTART, step
from commcheck.nccl.flight import Dump, Entry
from commcheck.nccl.flight_groups import ALL_DUMPS, WATCHED, Group, Parted, groups, some
from commcheck.report.counts import many

NEVER_CALLED: Final = Cause(
    slug="hang-rank-missing",
    title=Words("A rank never called the collective", "某 rank 从未调用该集合通信"),
    meaning=Words(
        "All others wait for it inside this collective: it is stuck or died earlier, in its own "
        "code, its data, or an earlier kernel.",
        "其余 rank 都在等它：它更早卡住或已退出，原因在其代码、数据或更早的内核。",
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
DIFFERENT: Final = Cause(
    slug="hang-collectives-differ",
    title=Words("Ranks called different collectives", "各 rank 调用了不同的集合通信"),
    meaning=Words(
        "The program is at fault, not the network: a branch that only some ranks take.",
        "是程序的问题而非网络：只有部分 rank 进入了某个分支。",
    ),
    remedies=(
        step(
            "Compare the code of the named ranks around this call: conditions on the rank, on "
            "data, on unused parameters.",
            "比较这些 rank 在该调用附近的代码：依赖 rank、数据或未使用参数的条件分支。",
            before=RESTART,
        ),
    ),
)
SIZES: Final = Cause(
    slug="hang-sizes-differ",
    title=Words("Ranks called it with different sizes", "各 rank 的消息大小或类型不同"),
    meaning=Words(
        "The program is at fault, not the network: the same operation with another size or type.",
        "是程序的问题而非网络：同一操作的大小或数据类型不同。",
    ),
    remedies=(
        step(
            "Compare batch sizes, uneven last batches and parameters of the named ranks.",
            "比较这些 rank 的批大小、末尾不足批及参数。",
            before=RESTART,
        ),
    ),
)
STUCK: Final = Cause(
    slug="hang-all-inside",
    title=Words("All ranks are inside one collective", "所有 rank 都卡在同一集合通信内"),
    meaning=Words(
        "All called it, all the same, and it does not end: a link, a NIC or a GPU under this "
        "communicator.",
        "所有 rank 都已一致调用却不结束：问题在该通信域下的链路、网卡或 GPU。",
    ),
    remedies=(
        step(
            "Climb from layer 1 on the hosts of this group.",
            "从第一层开始检查该通信组的主机。",
            "commcheck run -i INVENTORY --limit HOSTS",
            before=READS,
        ),
    ),
)
NOT_REACHED: Final = Cause(
    slug="hang-gpu-behind",
    title=Words("Some GPUs have not reached the collective", "部分 GPU 尚未执行到该集合通信"),
    meaning=Words(
        "These ranks called it, and their GPU still works at something earlier: a kernel, a copy, "
        "or another group's collective.",
        "这些 rank 已调用，但其 GPU 仍在执行更早的内核、拷贝或其他组的集合通信。",
    ),
    remedies=(
        step(
            "Look at the named ranks' GPUs: Xid, load, earlier entries of their dump.",
            "检查这些 rank 的 GPU：Xid、负载以及转储中更早的条目。",
            "nvidia-smi -q -d PERFORMANCE,ECC",
            before=READS,
        ),
    ),
)


def judge(dumps: Mapping[int, Dump]) -> tuple[Verdict, ...]:
    """One verdict for each group that went apart; pass where none did."""
    known = groups(dumps)
    if not known:
        return (undecidable("the dumps hold no call", turn_on=ALL_DUMPS),)
    watched = any(dump.backend in WATCHED for dump in dumps.values())
    parted = [each for group in known if (each := _of_group(group, dumps))]
    parted += flight_p2p.judge(known, dumps)
    told = [each for each in parted if each.verdict.cause]
    if told:
        return tuple(each.verdict for each in _first_causes(told))
    if parted:
        return tuple(each.verdict for each in parted)
    missing = sorted({rank for group in known for rank in group.silent})
    if missing:
        reason = (
            f"nothing is recorded of {some(missing)}, and the others agree: the culprit may be "
            "among them"
        )
        return (replace(undecidable(reason, turn_on=ALL_DUMPS), rule="FR-001"),)
    if not watched:
        reason = "all ranks called the same; this backend does not tell what ended"
        return (replace(undecidable(reason, turn_on="py-spy dump on every rank"), rule="FR-007"),)
    reason = f"all calls of {many(len(dumps), 'rank')} agree and ended: a hang is elsewhere"
    return (replace(passed(reason, measured={"ranks": len(dumps)}), rule="FR-007"),)


_OF_THE_PROGRAM: Final = (
    *(NEVER_CALLED, DIFFERENT, SIZES),
    *(flight_p2p.PEER_MISSING, flight_p2p.EACH_WAITS),
)
_HELD: Final = (STUCK, NOT_REACHED, flight_p2p.INSIDE)
"""Its members are all there, and it holds them."""


def _first_causes(told: Sequence[Parted]) -> Sequence[Parted]:
    """A program's fault, or a rank that never came, explains groups that merely wait.

    So does a rank that waits for somebody else explain why it never came: for one that is missing
    too, or inside a collective that does not end though all are there.
    """
    of_program = [each for each in told if each.verdict.cause in _OF_THE_PROGRAM]
    roots = [
        each for each in told if each in of_program or any(_holds(each, o) for o in of_program)
    ]
    first = [
        each
        for each in roots
        if not each.culprits
        or each.culprits - {rank for one in roots if _holds(one, each) for rank in one.waiting}
    ]
    return first or of_program or told


def _holds(one: Parted, other: Parted) -> bool:
    """Do ranks that ``other`` misses wait in ``one``?"""
    if one is other or not other.culprits & one.waiting:
        return False
    # Who called both tells an order, and that the missing rank left out what it calls there.
    return one.verdict.cause not in _HELD or not one.waiting & other.waiting


def _of_group(group: Group, dumps: Mapping[int, Dump]) -> Parted | None:
    seen = {rank: of for rank, of in group.entries.items() if rank in dumps}
    kept = [of for of in seen.values() if of]
    if len(seen) < 2 or not kept or any(group.name in dumps[rank].shared for rank in seen):
        return _not_compared(group, seen)
    low = max(min(of) for of in kept)  # below this somebody's ring has lost it
    numbers = sorted({seq for of in kept for seq in of if seq >= low})
    for seq in numbers:
        here = {rank: of[seq] for rank, of in seen.items() if seq in of}
        absent = [rank for rank, of in seen.items() if seq not in of and max(of, default=0) < seq]
        watched = any(entry.name.startswith(WATCHED) for entry in here.values())
        verdict = _at(group, seq, here, absent, seen, watched)
        if verdict is not None:
            culprits = absent if verdict.cause is NEVER_CALLED else ()
            if verdict.cause is NOT_REACHED:
                culprits = [rank for rank, entry in here.items() if entry.state == "scheduled"]
            return Parted(verdict, frozenset(culprits), frozenset(here))
    return None


def _not_compared(group: Group, seen: Mapping[int, Mapping[int, Entry]]) -> Parted | None:
    """Nobody to compare with, or numbers that are no common ones: only who waits is known."""
    waits = {
        rank: last
        for rank, of in seen.items()
        if of and (last := of[max(of)]).state != "completed" and last.name.startswith(WATCHED)
    }
    if not waits:
        return None
    name = next(iter(waits.values())).name
    reason = f"{name} of group {group.label} has not ended on {some(sorted(waits))}, and "
    if len(seen) < 2:
        reason += f"nothing is recorded of {some(list(group.silent)) if group.silent else 'others'}"
        verdict = replace(undecidable(reason, turn_on=ALL_DUMPS), rule="FR-001")
    else:
        reason += "this PyTorch numbers batches of transfers with its collectives"
        turn_on = "PyTorch 2.5 or newer; py-spy dump on every rank"
        verdict = replace(undecidable(reason, turn_on=turn_on), rule="FR-001")
    return Parted(verdict, frozenset(), frozenset(waits))


def _at(
    group: Group,
    seq: int,
    here: Mapping[int, Entry],
    absent: Sequence[int],
    seen: Mapping[int, Mapping[int, Entry]],
    watched: bool,
) -> Verdict | None:
    """What is wrong at one number, or None where it ended on all."""
    names = Counter(entry.name for entry in here.values())
    usual = names.most_common(1)[0][0]
    what = f"{usual} number {seq} of group {group.label}"
    if len(names) > 1:
        return _differ(group, seq, here, names)
    if not next(iter(here.values())).varies and len({e.shape for e in here.values()}) > 1:
        return _sizes(what, here, seq)
    if watched and not absent and all(entry.state == "completed" for entry in here.values()):
        return None
    if absent:
        if watched and all(entry.state == "completed" for entry in here.values()):
            return None  # it ended: the dump of the others is only older
        return _missing(what, seq, here, absent, seen)
    if not watched:
        return None
    return _inside(group, what, seq, here)


def _missing(
    what: str,
    seq: int,
    here: Mapping[int, Entry],
    absent: Sequence[int],
    seen: Mapping[int, Mapping[int, Entry]],
) -> Verdict:
    told = []
    for rank in list(absent)[:6]:
        mine = seen[rank]
        last = mine[max(mine)] if mine else None
        at = f" at {last.frame}" if last is not None and last.frame else ""
        said = f"its last is {last.name} number {last.seq}{at}" if last else "it recorded none"
        told.append(f"rank {rank} did not: {said}")
    more = f" and {many(len(absent) - 6, 'more rank')}" if len(absent) > 6 else ""
    reason = f"{some(sorted(here))} called {what}; {'; '.join(told)}{more}"
    return failed(
        NEVER_CALLED,
        reason,
        rule="FR-002",
        pid="",
        measured={"seq": seq, "missing_ranks": sorted(absent)[:200], "waiting_ranks": len(here)},
    )


def _differ(group: Group, seq: int, here: Mapping[int, Entry], names: Counter[str]) -> Verdict:
    usual, most = names.most_common(1)[0]
    sides = []
    for name, _ in names.most_common(4):
        ranks = sorted(rank for rank, entry in here.items() if entry.name == name)
        frame = next((here[rank].frame for rank in ranks if here[rank].frame), "")
        sides.append(f"{some(ranks)} called {name}{f' at {frame}' if frame else ''}")
    is_clear = most > len(here) - most
    odd = sorted(rank for rank, entry in here.items() if entry.name != usual) if is_clear else []
    return failed(
        DIFFERENT,
        f"number {seq} of group {group.label}: {', '.join(sides)}",
        rule="FR-003",
        measured={"seq": seq, "odd_ranks": odd[:200], "operations": sorted(names)},
    )


def _sizes(what: str, here: Mapping[int, Entry], seq: int) -> Verdict:
    shapes: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, entry in sorted(here.items()):
        shapes[entry.shape].append(rank)
    sides = [
        f"{some(ranks)} with {_shown(here[ranks[0]])}"
        for ranks in sorted(shapes.values(), key=len, reverse=True)[:4]
    ]
    return failed(
        SIZES, f"{what} was called by {'; '.join(sides)}", rule="FR-004", measured={"seq": seq}
    )


def _shown(entry: Entry) -> str:
    sizes = [list(each) for each in entry.inputs[:4]]
    return f"{sizes} {', '.join(entry.dtypes[:4])}"


def _inside(group: Group, what: str, seq: int, here: Mapping[int, Entry]) -> Verdict | None:
    """All called it alike: some GPUs are late, or all are inside it."""
    states = {rank: entry.state for rank, entry in here.items()}
    late = sorted(rank for rank, state in states.items() if state == "scheduled")
    inside = sorted(rank for rank, state in states.items() if state == "started")
    are = f"{some(inside)} {'is' if len(inside) == 1 else 'are'}"
    measured = {"seq": seq, "started_ranks": len(inside), "scheduled_ranks": late[:200]}
    if group.silent:
        reason = (
            f"{some(sorted(here))} wait in {what}, and nothing is recorded of "
            f"{some(list(group.silent))}: often the culprit"
        )
        return replace(undecidable(reason, turn_on=ALL_DUMPS), rule="FR-001", measured=measured)
    if late and inside:
        reason = f"{are} inside {what}, the GPUs of {some(late)} have not reached it"
        return failed(NOT_REACHED, reason, rule="FR-006", measured=measured)
    if inside:
        ended = len(here) - len(inside)
        reason = f"{are} inside {what}, called by all alike, and it does not end"
        if ended:
            reason += f"; {ended} other ranks have ended it"
        return failed(STUCK, reason, rule="FR-005", measured=measured)
    # Without timing PyTorch keeps no event of the beginning, and what runs stays "scheduled".
    reason = f"{what} has not ended on {some(late)}, and that it began is recorded on none"
    return replace(
        undecidable(reason, turn_on=flight_p2p.TIMES),
        rule="FR-006",
        measured=measured,
    )
