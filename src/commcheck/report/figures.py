"""The pictures of a report: what verdicts carry as data, drawn, each with what it belongs to."""

from __future__ import annotations

from commcheck.diagnose import presentation
from commcheck.lazy import dataclass
from commcheck.model import Words, row
from commcheck.report.charts import draw
from commcheck.report.charts.drawing import Drawing
from commcheck.report.record import Record
from commcheck.report.words import MARKS, Mark


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure on the page. ``drawing`` is None where its data cannot be drawn."""

    id: str
    title: Words
    host: str
    subject: str
    check: str
    mark: Mark
    reason: str
    drawing: Drawing | None


def pictures(record: Record, most: int) -> tuple[tuple[Picture, ...], int]:
    """The first ``most`` figures, those of the worst verdicts first, and how many more there are.

    Several verdicts on one subject may carry the same figure: it is shown once, with the worst.
    """
    found = [
        (finding, figure)
        for result in record.sorted
        for finding in result.findings
        for figure in finding.verdict.figures
    ]
    found.sort(key=lambda each: row(each[0].verdict).rank)
    seen: set[tuple[str, str, str, str]] = set()
    chosen = []
    for finding, figure in found:
        key = (finding.host, finding.subject, figure.form, repr(figure.data))
        if key not in seen:
            seen.add(key)
            chosen.append((finding, figure))
    shown = tuple(
        Picture(
            id=f"chart-{number}",
            title=figure.title,
            host=finding.host,
            subject=finding.subject,
            check=finding.check,
            mark=MARKS[presentation(finding)],
            reason=finding.verdict.reason,
            drawing=draw(figure),
        )
        for number, (finding, figure) in enumerate(chosen[:most], start=1)
    )
    return shown, max(0, len(chosen) - most)
