"""Rules on the reports of NCCL's built-in diagnostics (2.31 and newer): DIAG-001 to DIAG-014.

``[OK]`` means that nobody stands out, not that it is fast: the figures are held against the line
rate here. An unknown text is no fault, and an unknown ``[OK]`` no pass.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import regex
from commcheck.model import Status
from commcheck.nccl import causes_diag
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Diag
from commcheck.nccl.ruling import Found, Rule, Ruling, other, right, unknown, wrong
from commcheck.report.counts import many

FAIL_SHARE: Final = 0.50
WARN_SHARE: Final = 0.85
SPREAD: Final = 1.3

_ALL: Final = regex(
    r"p2p: (?:all (\d{1,9}) directed GPU P2P edges verified"
    r"|verified P2P access .*\((\d{1,9}) peer accesses\))"
    r"(?:.*skipped indirect=(\d{1,9}))?"
)
_SOME: Final = regex(r"p2p: (?:only )?(\d{1,9})/(\d{1,9}) ")
_PAIR: Final = regex(
    r"p2p: (write mismatch|read mismatch|peer-memory import failed|destination buffer unavailable"
    r"|local CUDA setup failed|topology check failed|launch/check failed) "
    r"srcRank=(\d{1,9}) srcCudaDev=-?\d+ srcNvmlDev=(-?\d{1,9}) dstRank=(\d{1,9}) dstCudaDev=-?\d+ "
    r"dstNvmlDev=(-?\d{1,9}) path=(\w+) handle=(\w+)(?: reason=(\S+?))?(?:[ ;]|$)"
)
_BANDWIDTH: Final = regex(
    r"net bw: (\d{1,9}(?:\.\d{1,9})?)/(\d{1,9}(?:\.\d{1,9})?)/(\d{1,9}(?:\.\d{1,9})?) Gbit/s "
    r"min/median/max (same-nic|cross-nic) bw"
)
_OUTLIER: Final = regex(
    r"net bw: (\S+) rank (\d{1,9}) \(([^)]+)\): (\d{1,9}(?:\.\d{1,9})?) Gbit/s, "
    r">\d+% off median (\d{1,9}(?:\.\d{1,9})?) Gbit/s"
)
_LINK: Final = regex(
    r"net bw: mode=(same|cross) server_rank=(\d{1,9}) server_host=(\S+) server_device=(\S+) "
    r"client_rank=(\d{1,9}) client_host=(\S+) client_device=(\S+)(?: memory=\S+)? (.+?) in comm 0x"
)
_NOT_MEASURED: Final = regex(
    r"net bw: (skipped|setup failed|required external tool|capability probe|selected network "
    r"plugin|cannot resolve|no usable|test unable|multiple net devices|net devices are shared)"
)
_INCOMPLETE: Final = regex(r"(.+): diagnostics incomplete, gathered (\d{1,9})/(\d{1,9}) ranks")
_RANKS: Final = regex(r"rank\(s\) \{([\d,]+)")


def _gate(case: Case) -> Ruling | None:
    return None if case.job.diag else other("no report of NCCL's diagnostics")


def _matches(case: Case, pattern: re.Pattern[str]) -> list[tuple[Diag, re.Match[str]]]:
    return [(d, m) for d in case.job.diag if (m := pattern.match(d.text))]


def _host(case: Case, host: str) -> str:
    return case.machine(host.partition(".")[0])


def _open_reports(case: Case) -> list[tuple[str, str, int]]:
    """Reports without an end: ``NCCL`` or ``RAS``, host and pid."""
    begun: set[tuple[str, str, int]] = set()
    torn: set[tuple[str, str, int]] = set()
    for diag in case.job.diag:
        key = ("RAS" if "RAS " in diag.text else "NCCL", diag.host, diag.pid)
        if diag.text.startswith("==="):
            torn |= begun & {key}
            begun.add(key)
        elif "diagnostics completed in" in diag.text:
            begun.discard(key)
    return sorted(begun | torn)


def _whole(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    cut = _open_reports(case)
    if not cut:
        return right()
    name, host, pid = cut[0]
    return unknown(
        f"the {name} report of {host} pid {pid} has no end: cut, killed, or RAS is off",
        "keep the stdout of all ranks to the end, without NCCL_RAS_ENABLE=0",
    )


def _of(report: str, rule: Rule) -> Rule:
    """The rule of one kind of report: what a cut report does not say proves nothing."""

    def judge(case: Case) -> Ruling:
        ruling = rule.judge(case)
        cut = [each for each in _open_reports(case) if each[0] == report]
        if ruling.state != "right" or not cut:
            return ruling
        return unknown(
            f"the {report} report of {cut[0][1]} has no end", "keep the stdout of all ranks"
        )

    return Rule(rule.id, rule.asks, judge)


def _verified(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    if _matches(case, _PAIR) or _matches(case, _SOME):
        return other("some pairs failed: see DIAG-003")
    verified = _matches(case, _ALL)
    if not verified:
        return other("no P2P line: one GPU in each NVLink domain, or another report")
    counts = [int(m[1] or m[2]) for _, m in verified]
    return right(f"{counts[-1]} GPU pairs moved a pattern correctly, once and idle")


def _pairs(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    failed = _matches(case, _PAIR)
    if not failed:
        counts = [(d, m) for d, m in _matches(case, _SOME) if int(m[1]) < int(m[2])]
        if counts:
            return unknown(
                f"{counts[0][1][1]} of {counts[0][1][2]} pairs passed; which failed is not told",
                "keep the stdout of all ranks: the process that saw it prints it",
            )
        return right()
    found = []
    for host in dict.fromkeys(_host(case, d.host) for d, _ in failed):
        here = [(d, m) for d, m in failed if _host(case, d.host) == host]
        match = here[0][1]
        said = "; ".join(
            f"{m[1]} from GPU {m[3]} (rank {m[2]}) to GPU {m[5]} (rank {m[4]}) over {m[6]}"
            for _, m in here[:4]
        )
        found.append(
            Found(
                rule="DIAG-003",
                cause=causes_diag.DIAG_P2P,
                reason=f"{many(len(here), 'GPU pair')} of {host} failed NCCL's test: {said}",
                hosts=(host,),
                evidence=tuple(case.where(d.at for d, _ in here)),
                measured={
                    "nvml_devices": sorted({int(g) for _, m in here for g in (m[3], m[5])}),
                    "path": match[6],
                    "handle": match[7],
                },
            )
        )
    return wrong(*found[:20])


def _line_rate(case: Case) -> int | None:
    rates = {h.line_rate_gbits for h in case.site.hosts.values() if h.line_rate_gbits}
    return min(rates) if rates else None


def _bandwidth(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    measured = _matches(case, _BANDWIDTH)
    if not measured:
        return other("no bandwidth was measured")
    rate = _line_rate(case)
    found = []
    for diag, match in measured:
        low, middle, high = float(match[1]), float(match[2]), float(match[3])
        if rate is None:
            if high > SPREAD * low:
                status, want = Status.WARN, f"the best reach {high:g}"
            else:
                continue
        elif low < WARN_SHARE * rate:
            status = Status.FAIL if low < FAIL_SHARE * rate else Status.WARN
            want = f"want {WARN_SHARE:.0%} of the line rate of {rate}"
        else:
            continue
        found.append(
            Found(
                rule="DIAG-004",
                cause=causes_diag.DIAG_NIC,
                status=status,
                reason=f"slowest {match[4]} path reaches {low:g} Gb/s, {want}",
                evidence=tuple(case.where([diag.at])),
                measured={"min_gbits": low, "median_gbits": middle, "max_gbits": high},
            )
        )
    if not found and rate is None:
        return unknown("no line rate to compare with", "declare commcheck_line_rate_gbits")
    return wrong(*found)


def _outliers(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    found = []
    for diag, match in _matches(case, _OUTLIER):
        value, middle, host = float(match[4]), float(match[5]), _host(case, match[3])
        if value >= middle:
            continue
        found.append(
            Found(
                rule="DIAG-005",
                cause=causes_diag.DIAG_NIC,
                status=Status.FAIL if value < FAIL_SHARE * middle else Status.WARN,
                reason=f"{match[1]} path of rank {match[2]} ({host}) reaches {value:g} Gb/s, "
                f"the middle one {middle:g}",
                hosts=(host,),
                evidence=tuple(case.where([diag.at])),
                measured={"bw_gbits": value, "median_gbits": middle},
            )
        )
    return wrong(*found[:20])


def _links(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    links = _matches(case, _LINK)
    if not links:
        return right() if _matches(case, _BANDWIDTH) else other("no bandwidth was measured")
    pairs: dict[tuple[str, ...], tuple[Diag, re.Match[str]]] = {}
    for diag, match in links:
        pairs.setdefault(match.groups()[:7], (diag, match))  # both ends may tell of it
    missing = [m for _, m in pairs.values() if "tool missing" in m[8] or "cannot build" in m[8]]
    real = [(d, m) for d, m in pairs.values() if m not in missing]
    if not real:
        return unknown("ib_write_bw is missing", "install perftest in the image")
    if not _matches(case, _BANDWIDTH):
        return unknown(
            f"no pair was measured: {real[0][1][8]}",
            "check host name resolution, and ports 10000 to 29999 between the hosts",
        )
    found = []
    for _, match in real[:20]:
        hosts = tuple(dict.fromkeys((_host(case, match[3]), _host(case, match[6]))))
        found.append(
            Found(
                rule="DIAG-006",
                cause=causes_diag.DIAG_NIC,
                reason=f"rank {match[2]} ({hosts[0]} {match[4]}) and rank {match[5]} "
                f"({hosts[-1]} {match[7]}): {match[8]}",
                hosts=hosts,
                evidence=tuple(
                    case.where(d.at for d, m in links if m.groups()[:7] == match.groups()[:7])
                ),
            )
        )
    return wrong(*found)


def _skipped(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    skipped = _matches(case, _NOT_MEASURED)
    return other(f"not measured: {skipped[0][0].text[:160]}") if skipped else right()


def _text_rule(
    rule: str, pattern: str, *, warn: str = "(?!)", healthy: str = "(?!)", pci: bool = False
) -> Rule:
    """A rule on INFO texts of the RAS report."""
    wanted, softer, fine = regex(pattern), regex(warn), regex(healthy)

    def judge(case: Case) -> Ruling:
        if gated := _gate(case):
            return gated
        lines = [d for d in case.job.diag if wanted.search(d.text) and "incomplete" not in d.text]
        bad = [d for d in lines if d.tag == "INFO" and not fine.search(d.text)]
        if not bad:
            return right() if lines else other("not in the report")
        soft = all(softer.search(d.text) for d in bad)
        ranks = [int(r) for d in bad if (m := _RANKS.search(d.text)) for r in m[1].split(",") if r]
        comm = case.world
        hosts = [case.rank_host(comm, rank) for rank in ranks] if comm else []
        named = re.findall(r"on host ([\w-]+)", " ".join(d.text for d in bad))
        return wrong(
            Found(
                rule=rule,
                cause=causes_diag.DIAG_PCI if pci else causes_diag.DIAG_GPU,
                status=Status.WARN if soft or pci else Status.FAIL,
                reason=bad[0].text[:240],
                hosts=tuple(dict.fromkeys([*(h for h in hosts if h), *named])),
                evidence=tuple(case.where(d.at for d in bad)),
                measured={"ranks": ranks[:50]},
            )
        )

    return Rule(rule, "NCCL's own report", judge)


def _environment(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    names = sorted(
        {
            m[1]
            for d in case.job.diag
            if (m := re.match(r"NCCL environment: mismatch .* for (\w+)", d.text))
        }
    )
    if not names:
        return right()
    return other(f"settings differ between ranks: {', '.join(names[:8])} (library.env judges them)")


def _incomplete(case: Case) -> Ruling:
    if gated := _gate(case):
        return gated
    parts = _matches(case, _INCOMPLETE)
    if not parts:
        return right()
    match = parts[0][1]
    return unknown(
        f"{match[1]}: {match[2]} of {match[3]} ranks answered",
        "ask again 30 s after init: ncclras -D",
    )


_ALL_RULES: Final = (
    Rule("DIAG-001", "the report is whole", _whole),
    Rule("DIAG-002", "GPU pairs are verified", _verified),
    Rule("DIAG-003", "no GPU pair failed", _pairs),
    Rule("DIAG-004", "NICs reach their line rate", _bandwidth),
    Rule("DIAG-005", "no NIC stands out", _outliers),
    Rule("DIAG-006", "every NIC pair was measured", _links),
    Rule("DIAG-007", "bandwidth was measured", _skipped),
    _text_rule(
        "DIAG-008",
        r"^(?:GPU inventory|CUDA driver version|NVIDIA graphics driver): ?",
        warn=r"driver",
    ),
    _text_rule("DIAG-009", r"^ECC: ", warn=r"^ECC: corrected"),
    _text_rule("DIAG-010", r"^NVLink: (?:link-count|inactive|found|\d)"),
    Rule("DIAG-011", "settings are equal", _environment),
    _text_rule(
        "DIAG-012",
        r"^(?:Xid|SXid)\b",
        warn=r"restart|no kernel-log|(?!.*(?:reset|Fatal))",
        healthy=r"no kernel-log source",
    ),
    _text_rule("DIAG-013", r"^(?:rdma_topo|IOMMU|ATS)\b", pci=True),
    Rule("DIAG-014", "all ranks answered", _incomplete),
)

_ALWAYS: Final = ("DIAG-001", "DIAG-002", "DIAG-014")

RULES: Final = tuple(
    rule if rule.id in _ALWAYS else _of("NCCL" if rule.id < "DIAG-008" else "RAS", rule)
    for rule in _ALL_RULES
)
