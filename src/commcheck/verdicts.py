"""How a judge says what it found: verdicts with their reasons, and remedies with their commands.

Checks take these names from ``commcheck.check``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from commcheck.command import IN_BRACES
from commcheck.lazy import regex
from commcheck.model import Cause, Kind, Remedy, Status, Verdict

_FILLER: Final = regex(r"[A-Za-z0-9_.:,/+@=-]{1,128}")


def passed(reason: str, *, measured: Mapping[str, object] | None = None) -> Verdict:
    """Read, judged, right."""
    return Verdict(status=Status.PASS, reason=reason, measured=measured or {})


def failed(
    cause: Cause,
    reason: str,
    *,
    measured: Mapping[str, object] | None = None,
    rule: str = "",
    **places: object,
) -> Verdict:
    """Proven wrong. ``places`` fill the remedies' commands; say the value seen and wanted."""
    return Verdict(
        status=Status.FAIL,
        reason=reason,
        cause=cause,
        remedies=remedies_for(cause, places),
        measured=measured or {},
        rule=rule,
    )


def warned(
    cause: Cause,
    reason: str,
    *,
    measured: Mapping[str, object] | None = None,
    rule: str = "",
    **places: object,
) -> Verdict:
    """Wrong, but advisory: shown and counted, gates nothing."""
    return replace(
        failed(cause, reason, measured=measured, rule=rule, **places), status=Status.WARN
    )


def undecidable(reason: str, *, turn_on: str = "") -> Verdict:
    """The input cannot tell. ``turn_on`` says what would make it tell."""
    return Verdict(
        status=Status.SKIP,
        kind=Kind.UNDECIDABLE,
        reason=f"{reason}; {turn_on}" if turn_on else reason,
    )


def not_applicable(reason: str) -> Verdict:
    """Does not apply to this subject."""
    return Verdict(status=Status.SKIP, kind=Kind.NOT_APPLICABLE, reason=reason)


def fitting(remedies: Iterable[Remedy], driver: object) -> tuple[Remedy, ...]:
    """Without commands for another maker's card, where others are left; None: not known whose."""
    told = tuple(remedies)
    return tuple(each for each in told if driver is None or each.driver in ("", driver)) or told


def known_to(accelerator: str, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Without commands for other devices than "gpu", "npu" or "" (neither), where some are left."""
    told = tuple(remedies)
    return tuple(each for each in told if each.accelerator in ("", accelerator)) or told


def remedies_for(cause: Cause, places: Mapping[str, object]) -> tuple[Remedy, ...]:
    """The cause's remedies, their commands filled; a place that was not given stays to be seen."""

    def fill(match: re.Match[str]) -> str:
        value = str(places.get(match[1], ""))
        if not _FILLER.fullmatch(value):
            # Shown as a place: better an unfilled command than a hostile one that gets pasted, and
            # than a fail that is lost because its remedy has a typing error.
            return "<" + match[1].upper() + ">"
        return value

    return tuple(
        replace(remedy, command=IN_BRACES.sub(fill, remedy.command)) for remedy in cause.remedies
    )
