"""Commands that take failing hosts out of a scheduler: printed for a person, never run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from commcheck.diagnose import diagnose
from commcheck.inventory.slurm import DRAINED_BY
from commcheck.lazy import regex
from commcheck.model import Status
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Record

_PLACE: Final = regex(r"\{(\w*)\}")
_PLACES: Final = ("hosts", "names", "reason")


def fault(template: str) -> str:
    """What is wrong with a template, or ""."""
    places = set(_PLACE.findall(template))
    if unknown := sorted(places - set(_PLACES)):
        return f"{{{unknown[0]}}} is no place; there are {{hosts}}, {{names}} and {{reason}}"
    return "" if places & {"hosts", "names"} else "it has no place {hosts} or {names}"


def commands(record: Record, template: str) -> Iterator[str]:
    """One command for each cause, the lowest first; a host stands in the first that has it.

    ``{hosts}`` is folded as Slurm reads it, ``gpu-[07,09]``; ``{names}`` is one word a host, for
    commands that know no brackets: kubectl cordon, pbsnodes -o, badmin hclose. All places are
    quoted for a shell.
    No template, no command.
    """
    if not template:
        return
    left = dict.fromkeys(record.plan.hosts)
    for group in diagnose(record).groups:
        hosts = [host for host in group.hosts if host in left]
        if group.status is not Status.FAIL or not hosts:
            continue
        for host in hosts:
            del left[host]
        told = {
            "hosts": shlex.quote(fold_hosts(hosts)),
            "names": shlex.join(hosts),
            "reason": shlex.quote(f"{DRAINED_BY}{group.slug}"),
        }
        yield _PLACE.sub(lambda place: told[place[1]], template)  # noqa: B023 - used at once
