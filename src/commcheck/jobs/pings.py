"""What jobs that ping between hosts share: whose fault it is, in words of pings.

Where no ping passes anywhere, ICMP may be filtered: that is undecided, and blames nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from commcheck.check import remedies_for, undecidable
from commcheck.jobs import places, said
from commcheck.jobs.job import Search
from commcheck.jobs.locate import Culprit
from commcheck.lazy import dataclass
from commcheck.model import Cause, Status, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Pings:
    """How one tool's pings are told.

    ``cause_of``: of the verdicts that failed. ``filtered``: what tells where nothing passes.
    """

    cause_of: Callable[[Sequence[Verdict]], Cause]
    filtered: str

    def of_host(self, found: Search, host: str) -> tuple[Verdict, ...]:
        """What the search says of one host."""
        return self._retold(found, said.of_host(found, host))

    def together(self, found: Search) -> tuple[Verdict, ...]:
        """What it says of all: paths, switches, or that nothing passes anywhere."""
        outcomes = tuple(each.outcome for each in found.ran)
        return self._retold(found, places.verdicts(found.hosts, found.located, outcomes))

    def _retold(self, found: Search, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """The verdicts of the search in the words of pings, with an example of what failed."""
        told = []
        for verdict in verdicts:
            culprit = next(
                (c for c in found.located.culprits if verdict.reason.startswith(f"{c}:")), None
            )
            if culprit is None:
                told.append(replace(verdict, figures=()))
            elif culprit.what == "fabric":
                reason = f"undecidable: no ping came through between any hosts: {verdict.reason}"
                said = undecidable(reason, turn_on=self.filtered)
                told.append(replace(said, hosts=verdict.hosts))
            else:
                ways = _fails(found, culprit)
                fails = [fail for _, fail in ways]
                cause = self.cause_of(fails)
                example = f"; {fails[0].reason}" if fails else ""
                reason = f"{verdict.reason}{example}"
                # Its commands are run at the culprit: filled for a way that begins there.
                remedies = next(
                    (
                        fail.remedies
                        for sender, fail in ways
                        if sender in culprit.hosts and fail.cause is cause
                    ),
                    remedies_for(cause, {}),
                )
                told.append(
                    replace(verdict, cause=cause, remedies=remedies, reason=reason, figures=())
                )
        return tuple(told)


def _fails(found: Search, culprit: Culprit) -> list[tuple[str, Verdict]]:
    """What failed for its sake, and at which host it began: on its rail alone where that was
    tried, with good partners."""
    mine = [ran for ran in found.ran if set(culprit.hosts) & set(ran.run.hosts)]
    on_rail = [ran for ran in mine if ran.run.rail == culprit.rail] or mine
    known = found.located.good | set(culprit.hosts)
    sure = [ran for ran in on_rail if set(ran.run.hosts) <= known] or on_rail
    return [
        (ran.run.hosts[0], each)
        for ran in sure
        for each in ran.verdicts
        if each.status is Status.FAIL
    ]
