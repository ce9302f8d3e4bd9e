"""Two traces of one job, before and after: how much blank time went away."""

from __future__ import annotations

from statistics import median

from commcheck.lazy import dataclass
from commcheck.model import Figure
from commcheck.report.counts import many
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.lanes import figure


@dataclass(frozen=True, slots=True)
class Change:
    """A time per step (medians over steps, then over ranks), before and after, in ns."""

    name: str
    old_ns: int
    new_ns: int

    @property
    def gone_ns(self) -> int:
        """What went away; negative where it grew."""
        return self.old_ns - self.new_ns


@dataclass(frozen=True, slots=True)
class Comparison:
    """``step``, ``exposed``, ``blank`` (nothing computes) and the rest, old against new."""

    changes: tuple[Change, ...]
    figures: tuple[Figure, ...]  # the old step, the new step
    notes: tuple[str, ...]

    def of(self, name: str) -> Change:
        """The change of one name."""
        return next(change for change in self.changes if change.name == name)

    @property
    def lines(self) -> tuple[str, ...]:
        """What a person reads."""
        told = [
            f"{change.name:14} {change.old_ns / 1e6:10.2f} ms -> {change.new_ns / 1e6:10.2f} ms  "
            f"{'gone' if change.gone_ns >= 0 else 'more'} {abs(change.gone_ns) / 1e6:.2f} ms"
            + (f" ({change.gone_ns / change.old_ns:+.0%})" if change.old_ns else "")
            for change in self.changes
        ]
        return (*told, *self.notes)


_FIELDS = {
    "step": "time_ns",
    "compute": "compute_ns",
    "communication": "comm_ns",
    "exposed": "exposed_ns",
    "idle": "idle_ns",
}


def compare(old: JobFacts, new: JobFacts) -> Comparison:
    """What changed between two traces. ``blank`` is the step without computing."""
    changes = [
        Change(name, _typical(old, field), _typical(new, field)) for name, field in _FIELDS.items()
    ]
    changes.append(Change("blank", _blank(old), _blank(new)))
    notes = []
    if len(old.ranks) != len(new.ranks):
        notes.append(
            f"{many(len(old.ranks), 'rank')} before, {len(new.ranks)} after: not the same job"
        )
    if abs(changes[1].gone_ns) > 0.1 * max(1, changes[1].old_ns):
        notes.append("the computing itself changed by more than 10 %: the work was not the same")
    return Comparison(
        tuple(changes),
        (figure(old.ranks[0]), figure(new.ranks[0])),
        tuple(notes),
    )


def _typical(job: JobFacts, field: str) -> int:
    return int(median(median(getattr(s, field) for s in rank.steps) for rank in job.ranks))


def _blank(job: JobFacts) -> int:
    return int(median(_rank_blank(rank) for rank in job.ranks))


def _rank_blank(rank: RankFacts) -> float:
    return float(median(step.time_ns - step.compute_ns for step in rank.steps))
