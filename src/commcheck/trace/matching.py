"""Which calls of several ranks are one collective: by group and number, or by order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from commcheck.trace.facts import Call
from commcheck.trace.names import POINT_TO_POINT
from commcheck.trace.roles import Role, role_of
from commcheck.trace.store import Transfer, members_of

_Family = tuple[str, str]
"""Kind and group."""

_Number = tuple[int, int, str]
"""Sequence or ordinal, step (by ordinal only), stream (by ordinal only)."""

Together = Mapping[int, Call]
"""One collective as each rank saw it, by the ranks' places, in their order; two at least."""


def match(
    calls: Sequence[Sequence[Call]], notes: list[str], pipes: Collection[str] = ()
) -> list[Together]:
    """The collectives that several ranks take part in, without send and receive.

    By sequence number within the group where every call has its own, else by ordinal within step,
    group and stream. A group that tells its members is matched among those of them that are seen;
    of any other nothing tells whose it is, and it must be that of all ranks. Kinds whose counts
    differ between ranks are not matched, and ``notes`` says so.

    ``pipes``: groups between stages, which come and go by turns: what crosses them tells no late
    rank, and is left out.
    """
    stages = [members_of(pipe) for pipe in pipes]
    by_rank = [_by_family(mine, len(calls), stages) for mine in calls]
    matched: list[Together] = []
    for family in dict.fromkeys(each for mine in by_rank for each in mine):
        kind, group = family
        seen = {place: mine[family] for place, mine in enumerate(by_rank) if family in mine}
        if len(seen) < (2 if members_of(group) else len(calls)):
            continue
        if len({len(mine) for mine in seen.values()}) > 1:
            of = f" of group {group}" if group else ""
            counts = ", ".join(str(len(mine)) for mine in seen.values())
            notes.append(f"{kind}{of}: the ranks count {counts} calls; they are not matched")
            continue
        first, *others = seen.values()
        matched += [
            {place: mine[number] for place, mine in seen.items()}
            for number in first
            if all(number in mine for mine in others)
        ]
    return matched


def _is_small(what: Transfer, ranks: int) -> bool:
    """Is it of a group of some, that does not tell which?

    A size of 0 is untold; one that holds every rank that there is a trace of is that of all.
    """
    if members_of(what.group):
        return False
    is_for_some = not what.group and role_of(what.about) is not Role.OTHER
    return is_for_some or 0 < what.group_size < ranks


def _crosses(what: Transfer, stages: Iterable[frozenset[int]]) -> bool:
    """Are two of its members stages of one pipeline, or may they be?"""
    mine = members_of(what.group)
    return any(not pipe or not mine or len(mine & pipe) > 1 for pipe in stages)


def _by_family(
    calls: Iterable[Call], ranks: int, stages: Collection[frozenset[int]]
) -> dict[_Family, dict[_Number, Call]]:
    left_out: dict[Transfer, bool] = {}
    mine = []
    for call in calls:
        what = call.transfer
        if what not in left_out:
            left_out[what] = (
                what.kind in POINT_TO_POINT or _is_small(what, ranks) or _crosses(what, stages)
            )
        if not left_out[what]:
            mine.append(call)
    seqs = Counter((call.transfer.kind, call.transfer.group, call.seq) for call in mine)
    found: dict[_Family, dict[_Number, Call]] = {}
    ordinals: Counter[tuple[object, ...]] = Counter()
    for call in sorted(mine, key=lambda each: each.start):
        family = call.transfer.kind, call.transfer.group
        numbered = found.setdefault(family, {})
        if call.seq >= 0 and seqs[(*family, call.seq)] == 1:
            numbered[call.seq, -1, ""] = call
            continue
        # gloo hands collectives to whichever of its threads is free: on each rank another one.
        # Rows of HCCL are numbered on each rank anew, and are those of one group.
        stream = "" if call.stream.startswith(("thread ", "Group ")) else call.stream
        place = (*family, call.step, stream)
        numbered[ordinals[place], call.step, stream] = call
        ordinals[place] += 1
    return found
