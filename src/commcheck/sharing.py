"""What the hosts of a fault have in common: one host, one rail, a switch, a group, a version.

Pure. A thing is named only where it tells the hosts with the fault from those judged without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, cast

from commcheck.lazy import dataclass
from commcheck.model import Finding, Status, Words, row
from commcheck.report.record import Record

Kind = Literal["host", "rail", "everything", "exactly", "within", "nothing"]

_MOST: Final = 3
"""Things in common that are told of one fault."""

_MOST_VALUES: Final = 64
"""Different values of one thing; what has more tells hosts apart, not groups of them."""


@dataclass(frozen=True, slots=True)
class Share:
    """One thing in common, and how strong it is: ``exactly`` these hosts have it, or no other."""

    kind: Kind
    words: Words


def shared(record: Record, check: str, findings: Sequence[Finding], hosts: Sequence[str]) -> tuple[
    Share, ...
]:  # fmt: skip
    """What the hosts of a cause share, the most telling first."""
    found = [*_rails(findings, hosts)]
    judged = _judged(record, check) | set(hosts)
    if len(hosts) == 1:
        if len(judged) > 1:
            others = "one other" if len(judged) == 2 else f"{len(judged) - 1:,} others"
            verb = "was" if len(judged) == 2 else "were"
            text = f"one host: {hosts[0]}; not on the {others} that {verb} judged"
            zh = f"只有一台主机：{hosts[0]}；另有 {len(judged) - 1:,} 台已判定，没有此问题"
            found.insert(0, Share("host", Words(text, zh)))
        return tuple(found)
    if len(judged) == len(hosts):
        text = f"every host that was judged, all {len(hosts):,}: look for what they have in common"
        zh = f"所有已判定的主机（{len(hosts):,} 台）都有：查找它们共有的配置或设备"
        return (Share("everything", Words(text, zh)), *found)
    named = list(_named(record, check, set(hosts), judged))
    if not named and not found:
        text = "no group, switch, rail or version sets these hosts apart"
        return (Share("nothing", Words(text, "没有任何分组、交换机、轨或版本能区分这些主机")),)
    return (*named[:_MOST], *found)


def _rails(findings: Sequence[Finding], hosts: Sequence[str]) -> Iterable[Share]:
    """One rail on several hosts: then the rail's switch, and not the hosts, is the suspect."""
    subjects = {finding.subject for finding in findings}
    if len(subjects) == 1 and "" not in subjects and len(hosts) > 1:
        (name,) = subjects
        yield Share(
            "rail",
            Words(
                f"one rail: {name}, on each of the {len(hosts):,} hosts",
                f"同一条轨：{name}，涉及全部 {len(hosts):,} 台主机",
            ),
        )


def _judged(record: Record, check: str) -> set[str]:
    """Hosts of which a check said something that counts as judged."""
    memo = cast("dict[str, set[str]]", record.memo.setdefault("sharing.judged", {}))
    if not memo:
        for result in record.sorted:
            verdict = row(result.worst.verdict)
            if verdict.junit in ("pass", "warn", "failure") and result.host[:1] != "@":
                memo.setdefault(result.check, set()).add(result.host)
        memo.setdefault("", set())
    return set(memo.get(check, ()))


def _named(record: Record, check: str, hosts: set[str], judged: set[str]) -> Iterable[Share]:
    """Groups, switches and versions that these hosts have, and the others have not."""
    within: list[tuple[int, Share]] = []
    for (owner, name), members in _sets(record).items():
        if owner == check or not hosts <= members:
            continue
        here = members & judged
        if here == hosts:
            yield Share("exactly", _words(owner, name, len(hosts), len(hosts)))
        elif len(here) * 2 <= len(judged):
            within.append((len(here), Share("within", _words(owner, name, len(hosts), len(here)))))
    yield from (share for _, share in sorted(within, key=lambda each: each[0])[:1])


def _words(owner: str, name: str, count: int, whole: int) -> Words:
    of = f" ({owner})" if owner else ""
    if count == whole:
        return Words(
            f"exactly the {count:,} hosts of {name}{of}",
            f"恰好是 {name}{of} 的全部 {count:,} 台主机",
        )
    return Words(
        f"all are of {name}{of}: {count:,} of its {whole:,} hosts",
        f"都属于 {name}{of}：其 {whole:,} 台中的 {count:,} 台",
    )


def _sets(record: Record) -> Mapping[tuple[str, str], set[str]]:
    """Named sets of hosts: inventory groups, and by every text that a check measured."""
    if "sharing.sets" not in record.memo:
        sets: dict[tuple[str, str], set[str]] = {
            ("", name if name.startswith("leaf ") else f"group {name}"): set(hosts)
            for name, hosts in record.plan.groups.items()
        }
        for (check, name), values in _measured(record).items():
            if 1 < len(values) <= _MOST_VALUES:
                for value, hosts in values.items():
                    sets[(check, f"{name} {value}")] = hosts
        record.memo["sharing.sets"] = sets
    return cast("Mapping[tuple[str, str], set[str]]", record.memo["sharing.sets"])


def _measured(record: Record) -> Mapping[tuple[str, str], Mapping[str, set[str]]]:
    """By check and name of what it measured: the texts found, with the hosts that have them."""
    found: defaultdict[tuple[str, str], defaultdict[str, set[str]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for result in record.sorted:
        if result.host.startswith("@"):
            continue
        for verdict in (finding.verdict for finding in result.findings):
            if verdict.status not in (Status.PASS, Status.WARN, Status.FAIL):
                continue
            for name, value in verdict.measured.items():
                if not isinstance(value, str) or not 0 < len(value) <= 80:
                    continue
                values = found[result.check, name]
                if len(values) <= _MOST_VALUES:
                    values[value].add(result.host)
    return found
