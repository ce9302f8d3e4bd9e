"""What commands answered, as reports show it: each text once, and referred to where it comes again.

A thousand hosts with one fault answer alike; a page that repeats them a thousand times opens slowly
and tells nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from commcheck.diagnose import slug_of
from commcheck.lazy import dataclass
from commcheck.model import Evidence, Finding
from commcheck.report.cleaning import clean
from commcheck.report.words import alike, command_of, middle_cut

MAX_COMMANDS: Final = 8
"""Commands shown for one finding; what spoke comes first."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One command with its answer, or with a reference to an equal answer shown before.

    ``same_as`` is the id of that other answer, ``host`` whose it is; ``but_numbers``: they differ
    in numbers, and in nothing else.
    """

    id: str
    host: str
    command: str
    phase: str
    rc: str
    seconds: float
    text: str
    used: bool
    truncated: bool
    same_as: str = ""
    but_numbers: bool = False


@dataclass(slots=True)
class Shelf:
    """Keeps what a page has shown. ``limit`` is in characters of one answer."""

    limit: int
    _texts: dict[tuple[str, ...], tuple[str, str, str]] = field(default_factory=dict)

    def of(self, finding: Finding) -> tuple[Shown, ...]:
        """A finding's evidence, what spoke before the fallbacks that did not."""
        ordered = sorted(finding.evidence, key=lambda each: not each.used)
        return tuple(self._show(finding, each) for each in ordered[:MAX_COMMANDS])

    def _show(self, finding: Finding, evidence: Evidence) -> Shown:
        command, phase = command_of(evidence)
        # Cut after cleaning: the half of a secret's line would not be masked.
        text = middle_cut(clean(evidence.head).strip("\n"), self.limit)
        ident, host, whole = "", finding.host, text
        fresh = f"evidence-{len(self._texts) + 1}"
        if text:
            key = (finding.check, slug_of(finding), phase, str(evidence.rc), alike(command + text))
            ident, host, whole = self._texts.setdefault(key, (fresh, finding.host, text))
        again = ident not in ("", fresh)
        return Shown(
            id="" if again else ident,
            host=host,
            command=command,
            phase=phase,
            rc="not known" if evidence.rc is None else str(evidence.rc),
            seconds=evidence.seconds,
            text="" if again else text,
            used=evidence.used,
            truncated=evidence.truncated,
            same_as=ident if again else "",
            but_numbers=again and whole != text,
        )


def typical(findings: Sequence[Finding]) -> Finding | None:
    """The first finding that has an answer to show."""
    return next((finding for finding in findings if finding.evidence), None)
