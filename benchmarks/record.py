"""A made-up run of any size, for what does not depend on hosts."""

from __future__ import annotations

from datetime import UTC, datetime

from commcheck.model import (
    Bound,
    Cause,
    Evidence,
    Finding,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.report.record import Plan, PlannedCheck, Record, RunInfo

FAILING = 20
LAYERS = ("physical", "library", "runtime", "application")
CAUSE = Cause(
    slug="pfc-off",
    title=Words("PFC is off", "PFC 未开启"),
    meaning=Words("The port drops packets when a buffer is full.", "缓冲区满时端口会丢包。"),
    remedies=(Remedy(command="mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0",
                     effect=Words("Immediate.", "立即生效。"),
                     precondition=Words("No job.", "没有作业。")),),
)  # fmt: skip


def large(hosts: int, checks: int) -> Record:
    """``checks`` verdicts on each host, most of which pass; twenty hosts fail one."""
    names = tuple(f"node-{number:04d}" for number in range(1, hosts + 1))
    ids = tuple(f"{LAYERS[number * 4 // checks]}.check-{number:02d}" for number in range(checks))
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return Record(
        info=RunInfo(
            run_id="20260101T000000Z-0000",
            started=began,
            version="0",
            playbook="large",
            inventory=("inventory.yaml",),
            inventory_digest="sha256:0",
        ),
        plan=Plan(
            hosts=names,
            checks=tuple(PlannedCheck(each, Words(each, each)) for each in ids),
            cases=dict.fromkeys(names, ids),
        ),
        results=tuple(_result(name, each) for name in names for each in ids),
        ended=began,
        state="complete",
        reached=dict.fromkeys(names, ""),
    )


def _result(host: str, check: str) -> Result:
    number = int(host.removeprefix("node-"))
    verdict = Verdict(status=Status.PASS, reason=f"eth2 is right on {host}", measured={"mtu": 4200})
    if number <= FAILING and check == f"{LAYERS[0]}.check-{number % 5:02d}":
        verdict = Verdict(status=Status.FAIL, reason="eth2 has PFC on [], want [3]", cause=CAUSE,
                          remedies=CAUSE.remedies, measured={"mtu": 1500})  # fmt: skip
    return Result(
        check=check,
        host=host,
        seconds=0.01,
        findings=(
            Finding(
                check=check,
                host=host,
                subject="eth2",
                verdict=verdict,
                bounds=(Bound("floor_bytes", 4192, "default (kernel)", "bytes"),),
                evidence=(Evidence("once: cat /sys/class/net/eth2/mtu", 0, 0.01, ""),),
            ),
        ),
    )
