"""``commcheck analyze metrics``: what monitoring knows of hosts, judged without visiting any."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from commcheck.analysis import Analysis
from commcheck.check import FLEET
from commcheck.collect.base import Frame, Request
from commcheck.command import Output
from commcheck.discover import bundled_folder
from commcheck.discover import load as load_check
from commcheck.errors import Unjudgeable, UsageError
from commcheck.expect import LINE_RATE_GBITS, NICS
from commcheck.inventory.load import load
from commcheck.judge import judge_host
from commcheck.lazy import dataclass
from commcheck.metrics import fleet
from commcheck.metrics.causes import CHECK_ID
from commcheck.metrics.codes import codes
from commcheck.metrics.limits import Limits
from commcheck.metrics.load import Load, load_of
from commcheck.metrics.picture import curves
from commcheck.metrics.reading import FAULT_METRICS, LOAD_METRICS, Line, Metrics, parse
from commcheck.metrics.wanted import NAMES, SELECTOR, URL, read_selector, read_url
from commcheck.model import UNKNOWN, Host, Layer, Machine, Origin, Rail, Result, Status, row
from commcheck.plan import Asked, HostPlan
from commcheck.report.cleaning import decode, one_line
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import PlannedCheck
from commcheck.xids import Ask, look_up

_CHECKS: Final = ("comm_bound.py", "nic_errors.py", "xid.py")
_XID: Final = "runtime.xid"
_LINES_MOST: Final = 16
_FEW: Final = 4
_GIVEN: Final = Origin("the command line")


def analyse_metrics(
    url: str,
    hosts: Sequence[Host],
    *,
    selector: str = "",
    environment: Mapping[str, str] = os.environ,
) -> Analysis:
    """Ask a server about hosts and judge what it says, by the checks that a run has.

    ``url`` and ``selector`` go before what the inventory says; without an ``url`` each host's own
    is asked. Raises ``UsageError`` where they are no such thing, or no host has a server.
    """
    asked_of = [_told(host, url, selector) for host in hosts]
    without = [host.name for host in asked_of if not host.variables.get(URL.name)]
    if without:
        raise UsageError(f"error: no server for {', '.join(without[:8])}: give --url [metrics]")
    folder = bundled_folder("checks") / Layer.RUNTIME.value
    found = [load_check(folder / name, Layer.RUNTIME, bundled=True) for name in _CHECKS]
    plans = [HostPlan(host, tuple(Asked(one.check) for one in found)) for host in asked_of]
    told = fleet.gather(
        ((plan.host, fleet.subjects_of(plan)) for plan in plans), environment=environment
    )
    shares = [_Share.of(plan, told) for plan in plans]
    results = [result for share in shares for result in share.results()]
    return Analysis(
        checks=tuple(PlannedCheck(one.id, one.check.title) for one in found),
        results=tuple(results),
        notes=_notes(shares, results),
        screen=_screen(results),
        facts={"hosts": {share.plan.host.name: share.facts for share in shares}},
        noun="watched host",
    )


def hosts_named(names: str) -> tuple[Host, ...]:
    """Hosts as ``gpu-[01:16],gpu-20`` names them. Raises ``InventoryError``."""
    return load((f"{names.rstrip(',')},",), cwd=Path.cwd()).hosts


def _told(host: Host, url: str, selector: str) -> Host:
    """The host with what the command line says of its monitoring. Raises ``UsageError``."""
    given = {}
    for key, read, value in ((URL, read_url, url), (SELECTOR, read_selector, selector)):
        if value:
            try:
                given[key.name] = read(value)
            except ValueError as error:
                raise UsageError(f"error: {error} [metrics]") from None
    host = replace(
        host,
        variables={**host.variables, **given},
        origins={**host.origins, **dict.fromkeys(given, _GIVEN)},
    )
    for each in (URL, SELECTOR, NAMES, NICS, LINE_RATE_GBITS):
        try:
            each.on(host, "")
        except ValueError as error:
            where = host.origin_of(each.name)
            raise UsageError(f"{where}: error: {each.name}: {error} [metrics]") from None
    return host


@dataclass(frozen=True, slots=True)
class _Share:
    """What the server told of one host, by request, and read where it could be."""

    plan: HostPlan
    machine: Machine
    frames: Mapping[str, Frame]
    metrics: Metrics | None
    faults: Metrics | None
    load: Load | None

    @classmethod
    def of(cls, plan: HostPlan, told: fleet.Fleet) -> _Share:
        """The share of a host that nobody visits: what its hardware is, metrics tell."""
        host = plan.host
        wanted = [Request(each.commands[0], FLEET) for each in (LOAD_METRICS, FAULT_METRICS)]
        frames = {request.key: told.frame(host, None, request) for request in wanted}
        metrics, faults = (_read(frame) for frame in frames.values())
        rails = _rails(host)
        load = None
        if metrics is not None:
            rate = LINE_RATE_GBITS.on(host, "").value
            load = load_of(metrics, {each.label: 0 for each in rails} or None, rate, Limits())
        declared = host.variables.get("commcheck_platform")
        # What broke often no longer tells how busy it is.
        noun = load.noun if load is not None else "GPU" if _codes(faults) else ""
        found = {"NPU": "ascend", "GPU": "gpu-ib"}.get(noun, UNKNOWN)
        machine = Machine(host.name, declared if isinstance(declared, str) else found, rails=rails)
        return cls(plan, machine, frames, metrics, faults, load)

    @property
    def facts(self) -> dict[str, object]:
        """The load as plain JSON."""
        return {} if self.load is None else asdict(self.load)

    def results(self) -> list[Result]:
        """The verdicts, with the picture of the load also where all is well."""
        made = judge_host(self.plan.host, self.plan.asked, self.machine, self.frames, None, decode)
        return [
            self._pictured(each)
            for each in made
            # Without the host's log no code of the exporter's is no proof, and no news either.
            if each.check != _XID or each.status in (Status.FAIL, Status.WARN)
        ]

    def _pictured(self, result: Result) -> Result:
        finding = result.worst
        if (
            result.check != CHECK_ID
            or finding.verdict.status is not Status.PASS
            or self.metrics is None
            or self.load is None
        ):
            return result
        verdict = replace(finding.verdict, figures=(curves(self.metrics, self.load, Limits()),))
        return replace(result, findings=(replace(finding, verdict=verdict),))


def _read(frame: Frame) -> Metrics | None:
    """None where a frame holds the reason why nothing was told."""
    try:
        return parse(Output(decode(frame.stdout), rc=frame.rc or 0))
    except Unjudgeable:
        return None


def _codes(faults: Metrics | None) -> tuple[Line, ...]:
    """The series of the GPUs' last codes."""
    return () if faults is None else faults.of("xid", "xid_most")


def _rails(host: Host) -> tuple[Rail, ...]:
    """The training NICs that the inventory names."""
    rails = []
    for index, name in enumerate(NICS.on(host, "").value or ()):
        hca, _, port = name.partition("/")
        rails.append(Rail(index, hca, int(port) if port else 1, fabric=True))
    return tuple(rails)


def _notes(shares: Sequence[_Share], results: Sequence[Result]) -> tuple[str, ...]:
    """What was not judged, and what the server itself says of its answers."""
    warnings = dict.fromkeys(
        f"{share.metrics.server}: {one_line(each)}"
        for share in shares
        if share.metrics is not None
        for each in share.metrics.warnings
    )
    notes = list(warnings)[:8]
    notes += _about_codes(shares, results)
    if any(not share.machine.rails and share.load is not None for share in shares):
        notes.append(
            f"all RDMA ports count as training NICs: {NICS.name} in an inventory says which"
        )
    return tuple(notes)


def _about_codes(shares: Sequence[_Share], results: Sequence[Result]) -> list[str]:
    """What is known of hosts of whose GPUs no fault is told: seldom that there was none."""
    told = {result.host for result in results if result.check == _XID}
    silent = [
        share
        for share in shares
        if share.faults is not None
        and share.machine.platform != "ascend"
        and share.plan.host.name not in told
    ]
    coded = [share for share in silent if _codes(share.faults)]
    blind = [share for share in silent if not _codes(share.faults)]
    notes = []
    if coded:
        notes.append(
            f"{_XID}: no fault among the last codes of the GPUs ({_hosts(coded)}); the hosts' logs "
            "say more"
        )
    if blind:
        notes.append(
            f"{_XID}: the server has no codes of the GPUs, DCGM_FI_DEV_XID_ERRORS "
            f"({_hosts(blind)}): only the hosts' logs can tell"
        )
    watched = [
        f"{share.plan.host.name}: Xid {each.code} on GPU {each.gpu} ({meaning.meaning})"
        for share in coded
        if share.faults is not None
        for each in codes(share.faults)
        if not each.over and (meaning := look_up(each.code, "", of_switch=False)).ask is Ask.WATCH
    ]
    if watched:
        more = f" and {len(watched) - _FEW} more" if len(watched) > _FEW else ""
        notes.append(f"{_XID}: to watch: {'; '.join(watched[:_FEW])}{more}")
    return notes


def _hosts(shares: Sequence[_Share]) -> str:
    return one_line(fold_hosts(share.plan.host.name for share in shares), 120)


def _screen(results: Sequence[Result]) -> tuple[str, ...]:
    """One line a host, the worst first."""
    mine = [result for result in results if result.check == CHECK_ID]
    mine.sort(key=lambda result: row(result.worst.verdict).rank)
    width = max((len(result.host) for result in mine[:_LINES_MOST]), default=0)
    lines = [
        f"{result.host:{width}}  {result.worst.verdict.reason}" for result in mine[:_LINES_MOST]
    ]
    more = len(mine) - len(lines)
    return (*lines, f"and {many(more, 'more host')}") if more else tuple(lines)
