"""Rules on links between ranks: HLOG-003, HLOG-004, HLOG-006 and HLOG-007.

Who is at fault where links time out: CANN documentation, "Link setup timeout (EI0006)", the five
points on how the peer behaved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.command import whole_number
from commcheck.lazy import dataclass
from commcheck.model import Cause, Status
from commcheck.nccl import causes_hccl
from commcheck.nccl.case import Case
from commcheck.nccl.hccl import Hccl, Npu
from commcheck.nccl.hccl_codes import WAITING, quoted
from commcheck.nccl.hccl_links import End, Link
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong

PLOGS: Final = "collect the plog folders (debug and run) of all ranks"
LEVEL: Final = "ASCEND_GLOBAL_LOG_LEVEL=3 or lower, and the debug plogs of all ranks"
CALLS: Final = "HCCL_ENTRY_LOG_ENABLE=1 at the next start tells what each rank calls"

TOLD_MOST: Final = 8
"""Findings of one kind: servers, or pairs of them. What is more is only counted."""

VNIC: Final = "VNIC_TYPE"


def gate(case: Case) -> Ruling | None:
    """Not asked where no line is HCCL's."""
    return None if case.job.hccl.any else other("no line of HCCL")


def has_debug(case: Case) -> bool:
    """True where the debug plogs were collected: only of a rank with an error they hold a line."""
    return case.job.hccl.has_debug or any("debug/plog/" in name for name in case.job.files)


# --- who waits for whom -------------------------------------------------------------------------

Place = tuple[str, int] | int
"""A device of a server, which is sure in all groups of ranks; else the rank in its group."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Who waits for whom: by place the ends, and for each that waits its links by target."""

    ends: Mapping[Place, End]
    links: Mapping[Place, Mapping[Place, Link]]

    def silent(self) -> list[Place]:
        """Those that others wait for, and that wait for nobody themselves."""
        targets = dict.fromkeys(target for each in self.links.values() for target in each)
        return [target for target in targets if target not in self.links]

    def mutual(self) -> list[tuple[Place, Place]]:
        """Pairs that wait for each other, and for others only in the same way.

        Where nobody is silent all pairs count: each chain ends in one.
        """
        pairs = [
            (place, target)
            for place, each in self.links.items()
            for target in each
            if place in self.links.get(target, ())
        ]
        both = set(pairs)
        roots = [
            pair
            for pair in pairs
            if all((place, to) in both for place in pair for to in self.links[place])
        ]
        found = roots or ([] if self.silent() else pairs)
        known = {each: index for index, each in enumerate(self.ends)}
        return [pair for pair in found if known[pair[0]] < known[pair[1]]]


def waits_of(hccl: Hccl) -> Waits:
    """The links, with what other lines say of the same ranks."""
    ranks: dict[int, set[tuple[str, int]]] = {}
    told: dict[tuple[str, int], Npu] = {}
    for npu in hccl.npus.values():
        if npu.server and npu.device is not None:
            told[npu.server, npu.device] = npu
            if npu.rank is not None:
                ranks.setdefault(npu.rank, set()).add((npu.server, npu.device))
    for end in (end for link in hccl.links for end in (link.source, link.target)):
        if end.rank is not None and end.server and end.device is not None:
            ranks.setdefault(end.rank, set()).add((end.server, end.device))
    ends: dict[Place, End] = {}
    links: dict[Place, dict[Place, Link]] = {}
    for link in hccl.links:
        source, target = (_whole(end, ranks, told) for end in (link.source, link.target))
        keys = tuple(_place(end) for end in (source, target))
        for key, end in zip(keys, (source, target), strict=True):
            known = ends.setdefault(key, end)
            ends[key] = replace(
                known,
                rank=end.rank if known.rank is None else known.rank,
                address=known.address or end.address,
            )
        if keys[0] != keys[1]:
            links.setdefault(keys[0], {}).setdefault(keys[1], link)
    return Waits(ends, links)


def _whole(
    end: End, ranks: Mapping[int, set[tuple[str, int]]], told: Mapping[tuple[str, int], Npu]
) -> End:
    if end.rank is not None and end.device is None and len(ranks.get(end.rank, ())) == 1:
        ((server, device),) = ranks[end.rank]
        if end.server in ("", server):
            end = replace(end, server=server, device=device)
    npu = told.get((end.server, end.device)) if end.device is not None else None
    if npu is None:
        return end
    rank = npu.rank if end.rank is None else end.rank
    return replace(end, rank=rank, address=end.address or npu.device_ip)


def _place(end: End) -> Place:
    if end.server and end.device is not None:
        return end.server, end.device
    return -1 if end.rank is None else end.rank


def _npu_of(hccl: Hccl, end: End) -> Npu | None:
    for npu in hccl.npus.values():
        if end.device is not None and npu.device is not None and npu.server:
            if (npu.server, npu.device) == (end.server, end.device):
                return npu
        elif end.rank is not None and npu.rank == end.rank:
            return npu
    return None


# --- HLOG-003 -----------------------------------------------------------------------------------


def chain(case: Case) -> Ruling:
    """HLOG-003: where who waits for whom ends."""
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    if not hccl.links:
        if any(npu.timed_out_at for npu in hccl.npus.values()):
            return unknown("a link timed out, but not which one is told", PLOGS)
        return right() if has_debug(case) else unknown("no debug plog", LEVEL)
    first = hccl.first
    if first and first.code and first.code not in WAITING:
        return other(f"ranks wait since another failed: {first.code} (HLOG-001)")
    waits = waits_of(hccl)
    silent, pairs = waits.silent(), waits.mutual()
    if not silent and not pairs:
        return unknown("ranks wait in a circle, and no two for each other", CALLS)
    found = list(_silent(case, waits, silent))
    if tls(case).state == "wrong" or late(case).state == "wrong":
        pairs = []  # that explains them
    found += _pairs(case, waits, pairs)
    if not found:
        return other("ranks wait for each other since TLS differs or one was late")
    return wrong(*found)


def _silent(case: Case, waits: Waits, silent: Sequence[Place]) -> Iterable[Found]:
    """One finding for each server with ranks for which others wait in the end."""
    by_server: dict[str, list[Place]] = {}
    for place in silent:
        by_server.setdefault(waits.ends[place].server, []).append(place)
    for server, places in list(by_server.items())[:TOLD_MOST]:
        into = [
            link
            for each in waits.links.values()
            for target, link in each.items()
            if target in places
        ]
        ends = [waits.ends[place] for place in places]
        named = ", ".join(end.label for end in ends[:4]) + (" ..." if len(ends) > 4 else "")
        count = len(waits.links)
        who = f"{count} ranks wait, in the end" if count > 1 else "1 rank waits"
        reason = f"{who}{' all' if count > 1 == len(by_server) else ''} for {named}"
        target = waits.ends[places[0]]
        waiter = next(waits.ends[key] for key, each in waits.links.items() if places[0] in each)
        yield Found(
            rule="HLOG-003",
            cause=_cause(case, causes_hccl.HCCL_LINK),
            reason=reason + _of_logs(case, ends) + _probe(case),
            # Where the program diverged no host is at fault.
            hosts=(server,) if server and not case.job.hccl.in_reach else (),
            evidence=tuple(case.where(link.at for link in into)),
            measured={
                "root_rank": target.rank,
                "device": target.device,
                "server": server,
                "silent": len(silent),
            },
            places=_ways(waiter, target),
        )


def _of_logs(case: Case, ends: Sequence[End]) -> str:
    npus = [_npu_of(case.job.hccl, end) for end in ends]
    several = len(npus) > 1
    if not any(npus):
        missing = "their logs are" if several else "its log is"
        return f"; {missing} not in the input, {'they' if several else 'it'} may wait, too"
    if all(npu is not None and not npu.errors for npu in npus):
        return "; they have no error of their own" if several else "; it has no error of its own"
    own = next((npu.fault for npu in npus if npu is not None and npu.fault), None)
    return f"; its own error: {quoted(own.text)}" if own and not several else ""


def _probe(case: Case) -> str:
    if not case.job.hccl.in_reach:
        return ""
    return "; HCCL's own probe reached every peer: what the ranks call differs"


def _cause(case: Case, cause: Cause) -> Cause:
    return causes_hccl.HCCL_DESYNC if case.job.hccl.in_reach else cause


def _pairs(case: Case, waits: Waits, pairs: Iterable[tuple[Place, Place]]) -> Iterable[Found]:
    """One finding for each two servers with ranks that wait for each other."""
    by_servers: dict[tuple[str, ...], list[tuple[End, End]]] = {}
    for first, second in pairs:
        ends = waits.ends[first], waits.ends[second]
        by_servers.setdefault(tuple(sorted({end.server for end in ends})), []).append(ends)
    common = set.intersection(*(set(each) for each in by_servers)) if len(by_servers) > 1 else None
    for servers, these in list(by_servers.items())[:TOLD_MOST]:
        one, two = these[0]
        named = ", ".join(f"{a.label} and {b.label}" for a, b in these[:4])
        more = f" ({len(these)} pairs between these servers)" if len(these) > 1 else ""
        if common:
            more += f"; {len(by_servers)} servers cannot reach {', '.join(sorted(common))}"
        pods = _super_pods(case, one, two)
        cause = causes_hccl.HCCL_SUPER_POD if pods else _cause(case, causes_hccl.HCCL_PAIR)
        yield Found(
            rule="HLOG-003",
            cause=cause,
            reason=f"each waits for the other: {named}{more}{pods or _probe(case)}",
            hosts=() if cause is causes_hccl.HCCL_DESYNC else tuple(filter(None, servers)),
            evidence=tuple(
                case.where(
                    link.at
                    for a, b in these
                    for link in (
                        waits.links[_place(a)][_place(b)],
                        waits.links[_place(b)][_place(a)],
                    )
                )
            ),
            measured={"pairs": [[a.rank, b.rank] for a, b in these[:200]]},
            places=_ways(one, two),
        )


def _super_pods(case: Case, one: End, two: End) -> str:
    """Why HCCS cannot carry the link, or ""."""
    npus = [npu for end in (one, two) if (npu := _npu_of(case.job.hccl, end))]
    if len(npus) < 2 or any(npu.nic != VNIC for npu in npus):
        return ""
    (logical, physical), (its_logical, its_physical) = (npu.super_pods for npu in npus)
    if not logical or logical != its_logical or physical == its_physical:
        return ""
    return f"; both are of logical super pod {logical}, of physical ones {physical}, {its_physical}"


def _ways(waiter: End, target: End) -> dict[str, object]:
    """What the remedies need to look from one end at the other."""
    return {
        "waiter": waiter.server,
        "waiter_device": _filled(waiter.device),
        "waiter_address": waiter.address,
        "peer": target.server,
        "device": _filled(target.device),
        "address": target.address,
    }


def _filled(device: int | None) -> object:
    return "" if device is None else device


# --- the others ---------------------------------------------------------------------------------


def _rdma(case: Case) -> Ruling:
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    told = [link for link in hccl.links if link.rdma is not None]
    if not told:
        return right() if has_debug(case) else unknown("no link is described", LEVEL)
    if any(npu.nic == VNIC for npu in hccl.npus.values()):
        return other("links inside a super pod go over HCCS")
    bad = [link for link in told if not link.rdma and link.source.server != link.target.server]
    if not bad:
        return right()
    first = bad[0]
    return wrong(
        Found(
            rule="HLOG-004",
            cause=causes_hccl.HCCL_NO_RDMA,
            status=Status.WARN,
            reason=f"{first.source.label} and {first.target.label} are linked without RoCE",
            hosts=(first.source.server, first.target.server),
            evidence=tuple(case.where(link.at for link in bad)),
            places={"device": _filled(first.target.device)},
        )
    )


RUN_MOST_S: Final = 86400
"""Seconds between time-outs of one run. Our own: HCCL waits 2 hours at most, and no launcher keeps
a job for a day whose ranks gave up; ~/ascend/log keeps the plogs of all runs."""


def late(case: Case) -> Ruling:
    """HLOG-006: a rank that began to wait when the others had given up."""
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    # Only these compare: another error ends a rank at any time, and the others wait on.
    timed = [npu for npu in hccl.npus.values() if npu.timed_out_s is not None]
    if len(timed) < 2:
        return right() if timed or has_debug(case) else unknown("no debug plog", LEVEL)
    places = [(npu.server, npu.device) for npu in timed if npu.server and npu.device is not None]
    if len(set(places)) < len(places):
        return unknown("a device timed out in several processes", "read the plogs of one attempt")
    told = [
        number
        for npu in hccl.npus.values()
        if (number := whole_number(npu.env.get("HCCL_CONNECT_TIMEOUT", ""))) is not None
    ]
    limit = max([*told, *(npu.timeout_s or 0 for npu in timed)])
    first = min(timed, key=lambda n: n.timed_out_s or 0.0)
    last = max(timed, key=lambda n: n.timed_out_s or 0.0)
    spread = (last.timed_out_s or 0.0) - (first.timed_out_s or 0.0)
    if spread > RUN_MOST_S:
        return unknown(
            f"time-outs lie {spread / RUN_MOST_S:.0f} days apart: they are of different runs",
            "read the plogs of one run: their names bear the time",
        )
    if spread <= limit:
        return right(f"time-outs lie {spread:.0f} s apart, within {limit} s")
    return wrong(
        Found(
            rule="HLOG-006",
            cause=causes_hccl.HCCL_LATE,
            reason=f"time-outs lie {spread:.0f} s apart, more than HCCL_CONNECT_TIMEOUT "
            f"({limit} s): {last.label} was late",
            hosts=(last.server,) if last.server else (),
            evidence=tuple(case.where([first.timed_out_at, last.timed_out_at])),
            measured={"spread_s": round(spread, 3), "connect_timeout_s": limit},
        )
    )


def tls(case: Case) -> Ruling:
    """HLOG-007: TLS on some devices only."""
    if gated := gate(case):
        return gated
    hccl = case.job.hccl
    states = {state: at for n in hccl.npus.values() for state, at in n.tls.items()}
    if not states:
        return unknown("no link table with TlsStatus", LEVEL)
    if len(states) == 1:
        return right()
    on = [n for n in hccl.npus.values() if "ENABLE" in n.tls]
    return wrong(
        Found(
            rule="HLOG-007",
            cause=causes_hccl.HCCL_TLS,
            reason=f"TLS is on for {', '.join(n.label for n in on[:4])} and off for others",
            hosts=tuple(dict.fromkeys(n.server for n in on if n.server)),
            evidence=tuple(case.where(states.values())),
            places={"device": on[0].device if on and on[0].device is not None else ""},
        )
    )


RULES: Final = (
    Rule("HLOG-003", "all links were made", chain),
    Rule("HLOG-004", "RoCE between servers", _rdma),
    Rule("HLOG-006", "no rank is late", late),
    Rule("HLOG-007", "TLS alike everywhere", tls),
)
