"""From the outcomes of runs to the object at fault: host, rail, path, leaf or the whole fabric.

A run passes only if every host in it and every path between them is good, so one pass clears a
host. A host is named when it fails with two good partners; a path only when both ends are good
elsewhere; nothing is named on the word of parallel runs alone. What the runs so far cannot decide
is told, with the one run that would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from commcheck.jobs.outcomes import ALL_RAILS, Facts, Outcome, Run, facts_of
from commcheck.lazy import dataclass

Object = Literal["host", "rail", "plane", "path", "leaf", "fabric", "parallel"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is at fault. ``proof`` names the runs that show it."""

    what: Object
    hosts: tuple[str, ...]
    rail: int | None = None
    leaf: str = ""
    proof: str = ""

    def __str__(self) -> str:
        rail = f" rail {self.rail}" if self.rail is not None else ""
        if self.what == "leaf":
            return f"leaf {self.leaf}{rail}"
        if self.what in ("fabric", "plane"):
            return f"the whole fabric{rail}"
        if self.what == "rail":
            return f"host {self.hosts[0]}{rail}"
        return f"{self.what} {' - '.join(self.hosts)}{rail}"


@dataclass(frozen=True, slots=True)
class Open:
    """What cannot be decided yet, and the one run that would. ``run`` is None where none can.

    ``instead``: hosts that may stand in for the run's last one.
    """

    hosts: tuple[str, ...]
    why: str
    run: Run | None
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The state of the search. ``paths``: pairs of hosts that ran together, of all there are."""

    culprits: tuple[Culprit, ...]
    good: frozenset[str]
    open: tuple[Open, ...]
    unseen: tuple[str, ...]  # hosts without a run that proved something
    paths: int
    all_paths: int
    runs: int

    @property
    def coverage(self) -> str:
        """One line on what was exercised."""
        return f"{self.paths} of {self.all_paths} paths exercised in {self.runs} runs"


def locate(
    hosts: Sequence[str],
    outcomes: Sequence[Outcome],
    leaf_of: Mapping[str, str] | None = None,
) -> Located:
    """What the outcomes prove, and what they leave open."""
    leaf_of = leaf_of or {}
    rails = sorted({o.run.rail for o in outcomes if o.run.rail is not None and o.run.rail >= 0})
    # Tried one by one, the rails say more than a run that splits into all of them.
    whole = (None,) if rails else (None, ALL_RAILS)
    facts = facts_of(hosts, [o for o in outcomes if o.run.rail in whole], leaf_of)
    culprits, left = _judge(facts, None)
    good = set(facts.good)
    if rails:
        proven = frozenset(c.hosts[0] for c in culprits if c.what == "host")
        by_rail: dict[int, Facts] = {}
        for rail in rails:
            by_rail[rail] = facts_of(hosts, [o for o in outcomes if o.run.rail == rail], leaf_of)
            by_rail[rail].good |= facts.good
            by_rail[rail].proven = proven
        found = {rail: _judge(each, rail) for rail, each in by_rail.items()}
        left += [each for _, more in found.values() for each in more]
        on_rails = [culprit for named, _ in found.values() for culprit in named]
        culprits = _with_rails(culprits, on_rails, by_rail)
        good |= set(hosts).intersection(*(each.good for each in by_rail.values()))
        if not culprits and not left:
            left.append(Open(tuple(hosts), "each rail passes, and all at once do not", None))
    ran = facts_of(hosts, outcomes, leaf_of)
    return Located(
        culprits=tuple(culprits),
        good=frozenset(good),
        open=tuple(left),
        unseen=tuple(host for host in hosts if host not in ran.tried),
        paths=len(ran.passed | set(ran.failed)),
        all_paths=len(hosts) * (len(hosts) - 1) // 2,
        runs=len(outcomes),
    )


# --- one rail, or all together ------------------------------------------------------------------


def _judge(facts: Facts, rail: int | None) -> tuple[list[Culprit], list[Open]]:
    if not facts.good and (facts.failed or facts.groups_failed):
        return _nobody(facts, rail)
    left: list[Open] = []
    bad: list[str] = []
    for host in facts.hosts:
        # Rails are tried where there is a reason; all together, every host has its turn.
        if host in facts.good or (host not in facts.tried and (rail is not None or not facts.good)):
            continue
        wanted = _what_decides(facts, host, rail)
        if wanted is None:
            bad.append(host)
        else:
            left.append(wanted)
    paths, more = _paths(facts, rail)
    culprits = _hosts_or_leaves(facts, bad, rail) + paths + _parallel(facts, rail)
    left += more
    for group in facts.groups_failed:
        if set(group) <= facts.good and not culprits and not left:
            why = f"{len(group)} hosts fail together, and its parts pass: the circle plan tells"
            left.append(Open(group, why, None))
    return culprits, left


def _nobody(facts: Facts, rail: int | None) -> tuple[list[Culprit], list[Open]]:
    """No run passed. One failure is repeated alone, and partners are changed once, before it is
    said of all."""
    partners = {host: len(others) for host, others in facts.against.items()}
    alone = any(facts.failed.values())
    pair = next(iter(facts.failed), None)
    if not alone and (pair is not None or facts.groups_failed):
        hosts = tuple(sorted(pair)) if pair else facts.groups_failed[-1][:2]
        run = Run(hosts, rail, alone=True)
        return [], [Open(hosts, "nothing passed, but nothing was tried alone", run)]
    if len(facts.tried) > 2 and max(partners.values(), default=0) < 2:
        first = facts.hosts[0]
        others = [h for h in facts.hosts[1:] if frozenset({first, h}) not in facts.failed]
        run = Run((first, others[0]), rail)
        return [], [Open(facts.hosts, "nothing passed with these partners", run)]
    if len(facts.tried) == 2:
        hosts = tuple(host for host in facts.hosts if host in facts.tried)
        third = next((host for host in facts.hosts if host not in facts.tried), None)
        decides = Run((hosts[0], third), rail) if third else None
        why = f"{hosts[0]} and {hosts[1]} fail together, and there is no third host to ask"
        return [], [Open(hosts, why, decides)]
    proof = f"none of {len(facts.failed) + len(facts.groups_failed)} runs passed, one of them alone"
    return [Culprit("fabric", facts.hosts, rail, proof=proof)], []


def _what_decides(facts: Facts, host: str, rail: int | None) -> Open | None:
    """The run that would decide on a host that never passed; None where it is proven bad."""
    partners = facts.bad_partners(host)
    tried = set(facts.against.get(host, ()))
    untried = [h for h in facts.hosts if h in facts.good and h != host and h not in tried]
    mates = facts.leaf_mates(host)
    if host in facts.proven and partners:
        return None
    if len(partners) >= 2:
        near = sorted((m for m in mates if m not in tried), key=lambda m: m not in facts.good)
        if near and not tried & set(mates):
            # All that failed crossed the leaf's uplinks: they may be it, and not the host.
            return _open(host, f"{host} failed only across its leaf", near, rail)
        leaf = facts.leaf(partners[0])
        far = [other for other in untried if facts.leaf(other) != leaf]
        if leaf != facts.leaf(host) and far and {facts.leaf(p) for p in partners} == {leaf}:
            # And here they may all have crossed the partners' uplinks.
            return _open(host, f"{host} failed only with hosts of {leaf}", far, rail)
        if facts.alone(host):
            return None
        run = Run((host, partners[0]), rail, alone=True)
        return Open((host,), f"{host} failed only beside other runs", run)
    if untried:
        near = [other for other in untried if other in mates] or untried
        # Spread the questions, or all suspects ask the same good host.
        at = facts.hosts.index(host) % len(near)
        why = f"{host} has run with too few good hosts"
        return _open(host, why, [*near[at:], *near[:at]], rail)
    if partners:
        why = f"{host} fails with {partners[0]}, and there is no second good host to ask"
        return Open((host,), why, None)
    return Open((host,), f"there is no good host to try {host} with", None)


def _open(host: str, why: str, partners: Sequence[str], rail: int | None) -> Open:
    return Open((host,), why, Run((host, partners[0]), rail), tuple(partners[1:]))


def _hosts_or_leaves(facts: Facts, bad: Sequence[str], rail: int | None) -> list[Culprit]:
    """Hosts, or their leaf where all hosts of it are bad."""
    culprits = []
    left = set(bad)
    for leaf in dict.fromkeys(facts.leaf(host) for host in bad):
        members = [host for host in facts.hosts if leaf and facts.leaf(host) == leaf]
        if len(members) >= 2 and all(host in left for host in members):
            proof = f"all {len(members)} hosts of it fail, with good hosts and among themselves"
            culprits.append(Culprit("leaf", tuple(members), rail, leaf, proof))
            left.difference_update(members)
    for host in bad:
        if host in left:
            partners = facts.bad_partners(host)
            are = "which are" if partners[1:] else "which is"
            proof = f"fails with {' and '.join(partners[:2])}, {are} good with others"
            culprits.append(Culprit("host", (host,), rail, proof=proof))
    return culprits


def _paths(facts: Facts, rail: int | None) -> tuple[list[Culprit], list[Open]]:
    """Pairs that fail although both ends are good."""
    slow = {pair: alone for pair, alone in facts.failed.items() if pair <= facts.good}
    culprits, left, explained = _uplinks(facts, slow, rail)
    for pair, alone in slow.items():
        if pair in explained:
            continue
        ends = tuple(sorted(pair, key=facts.hosts.index))
        if alone:
            proof = "both ends are good with others, and it fails alone"
            culprits.append(Culprit("path", ends, rail, proof=proof))
        else:
            why = f"{ends[0]} - {ends[1]} failed only beside other runs"
            left.append(Open(ends, why, Run(ends, rail, alone=True)))
    return culprits, left


def _crosses(facts: Facts, pair: frozenset[str], leaf: str) -> bool:
    return sum(facts.leaf(host) == leaf for host in pair) == 1


_Explained = tuple[list[Culprit], list[Open], set[frozenset[str]]]


def _uplinks(facts: Facts, slow: Mapping[frozenset[str], bool], rail: int | None) -> _Explained:
    """Leaves out of which nothing passes, with good hosts, and the pairs that it explains."""
    candidates: dict[str, list[frozenset[str]]] = {}
    for leaf in dict.fromkeys(facts.leaf(host) for host in facts.hosts):
        crossing = [pair for pair in slow if leaf and _crosses(facts, pair, leaf)]
        inside = {host for pair in crossing for host in pair if facts.leaf(host) == leaf}
        if len(inside) >= 2 and not any(_crosses(facts, pair, leaf) for pair in facts.passed):
            candidates[leaf] = crossing
    between = list(candidates)
    if len(between) == 2 and set(candidates[between[0]]) == set(candidates[between[1]]):
        near = next(host for host in facts.hosts if facts.leaf(host) == between[0])
        others = tuple(h for h in facts.hosts if h in facts.good and facts.leaf(h) not in between)
        if others:
            why = f"everything between {' and '.join(between)} fails"
            wanted = Open((), why, Run((near, others[0]), rail), others[1:])
            return [], [wanted], set(candidates[between[0]])
        candidates = {" or ".join(between): candidates[between[0]]}
    culprits: list[Culprit] = []
    left: list[Open] = []
    for name, crossing in candidates.items():
        if not any(slow[pair] for pair in crossing):
            ends = tuple(sorted(crossing[0], key=facts.hosts.index))
            why = f"what crosses {name} failed only beside other runs"
            left.append(Open(ends, why, Run(ends, rail, alone=True)))
            continue
        members = tuple(host for host in facts.hosts if facts.leaf(host) in name.split(" or "))
        proof = (
            f"its hosts are good among themselves, and none of {len(crossing)} pairs across its "
            "uplinks passes"
        )
        culprits.append(Culprit("leaf", members, rail, name, proof))
    return culprits, left, {pair for crossing in candidates.values() for pair in crossing}


def _parallel(facts: Facts, rail: int | None) -> list[Culprit]:
    return [
        Culprit(
            "parallel",
            tuple(sorted(pair, key=facts.hosts.index)),
            rail,
            proof="it failed beside other runs and passes alone",
        )
        for pair in sorted(facts.parallel_only, key=sorted)
    ]


def _with_rails(
    culprits: Sequence[Culprit], on_rails: Sequence[Culprit], by_rail: Mapping[int, Facts]
) -> list[Culprit]:
    """Hosts narrowed down to rails, where rails were tried one by one."""
    tried: Counter[str] = Counter(host for facts in by_rail.values() for host in facts.tried)
    bad: dict[str, list[Culprit]] = {}
    for culprit in on_rails:
        if culprit.what == "host":
            bad.setdefault(culprit.hosts[0], []).append(culprit)
    named: list[Culprit] = []
    for host, found in bad.items():
        if len(found) == tried[host] and tried[host] > 1:
            named.append(Culprit("host", (host,), proof=f"all of its {tried[host]} rails fail"))
        else:
            named += [Culprit("rail", (host,), c.rail, proof=c.proof) for c in found]
    everywhere = [culprit for culprit in on_rails if culprit.what == "fabric"]
    if everywhere and len(everywhere) == len(by_rail):
        proof = f"each of {len(by_rail)} rails fails on all hosts"
        named.append(Culprit("fabric", everywhere[0].hosts, proof=proof))
    else:
        named += [Culprit("plane", c.hosts, c.rail, proof=c.proof) for c in everywhere]
    named += _on_all_rails([c for c in on_rails if c.what not in ("host", "fabric")], len(by_rail))
    narrowed = {culprit.hosts[0] for culprit in named if culprit.what in ("rail", "host")}
    planes = any(culprit.what in ("plane", "fabric") for culprit in named)
    kept = [
        culprit
        for culprit in culprits
        if not (culprit.what == "host" and culprit.hosts[0] in narrowed)
        and not (culprit.what == "fabric" and planes)
    ]
    return kept + named


def _on_all_rails(culprits: Sequence[Culprit], rails: int) -> list[Culprit]:
    """What fails on every rail that was tried, told once."""
    times = Counter((each.what, each.hosts, each.leaf) for each in culprits)
    named: dict[tuple[object, ...], Culprit] = {}
    for each in culprits:
        key = (each.what, each.hosts, each.leaf)
        if rails > 1 and times[key] == rails:
            named.setdefault(key, replace(each, rail=None))
        else:
            named[(*key, each.rail)] = each
    return list(named.values())
