"""What a search says: of one host, of all of them, and where nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from commcheck.jobs import places
from commcheck.jobs.job import Ran, Search
from commcheck.model import Kind, Status, Verdict

Shape = Literal["node", "pairs", "rails", "fleet"]


def error(name: str, reason: str) -> Verdict:
    """Nothing is known of the wire."""
    line = " ".join(reason.split())
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, reason=line, error=name)


def together(shape: Shape, found: Search) -> tuple[Verdict, ...]:
    """The verdicts on all hosts of a batch: on the run of all, or on what the search found."""
    if shape == "node":
        return ()
    if shape == "fleet":
        return found.ran[0].verdicts if found.ran else ()
    return places.verdicts(found.hosts, found.located, tuple(r.outcome for r in found.ran),
                           found.floor_gbytes)  # fmt: skip


def of_host(found: Search, host: str) -> tuple[Verdict, ...]:
    """What a search says of one host. The objects at fault that are no host stand in the group."""
    located = found.located
    mine = found.of(host)
    for culprit in located.culprits:
        if host in culprit.hosts and culprit.what in ("host", "rail"):
            judged = places.verdicts((host,), replace(located, culprits=(culprit,), open=(),
                                     unseen=()), ())  # fmt: skip
            return (replace(judged[0], figures=(), hosts=()),)
    if not mine or all(each.outcome.good is None for each in mine):
        said = [each.verdicts[0] for each in mine if each.verdicts]
        return (replace(said[0], figures=()),) if said else (_not_run(host),)
    if host in located.good:
        return (_good(mine),)
    whole = next((c for c in located.culprits if host in c.hosts or c.what == "fabric"), None)
    why = f"{whole}: {whole.proof}" if whole else "no run clears or blames it"
    return (
        Verdict(
            status=Status.SKIP,
            kind=Kind.BLOCKED if whole else Kind.UNDECIDABLE,
            reason=f"{'blocked' if whole else 'undecidable'}: {why}",
        ),
    )


def of_node(found: Search, host: str) -> tuple[Verdict, ...]:
    """What the run inside a host says."""
    mine = found.of(host)
    return mine[-1].verdicts if mine else (_not_run(host),)


def of_fleet(found: Search, host: str) -> tuple[Verdict, ...]:
    """A host's part in the run of all: alone it can be neither praised nor blamed for it."""
    if not found.ran:
        return (_not_run(host),)
    whole = found.ran[0].verdicts[0]
    if whole.status in (Status.PASS, Status.WARN):
        return (Verdict(status=Status.PASS, reason=f"took part: {whole.reason}"),)
    if whole.status is Status.FAIL:
        reason = f"blocked: the run of all {len(found.hosts)} hosts failed, and names no host"
        return (Verdict(status=Status.SKIP, kind=Kind.BLOCKED, reason=reason),)
    return (replace(whole, figures=(), hosts=()),)


def _good(mine: Sequence[Ran]) -> Verdict:
    best = max(
        (each for each in mine if each.outcome.good), key=lambda r: r.outcome.busbw_gbytes or 0.0
    )
    others = f"good in {best.run}: "
    return Verdict(
        status=Status.PASS,
        reason=f"{others}{best.verdicts[0].reason}",
        measured=best.verdicts[0].measured,
    )


def _not_run(host: str) -> Verdict:
    reason = f"undecidable: no run with {host} was launched"
    return Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=reason)
