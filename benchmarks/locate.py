"""Runs and rounds that each plan needs to find a fault: ``python benchmarks/locate.py``.

A peer's pair scan is beside it: two fixed passes, every suspect joined with a passed host, nothing
repeated alone and no rails (OCI's and GCP's pair scans work so). A round is 45 s.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from commcheck.jobs.locate import Located
from commcheck.jobs.pairing import ROUND_S, Plan, PlanName, carry_out, next_round
from tests.jobs.fabrics import Simulated, leaves, names

SIZES = (8, 17, 64, 256)
RAILS = 8
FORM = "{:>5}  {:<10}  {:<12}  {:>5}  {:>6}  {:>7}  {}"


def faults(hosts: tuple[str, ...]) -> dict[str, Simulated]:
    """Fabrics with one fault each."""
    half = len(hosts) // 2
    leaf_of = leaves(hosts, 8 if len(hosts) > 8 else 4)
    pair = frozenset({hosts[0], hosts[half]})
    return {
        "none": Simulated(hosts),
        "one host": Simulated(hosts, bad_hosts=frozenset({hosts[half]})),
        "two hosts": Simulated(hosts, bad_hosts=pair),
        "one rail": Simulated(hosts, bad_rails=frozenset({(hosts[1], 3)})),
        "one leaf": Simulated(hosts, leaf_of, uplinks=frozenset({"leaf-0"})),
        "one path": Simulated(hosts, bad_paths=frozenset({pair})),
        "everything": Simulated(hosts, all_bad=True),
    }


def two_fixed_passes(sim: Simulated) -> tuple[int, int]:
    """Runs and rounds of the peers' scan."""
    first = sim.measure(next_round(Plan(hosts=sim.hosts), ()))
    suspects = 2 * sum(not each.good for each in first) + len(sim.hosts) % 2
    second = suspects if any(each.good for each in first) else 0
    return len(first) + second, 1 + bool(second)


def found(located: Located) -> str:
    """What was named, short."""
    told = ", ".join(str(culprit) for culprit in located.culprits[:2]) or "-"
    return f"{told} ({len(located.open)} open)" if located.open else told


def searches(size: int) -> list[tuple[str, PlanName, int]]:
    """What is compared: a label, the plan, and the rails it narrows a host down to."""
    plans: list[tuple[str, PlanName, int]] = [
        ("pairs", "pairs", 0),
        ("pairs, rails", "pairs", RAILS),
    ]
    if size <= 64:
        plans.append(("circle", "circle", 0))
    return [*plans, ("bisect", "bisect", 0), ("rails", "rails", RAILS)]


def main() -> None:
    """Print one line for each fleet, fault and plan."""
    lines = [FORM.format("hosts", "fault", "plan", "runs", "rounds", "minutes", "found")]
    for size in SIZES:
        for fault, sim in faults(names(size)).items():
            runs, rounds = two_fixed_passes(sim)
            lines.append(_line(size, fault, "two passes*", runs, rounds, ""))
            for label, name, rails in searches(size):
                plan = Plan(hosts=sim.hosts, name=name, rails=rails, leaf_of=sim.leaf_of or None)
                located, outcomes, rounds = carry_out(plan, sim.measure)
                lines.append(_line(size, fault, label, len(outcomes), rounds, found(located)))
    lines.append("* suspects once with a passed host: names hosts, on the word of parallel runs")
    sys.stdout.write("\n".join(lines) + "\n")


def _line(size: int, fault: str, plan: str, runs: int, rounds: int, found: str) -> str:
    minutes = f"{rounds * ROUND_S / 60:.1f}"
    return FORM.format(size, fault, plan, runs, rounds, minutes, found)


if __name__ == "__main__":
    main()
