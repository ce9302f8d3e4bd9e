"""What is different between two runs, by their ``results.json`` alone. Pure.

A verdict is known again by its check and its subject, and by its rule where the check has many: a
rule that is not told of says nothing is wrong, where the check was judged. Only what both runs
judged is compared, and how much that is stands beside it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from commcheck.lazy import dataclass
from commcheck.model import Layer
from commcheck.report.changes import (
    FAIL,
    KINDS,
    TROUBLE,
    UNKNOWN,
    Change,
    Changes,
    Json,
    Kind,
    LimitChange,
    Moved,
    cases_of,
    host_of,
)
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts, natural

NOISE: Final = 0.10
"""Share by which a measured number may differ without having moved."""

NOT_OF_THE_HOST: Final = frozenset(
    {"window_s", "since_earlier_run_s", "rules_judged", "rules_not_judged"}
)
"""Measured values that say how long was looked, or for what, not what was seen."""

_JUDGED: Final = frozenset({"pass", "warn", "fail", "waived"})
_WORST: Final = ("fail", "error", "warn", "undecidable", "busy", "blocked", "gated")

Key = tuple[str, str, str]
"""Check, subject, rule."""

_Verdicts = dict[Key, Json]


def diff(old: Json, new: Json) -> Changes:
    """From the document of a baseline to that of a run."""
    told_before, told_after = _verdicts(old), _verdicts(new)
    before, after = _matched(told_before, told_after), _matched(told_after, told_before)
    hosts = set(old["run"]["hosts"]) & set(new["run"]["hosts"])
    checks = {each["id"] for each in old["checks"]} & {each["id"] for each in new["checks"]}
    keys = [
        key
        for key in {**after, **before}
        if key[0] in checks and (key[1].startswith("@") or host_of(key[1]) in hosts)
    ]
    both = [key for key in keys if key in before and key in after]
    compared = [key for key in both if _is_judged(before[key]) and _is_judged(after[key])]
    return Changes(
        baseline=old["run"]["id"],
        started=old["run"]["started"],
        compared=len(compared),
        judged_before=sum(map(_is_judged, told_before.values())),
        judged_now=sum(map(_is_judged, told_after.values())),
        notes=tuple(
            _notes(old, new, {key[1] for key in told_before}, {key[1] for key in told_after})
        ),
        limits=tuple(_limits(before, after, both)),
        changes=tuple(_changes(before, after, keys, _since(old))),
        moved=tuple(_moved(before, after, compared)),
    )


def tally(changes: Changes) -> str:
    """``fixed 1 (physical.pfc-enabled on gpu-02), still 1 (...), new 0``: what asking again gave.

    A check on a host counts once, by the worst that became of it.
    """
    told: set[tuple[str, str]] = set()
    parts: dict[str, str] = {}
    for word in ("new", "still", "no longer judged", "fixed"):
        cases = [
            case
            for case in cases_of(each for each in changes.changes if _outcome(each) == word)
            if case not in told
        ]
        told.update(cases)
        parts[word] = f"{word} {len(cases):,}{_named(cases)}"
        if word == "no longer judged" and not cases:
            del parts[word]
    order = ("fixed", "still", "new", "no longer judged")
    return ", ".join(parts[word] for word in order if word in parts)


def _outcome(change: Change) -> str:
    if change.now in TROUBLE:
        return "still" if change.was in TROUBLE else "new"
    if change.was not in TROUBLE:
        return ""
    return "fixed" if change.now in ("pass", "warn") else "no longer judged"


def _named(cases: Iterable[tuple[str, str]]) -> str:
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    for check, host in cases:
        hosts[check].append(host)
    named = [f"{check} on {fold_hosts(names)}" for check, names in hosts.items()]
    more = f"; and {len(named) - 5:,} more checks" if len(named) > 5 else ""
    return f" ({'; '.join(named[:5])}{more})" if named else ""


# --- verdicts -----------------------------------------------------------------------------------


def _verdicts(document: Json) -> _Verdicts:
    """By key. Of several verdicts with one key the worst counts."""
    found: _Verdicts = {}
    for verdict in document["verdicts"]:
        key = (verdict["check"], verdict["subject"], verdict["rule"])
        if key not in found or _rank(verdict) < _rank(found[key]):
            found[key] = verdict
    return found


def _matched(mine: _Verdicts, others: _Verdicts) -> _Verdicts:
    """The verdicts by the keys of both runs, as far as one says anything of the other's rules."""
    plain: dict[tuple[str, str], Json] = {}
    for key in mine:
        plain.setdefault(key[:2], mine[key])
        if not key[2]:
            plain[key[:2]] = mine[key]
    theirs = {key[:2] for key in others}
    found: _Verdicts = {}
    for key in {**mine, **others}:
        check, subject, rule = key
        if key in mine and (rule or key in others or (check, subject) not in theirs):
            found[key] = mine[key]
        elif rule and (check, subject) in plain:
            said = plain[check, subject]
            found[key] = {**said, **_QUIET} if said["rule"] else said
    return found


_QUIET: Final[Json] = {
    "status": "pass",
    "kind": "",
    "rule": "",
    "cause": None,
    "reason": "this rule finds nothing",
    "measured": {},
}
"""A rule in the words of a check that told of others only."""


def _word(verdict: Json | None) -> str:
    """The word that reports show; "" where there is no verdict."""
    if verdict is None:
        return ""
    status: str = verdict["status"]
    kind: str = verdict["kind"]
    return kind if status == "skip" else status


def _rank(verdict: Json) -> int:
    word = _word(verdict)
    return _WORST.index(word) if word in _WORST else len(_WORST)


def _is_judged(verdict: Json) -> bool:
    return _word(verdict) in _JUDGED


def _reason(verdict: Json | None) -> str:
    return str(verdict["reason"]) if verdict else ""


# --- changes ------------------------------------------------------------------------------------


def _kind(was: str, now: str) -> Kind | None:
    """How a verdict changed, or None where nobody needs to hear of it."""
    if now == FAIL:
        return "still-failing" if was == FAIL else "newly-failing"
    if now in UNKNOWN:
        return "still-unknown" if was in UNKNOWN else "newly-unknown"
    if now == "warn":
        return None if was == "warn" else "newly-warned"
    if now == "waived":
        return "now-waived" if was in TROUBLE or was == "warn" else None
    if now == "pass":
        return "fixed" if was in TROUBLE or was == "warn" else None
    return "no-longer-judged" if was in (FAIL, *UNKNOWN, "pass", "warn") else None


@dataclass(frozen=True, slots=True)
class _Group:
    """What the verdicts of one change share. ``check`` is empty where a host's checks are one."""

    kind: Kind
    check: str
    was: str
    now: str
    cause: str
    since: str
    reason: str


def _changes(
    before: _Verdicts, after: _Verdicts, keys: Iterable[Key], since: Mapping[tuple[str, str], str]
) -> Iterator[Change]:
    members: defaultdict[_Group, list[Key]] = defaultdict(list)
    for key in keys:
        group = _group(key, before.get(key), after.get(key), since)
        if group is not None:
            members[group].append(key)
    in_order = sorted(
        members.items(),
        key=lambda item: (
            KINDS.index(item[0].kind),
            Layer.of(item[1][0][0]).height,
            -len(item[1]),
            item[1][0][0],
            item[0].cause,
        ),
    )
    for group, found in in_order:
        first = min(found, key=lambda key: natural(key[1]))
        yield Change(
            kind=group.kind,
            checks=tuple(dict.fromkeys(key[0] for key in found)),
            subjects=tuple(sorted({key[1] for key in found}, key=natural)),
            was=group.was,
            now=group.now,
            before=_reason(before.get(first)),
            after=_reason(after.get(first)),
            cause=group.cause,
            since=group.since,
        )


def _group(
    key: Key, old: Json | None, new: Json | None, since: Mapping[tuple[str, str], str]
) -> _Group | None:
    was, now = _word(old), _word(new)
    kind = _kind(was, now)
    if kind is None:
        return None
    if kind == "no-longer-judged":
        # A host that is gated is one line, not one for each of its checks.
        return _Group(kind, "", was, now, "", "", _reason(new))
    told = (new if now in TROUBLE or now == "warn" else old) or {}
    cause = str(told.get("cause") or told.get("error") or "")
    seen = since.get(key[:2], "") if kind == "still-failing" else ""
    return _Group(kind, key[0], was, now, cause, seen, "")


def _since(old: Json) -> dict[tuple[str, str], str]:
    """By check and subject that fails in the baseline: the run in which it was first seen."""
    found = {
        (verdict["check"], verdict["subject"]): str(old["run"]["id"])
        for verdict in old["verdicts"]
        if _word(verdict) == FAIL
    }
    for change in (old.get("changes") or {}).get("changes", ()):
        if change["kind"] == "still-failing" and change["since"]:
            found.update(
                ((check, subject), change["since"])
                for check in change["checks"]
                for subject in change["subjects"]
            )
    return found


# --- values and limits --------------------------------------------------------------------------


def _moved(before: _Verdicts, after: _Verdicts, keys: Iterable[Key]) -> Iterator[Moved]:
    """Values of verdicts whose status is what it was; the one that moved most is the example."""
    found: defaultdict[tuple[str, str], list[tuple[float, str, object, object]]] = defaultdict(list)
    for key in keys:
        if _word(before[key]) != _word(after[key]):
            continue
        old, new = before[key]["measured"], after[key]["measured"]
        for name in (old.keys() & new.keys()) - NOT_OF_THE_HOST:
            share = _share(old[name], new[name])
            if share > NOISE:
                found[key[0], name].append((share, key[1], old[name], new[name]))
    for (check, name), rows in sorted(found.items()):
        _, example, was, now = max(rows, key=lambda row: row[0])
        subjects = tuple(sorted({row[1] for row in rows}, key=natural))
        yield Moved(check, name, subjects, example, was, now)


def _share(old: object, new: object) -> float:
    """By how much of itself a number moved; 0 or infinite for what is no number."""
    if old == new:
        return 0.0
    if isinstance(old, bool | str | None) or isinstance(new, bool | str | None):
        return math.inf
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return math.inf
    return abs(new - old) / abs(old) if old else math.inf


def _limits(before: _Verdicts, after: _Verdicts, keys: Iterable[Key]) -> Iterator[LimitChange]:
    hosts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    told: dict[str, LimitChange] = {}
    for key in keys:
        old = {each["name"]: each for each in before[key]["threshold"]}
        for limit in after[key]["threshold"]:
            was = old.get(limit["name"])
            if was is None or was["value"] == limit["value"]:
                continue
            change = LimitChange(
                key[0], limit["name"], limit["unit"], (), was["value"], limit["value"]
            )
            told.setdefault(repr(change), change)
            hosts[repr(change)][host_of(key[1])] = None
    for name, change in told.items():
        yield replace(change, hosts=tuple(hosts[name]))


# --- how well the two compare -------------------------------------------------------------------


def _notes(old: Json, new: Json, before: set[str], after: set[str]) -> Iterator[str]:
    was, now = old["run"], new["run"]
    if was["playbook"] != now["playbook"]:
        yield f"the baseline judged playbook {was['playbook']}, this run {now['playbook']}"
    for words, more, less in (
        ("in the baseline and not in this run", was["hosts"], now["hosts"]),
        ("in this run and not in the baseline", now["hosts"], was["hosts"]),
    ):
        known = set(less)
        only = [host for host in more if host not in known]
        if only:
            yield f"{_counted(len(only), 'host')} {words}: {_cut(fold_hosts(only))}"
    both = set(was["hosts"]) & set(now["hosts"])
    for words, few in (("gone", before - after), ("new", after - before)):
        rails = [each for each in few if "/" in each and host_of(each) in both]
        if rails:
            yield f"{_counted(len(rails), 'subject')} {words}: {_cut(fold_hosts(rails))}"
    for words, more, less in (
        ("only the baseline asked", old["checks"], new["checks"]),
        ("only this run asked", new["checks"], old["checks"]),
    ):
        ids = {each["id"] for each in more} - {each["id"] for each in less}
        if ids:
            yield f"{words} {_cut(', '.join(sorted(ids)))}"


def _counted(count: int, noun: str) -> str:
    return f"{many(count, noun)} {'is' if count == 1 else 'are'}"


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}..."
