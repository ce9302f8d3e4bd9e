"""The verdicts on a search: one for each object at fault, one for each question left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import failed, passed, undecidable, warned
from commcheck.jobs import causes_places
from commcheck.jobs.locate import Culprit, Located
from commcheck.jobs.matrix import matrix
from commcheck.jobs.outcomes import Outcome
from commcheck.model import Cause, Verdict

_CAUSES: Final[Mapping[str, Cause]] = {
    "host": causes_places.BAD_HOST,
    "rail": causes_places.BAD_RAIL,
    "plane": causes_places.BAD_PLANE,
    "path": causes_places.BAD_PATH,
    "leaf": causes_places.BAD_LEAF,
    "fabric": causes_places.FLEET,
    "parallel": causes_places.PARALLEL_ONLY,
}


def verdicts(
    hosts: Sequence[str],
    located: Located,
    outcomes: Sequence[Outcome],
    floor_gbytes: float | None = None,
) -> tuple[Verdict, ...]:
    """Fails for culprits, undecidable for what is open; a pass only where neither is.

    ``floor_gbytes``: the least busbw that passed, for the picture.
    """
    measured = {
        "runs": located.runs,
        "paths_exercised": located.paths,
        "paths": located.all_paths,
        "hosts_good": len(located.good),
    }
    found = [_on(culprit, located, measured) for culprit in located.culprits]
    for question in located.open:
        decides = f"this run would decide: {question.run}" if question.run else ""
        verdict = undecidable(question.why, turn_on=decides)
        found.append(replace(verdict, hosts=question.hosts, measured=measured))
    asked = {host for question in located.open for host in question.hosts}
    unseen = [host for host in located.unseen if host not in asked]
    if unseen:
        verdict = undecidable(f"{', '.join(unseen[:8])}: no run with it proved anything")
        found.append(replace(verdict, hosts=tuple(unseen), measured=measured))
    if not found:
        found.append(
            passed(f"all {len(hosts)} hosts are good: {located.coverage}", measured=measured)
        )
    return (replace(found[0], figures=(matrix(hosts, outcomes, floor_gbytes),)), *found[1:])


def _on(culprit: Culprit, located: Located, measured: Mapping[str, object]) -> Verdict:
    # Slow only beside others is no fault of a part: it is told, and blocks nothing.
    judged = warned if culprit.what == "parallel" else failed
    verdict = judged(
        _CAUSES[culprit.what],
        f"{culprit}: {culprit.proof}; {located.coverage}",
        measured=measured,
        rule=culprit.what,
        host=culprit.hosts[0],
    )
    return replace(verdict, hosts=culprit.hosts)
