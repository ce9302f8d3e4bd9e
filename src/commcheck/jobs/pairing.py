"""Which hosts run together next: two-pass pairs, circle, bisection and rail by rail.

Every plan is a function from what is known to the next round, so that the same code launches,
previews and simulates. No host is in two runs of one round, and after its own rounds every plan
asks for the runs that decide what is still open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from commcheck.jobs.locate import Located, locate
from commcheck.jobs.outcomes import ALL_RAILS, Outcome, Run
from commcheck.lazy import dataclass
from commcheck.report.counts import many

PlanName = Literal["pairs", "circle", "bisect", "rails"]
ROUND_S: Final = 45.0
"""One pair run of 2 GiB with start-up, seconds. Source: OCI and GCP pair scans take 30 to 60."""
_MOST_ROUNDS: Final = 4096

Round = tuple[Run, ...]
Measure = Callable[[Round], Sequence[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be searched. ``rails``: NICs a host; ``leaf_of``: switch of a host, if known."""

    hosts: tuple[str, ...]
    name: PlanName = "pairs"
    rails: int = 0
    leaf_of: Mapping[str, str] | None = None
    narrow: bool = True  # once a host is named, try its rails one by one (needs ``rails``)

    def __post_init__(self) -> None:
        """Refuse what cannot be paired."""
        if len(set(self.hosts)) != len(self.hosts) or len(self.hosts) < 2:
            raise ValueError("a plan needs two different hosts at least")
        if self.name == "rails" and self.rails < 2:
            raise ValueError("the plan by rails needs their number, two at least")


def next_round(plan: Plan, outcomes: Sequence[Outcome]) -> Round:
    """The next runs, to be launched at once; empty when nothing more can be learnt."""
    steps = {"pairs": _pairs, "circle": _circle, "bisect": _bisect, "rails": _rails}
    done = {(frozenset(each.run.hosts), each.run.rail) for each in outcomes}
    for round_ in steps[plan.name](plan, outcomes):
        new = tuple(run for run in round_ if (frozenset(run.hosts), run.rail) not in done)
        if new:
            return _marked(new)
    return _marked(_deciding(plan, outcomes))


def carry_out(plan: Plan, measure: Measure) -> tuple[Located, tuple[Outcome, ...], int]:
    """Run a plan to its end: what was found, every outcome, and the number of rounds."""
    outcomes: list[Outcome] = []
    rounds = 0
    while rounds < _MOST_ROUNDS and (round_ := next_round(plan, outcomes)):
        outcomes += measure(round_)
        rounds += 1
    return locate(plan.hosts, outcomes, plan.leaf_of), tuple(outcomes), rounds


def _marked(round_: Round) -> Round:
    """A run that has the fabric to itself says so."""
    return (replace(round_[0], alone=True),) if len(round_) == 1 else round_


# --- plans --------------------------------------------------------------------------------------


def _halves(hosts: Sequence[str], rail: int | None = None) -> Round:
    """The upper half against the lower: pairs across racks, where the inventory is in rack order.

    With an odd number the last host waits: joined with a good one later.
    """
    half = len(hosts) // 2
    return tuple(Run((hosts[at], hosts[at + half]), rail) for at in range(half))


def _pairs(plan: Plan, outcomes: Sequence[Outcome]) -> Iterator[Round]:
    yield _halves(plan.hosts)
    yield from _second_pass(plan, outcomes, None)


_FEW: Final = 6  # hosts of which half may be bad without a passing pair in two rounds


def _second_pass(plan: Plan, outcomes: Sequence[Outcome], rail: int | None) -> Iterator[Round]:
    """Other partners, where nobody passed; what else is open, ``locate`` asks for itself."""
    mine = [each for each in outcomes if each.run.rail == rail]
    if any(each.good for each in mine) or not any(each.good is False for each in mine):
        return
    if len(plan.hosts) > 3:
        pairs = zip(plan.hosts[::2], plan.hosts[1::2], strict=False)
        yield tuple(Run(pair, rail) for pair in pairs)
    if len(plan.hosts) <= _FEW:
        yield from _rounds(plan.hosts, rail)


def _circle(plan: Plan, _outcomes: Sequence[Outcome]) -> Iterator[Round]:
    yield from _rounds(plan.hosts, None)


def _rounds(hosts: Sequence[str], rail: int | None) -> Iterator[Round]:
    """Every pair once: one host stays, the others go round (N - 1 rounds, N if odd)."""
    ring: list[str | None] = [*hosts]
    if len(ring) % 2:
        ring.append(None)
    for _ in range(len(ring) - 1):
        ends = [(ring[at], ring[-1 - at]) for at in range(len(ring) // 2)]
        yield tuple(Run((a, b), rail) for a, b in ends if a is not None and b is not None)
        ring = [ring[0], ring[-1], *ring[1:-1]]


def _bisect(plan: Plan, outcomes: Sequence[Outcome]) -> Iterator[Round]:
    """All at once, then the halves of what fails, at the same time."""
    verdicts = {each.run.hosts: each.good for each in outcomes}
    level: list[tuple[str, ...]] = [plan.hosts]
    while level:
        yield tuple(Run(hosts) for hosts in level)
        parts = []
        for hosts in level:
            if verdicts.get(hosts) is False and len(hosts) >= 4:
                half = len(hosts) // 2
                parts += [hosts[:half], hosts[half:]]
        level = parts


def _rails(plan: Plan, outcomes: Sequence[Outcome]) -> Iterator[Round]:
    """All rails in one launch; if that fails, rail by rail, then pairs on the bad rails alone."""
    verdicts = {(each.run.hosts, each.run.rail): each.good for each in outcomes}
    yield (Run(plan.hosts, ALL_RAILS),)
    if verdicts.get((plan.hosts, ALL_RAILS)) is not False:
        return
    for rail in range(plan.rails):
        yield (Run(plan.hosts, rail),)
    for rail in range(plan.rails):
        if verdicts.get((plan.hosts, rail)) is False:
            yield _halves(plan.hosts, rail)
            yield from _second_pass(plan, outcomes, rail)


# --- what is still open -------------------------------------------------------------------------


def _deciding(plan: Plan, outcomes: Sequence[Outcome]) -> Round:
    """The runs that decide what is open, as many at once as have no host in common.

    Repeats that must be alone come last, one a round.
    """
    located = locate(plan.hosts, outcomes, plan.leaf_of)
    done = {(frozenset(o.run.hosts), o.run.rail) for o in outcomes}
    done_alone = {(frozenset(o.run.hosts), o.run.rail) for o in outcomes if o.run.alone}
    chosen: list[Run] = []
    taken: set[str] = set()
    alone: list[Run] = []
    for each in located.open:
        if each.run is None:
            continue
        partners = (each.run.hosts[-1], *each.instead)
        runs = [replace(each.run, hosts=(*each.run.hosts[:-1], partner)) for partner in partners]
        seen = done_alone if each.run.alone else done
        new = [run for run in runs if (frozenset(run.hosts), run.rail) not in seen]
        if new and each.run.alone:
            alone.append(new[0])
            continue
        free = next((run for run in new if not taken & set(run.hosts)), None)
        if free is not None:
            chosen.append(free)
            taken.update(free.hosts)
    if chosen:
        return tuple(chosen)
    return (alone[0],) if alone else _narrowing(plan, located, outcomes)


def _narrowing(plan: Plan, located: Located, outcomes: Sequence[Outcome]) -> Round:
    """The rails of named hosts, one by one, each host with a good partner of its own."""
    if not plan.rails or not plan.narrow or plan.name == "rails":
        return ()
    named = [c.hosts[0] for c in located.culprits if c.what in ("host", "rail")]
    done = {(o.run.hosts, o.run.rail) for o in outcomes}
    good = [host for host in plan.hosts if host in located.good]
    pairs = list(zip(dict.fromkeys(named), good, strict=False))
    for rail in range(plan.rails):
        runs = [Run(pair, rail) for pair in pairs]
        new = [run for run in runs if (run.hosts, run.rail) not in done]
        if new:
            return tuple(new)
    return ()


# --- before anything runs -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """What a plan costs: runs, rounds and seconds, when all is well and with one bad host."""

    plan: Plan
    first: Round
    runs: tuple[int, int]
    rounds: tuple[int, int]
    round_s: float

    @property
    def lines(self) -> tuple[str, ...]:
        """For a person, before anything is launched."""
        hosts, (runs, more), (rounds, longer) = len(self.plan.hosts), self.runs, self.rounds
        return (
            f"plan {self.plan.name} over {hosts} hosts: {runs} runs in {rounds} rounds, about "
            f"{_minutes(rounds * self.round_s)}, when all is well",
            f"with one bad host: {many(more, 'run')} in {longer} rounds, about "
            f"{_minutes(longer * self.round_s)}",
            "first round: "
            + "; ".join(str(run) for run in self.first[:8])
            + (f"; and {len(self.first) - 8} more" if len(self.first) > 8 else ""),
        )


def preview(plan: Plan, round_s: float = ROUND_S) -> Preview:
    """What a plan would run, found by running it against a sound fabric and one bad host."""

    def sound(round_: Round) -> list[Outcome]:
        return [Outcome(run, good=True) for run in round_]

    def one_bad(round_: Round) -> list[Outcome]:
        return [Outcome(run, good=plan.hosts[0] not in run.hosts) for run in round_]

    ends = [carry_out(plan, measure) for measure in (sound, one_bad)]
    return Preview(
        plan=plan,
        first=next_round(plan, ()),
        runs=(len(ends[0][1]), len(ends[1][1])),
        rounds=(ends[0][2], ends[1][2]),
        round_s=round_s,
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
