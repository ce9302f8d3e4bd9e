"""What speaks for a cause and against it, by what other checks found on the same hosts. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from commcheck.model import Status, Words
from commcheck.report.counts import many

if TYPE_CHECKING:
    from commcheck.diagnose import Consequence
    from commcheck.report.record import Record


def witnesses(
    record: Record, slug: str, hosts: tuple[str, ...], follows: tuple[Consequence, ...]
) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """What speaks for a cause and against it, where it was looked for.

    Against it: checks that would suffer from it pass, or one that declares so.
    """
    speaks_for = [
        Words(
            f"{each.check} suffers where it would ({many(len(each.hosts), 'host')})",
            f"{each.check} 也随之受影响（{len(each.hosts):,} 台主机）",
        )
        for each in follows
    ]
    against = []
    suffers = {check.id for check in record.plan.checks if slug in check.explained_by}
    denies = {check.id for check in record.plan.checks if slug in check.contradicts}
    here = set(hosts)
    fine: defaultdict[str, set[str]] = defaultdict(set)
    for result in record.sorted if suffers or denies else ():
        told = result.check in suffers or result.check in denies
        if told and result.host in here and result.status is Status.PASS:
            fine[result.check].add(result.host)
    for check, names in fine.items():
        why, why_zh = _WHY_AGAINST[check in suffers]
        against.append(
            Words(
                f"{check} passes on {len(names):,} of them, {why}",
                f"{check} 在其中 {len(names):,} 台上通过，{why_zh}",
            )
        )
    return tuple(speaks_for), tuple(against)


_WHY_AGAINST: Final = {
    True: ("though it would suffer from this", "而它本应因此受影响"),
    False: ("so what this leads to is not seen there", "因此在那里看不到它会引起的现象"),
}
