"""Records of made-up runs that the report tests share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from commcheck.model import (
    Bound,
    Cause,
    Evidence,
    Finding,
    Kind,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.report.record import Plan, PlannedCheck, Record, RunInfo, State

START = datetime(2026, 11, 29, 15, 4, 5, tzinfo=UTC)

PFC_OFF = Cause(
    slug="pfc-not-on-roce-priority",
    title=Words("PFC off on the RoCE priority", "RoCE 优先级未开启 PFC"),
    meaning=Words("a full switch buffer drops packets", "交换机缓冲区满时丢包"),
    remedies=(
        Remedy(
            command="mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0",
            effect=Words("pauses the priority instead of dropping", "暂停而不丢包"),
            precondition=Words("the switch port is set alike", "交换机端口一致"),
        ),
    ),
)
OLD_FIRMWARE = Cause(
    slug="firmware-differs",
    title=Words("NIC firmware differs from its peers", "网卡固件与同组不一致"),
    meaning=Words("old firmware lacks fixes", "旧固件缺少修复"),
    remedies=(Remedy("", Words("update the firmware", "升级固件"), Words("", ""), who="vendor"),),
)

CHECKS = (
    "physical.reachable",
    "physical.nic-link-up",
    "physical.pfc-enabled",
    "physical.nic-firmware",
    "library.env",
    "runtime.xid",
)


def info(strict: bool = False) -> RunInfo:
    return RunInfo(
        run_id="20261129T150405Z-7f3a",
        started=START,
        version="0.1.0",
        playbook="incident",
        inventory=("inventory/prod.yaml",),
        inventory_digest="sha256:0123abcd",
        limit="gpu",
        settings={"forks": "64"},
        strict=strict,
    )


def plan(hosts: tuple[str, ...], checks: tuple[str, ...] = CHECKS) -> Plan:
    return Plan(
        hosts=hosts,
        checks=tuple(PlannedCheck(id=each, title=Words(each, each)) for each in checks),
        cases=dict.fromkeys(hosts, checks),
    )


def verdict(status: Status, kind: Kind = Kind.NONE, reason: str = "") -> Verdict:
    cause = {Status.FAIL: PFC_OFF, Status.WARN: OLD_FIRMWARE}.get(status)
    return Verdict(
        status=status,
        kind=kind,
        reason=reason or f"{status} {kind}".strip(),
        cause=cause,
        error="CommandTimedOut" if status is Status.ERROR else "",
        remedies=cause.remedies if cause else (),
    )


def result(host: str, check: str, *verdicts: Verdict, seconds: float = 0.0) -> Result:
    """One finding a verdict; several are rails."""
    findings = tuple(
        Finding(
            check=check,
            host=host,
            subject=f"mlx5_{index}" if len(verdicts) > 1 else "",
            verdict=each,
        )
        for index, each in enumerate(verdicts)
    )
    return Result(check=check, host=host, findings=findings, seconds=seconds)


PASS = verdict(Status.PASS, reason="right")


def pfc_fail(host: str) -> Result:
    """Rail 2 of 8 has PFC off, with evidence, threshold and numbers."""
    good = verdict(Status.PASS, reason="PFC on [3]")
    bad = Verdict(
        status=Status.FAIL,
        reason="eth2 has PFC on [], want [3]",
        cause=PFC_OFF,
        remedies=PFC_OFF.remedies,
        measured={"pfc_priorities": [], "rate_gbits": 400.0},
        rule="PFC-001",
    )
    folded = result(host, "physical.pfc-enabled", *[good] * 2, bad, *[good] * 5, seconds=0.398)
    findings = list(folded.findings)
    findings[2] = Finding(
        check=folded.check,
        host=host,
        subject="mlx5_2",
        verdict=bad,
        bounds=(Bound("roce_priority", 3, "inventory/group_vars/gpu.yml:4"),),
        evidence=(
            Evidence(
                key="once: mlnx_qos -i eth2",
                rc=0,
                seconds=0.398,
                head="Priority trust state: dscp\nPFC configuration:\n\tenabled     0   0\n",
            ),
            Evidence("once: sudo dcb pfc show dev eth2", 127, 0.01, "", used=False),
        ),
        unproven_below=(),
    )
    return Result(check=folded.check, host=host, findings=tuple(findings), seconds=0.398)


def incident(state: State = "complete", *, strict: bool = False) -> Record:
    """Every status and kind at least once, over seven hosts."""
    hosts = (
        "node-0001",
        "node-0002",
        "node-0003",
        "node-0010",
        "gpu.example.com",
        "node-0011",
        "node-0012",
    )
    results: list[Result] = []
    for host in ("node-0012", "node-0001"):
        results += [result(host, check, PASS, seconds=0.25) for check in CHECKS]
    for host in ("node-0003", "node-0002"):
        results += [result(host, check, PASS) for check in CHECKS[:2]]
        results.append(pfc_fail(host))
        results.append(result(host, CHECKS[3], verdict(Status.WARN, reason="28.43 on rail 6")))
        results += [
            result(
                host,
                check,
                verdict(Status.SKIP, Kind.GATED, "gated: physical.pfc-enabled failed here"),
            )
            for check in CHECKS[4:]
        ]
    gone = Verdict(
        status=Status.ERROR,
        kind=Kind.HOST,
        reason="no SSH banner within 15 s",
        error="Unreachable",
    )
    results.append(result("node-0010", CHECKS[0], gone, seconds=15.002))
    results += [
        result(
            "node-0010",
            check,
            verdict(Status.SKIP, Kind.GATED, "gated: the host could not be judged"),
        )
        for check in CHECKS[1:]
    ]
    mixed = [
        PASS,
        verdict(Status.SKIP, Kind.BLOCKED, "blocked: physical.reachable"),
        verdict(Status.SKIP, Kind.NOT_APPLICABLE, "link layer is InfiniBand"),
        verdict(Status.SKIP, Kind.WAIVED, "waived until 2026-12-15: RMA (was: fail, 28.43)"),
        verdict(Status.SKIP, Kind.BUSY, "a job runs here"),
        verdict(Status.SKIP, Kind.UNDECIDABLE, "the log has no INIT lines; set NCCL_DEBUG=INFO"),
    ]
    results += [
        result("gpu.example.com", check, each) for check, each in zip(CHECKS, mixed, strict=True)
    ]
    timed_out = verdict(Status.ERROR, Kind.CHECK, "ibv_devinfo timed out after 30 s")
    results += [
        result("node-0011", CHECKS[0], PASS),
        result("node-0011", CHECKS[1], timed_out, PASS, seconds=30.004),
        result("node-0011", CHECKS[2], verdict(Status.SKIP, Kind.NOT_PERMITTED, "needs --allow")),
    ]
    if state == "complete":
        results += [result("node-0011", check, PASS) for check in CHECKS[3:]]
    return Record(
        info=info(strict),
        plan=plan(hosts),
        results=tuple(results),
        notes=("host keys were accepted for node-0001",),
        ended=None if state == "incomplete" else START + timedelta(minutes=4, seconds=12.3),
        state=state,
        reached={host: "ssh-banner" if host == "node-0010" else "" for host in hosts},
    )


def healthy(hosts: int = 12) -> Record:
    """All four layers pass."""
    names = tuple(f"node-{number:02d}" for number in range(1, hosts + 1))
    checks = (*CHECKS, "application.buckets")
    return Record(
        info=info(),
        plan=plan(names, checks),
        results=tuple(result(name, check, PASS) for name in names for check in checks),
        ended=START + timedelta(seconds=3.2),
        state="complete",
    )


def overridden(record: Record) -> Record:
    """The record of the same run, had a site's check stood in for the first one."""
    mine = PlannedCheck(CHECKS[0], Words("x", "x"), "site/reach.py", "bundled/reach.py")
    others = (each for each in record.plan.checks if each.id != mine.id)
    return replace(record, plan=replace(record.plan, checks=(mine, *others)))
