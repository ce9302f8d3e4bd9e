"""physical.npu-link-up"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.npu_fec import CHECK as FEC
from checks.physical.npu_link_up import CHECK, DOWN, NO_MODULE, UNUSED
from checks.physical.npu_net_health import CHECK as NET_HEALTH
from checks.physical.npu_optics import CHECK as OPTICS
from checks.physical.npu_speed import CHECK as SPEED
from commcheck.check import AnyCheck
from commcheck.model import Cause, Kind, Status
from tests.checks.physical.npu_answers import BUSY, ONE, RECORDED, TWO, told


def test_up_and_where(judged: Any) -> None:
    answers = {"hccn_tool -i N -link": told("link-up"), "hccn_tool -i N -lldp": told("lldp")}
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert verdict.status is Status.PASS
    assert verdict.reason == "npu0 is up, at leaf-npu-01 port 400GE1/1/5:1"


@pytest.mark.parametrize(
    ("optical", "cause", "reason"),
    [
        ("optical-good", DOWN, "its module sees light"),
        ("optical-low-rx-lane1", DOWN, "no light on lane 1"),
        ("optical-xsfp-absent-msg", NO_MODULE, "its module is not there"),
        ("optical-unreachable", NO_MODULE, "does not answer"),
        ("optical-copper", DOWN, "npu0 is down, want up"),
        (BUSY, DOWN, "npu0 is down, want up"),
    ],
)
def test_down_and_why(judged: Any, optical: str, cause: Cause, reason: str) -> None:
    answers = {
        "hccn_tool -i N -link": told("link-down"),
        "hccn_tool -i N -optical": told(optical),
    }
    verdict = judged(CHECK, answers, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("ping", "status", "cause"),
    [
        ("hccs-ping-ok", Status.WARN, UNUSED),
        ("hccs-ping-loss", Status.FAIL, DOWN),
        ("hccs-ping-unsupported", Status.FAIL, DOWN),
    ],
)
def test_superpods_may_not_use_roce(judged: Any, ping: str, status: Status, cause: Cause) -> None:
    text = told(ping)[0].removeprefix("[npu 0 rc 0]\n").removesuffix("[end]\n")
    said = f"[npu 0 rc 0]\nlink status: DOWN\n[hccs]\n{text}[end]\n"
    verdict = judged(CHECK, {"hccn_tool -i N -link": (said, 0)}, machine=ONE).verdict
    assert (verdict.status, verdict.cause) == (status, cause)


def test_one_that_is_busy_does_not_blind_the_other(judged: Any) -> None:
    finding = judged(CHECK, {"hccn_tool -i N -link": told("link-up", BUSY)}, machine=TWO)
    assert (finding.subject, finding.verdict.status) == ("npu1", Status.ERROR)
    assert "busy" in finding.verdict.reason
    finding = judged(CHECK, {"hccn_tool -i N -link": told("link-down", BUSY)}, machine=TWO)
    assert (finding.subject, finding.verdict.status) == ("npu0", Status.FAIL)


def test_not_installed(judged: Any) -> None:
    verdict = judged(CHECK, machine=ONE).verdict
    assert verdict.status is Status.ERROR
    assert "hccn_tool is not there" in verdict.reason


@pytest.mark.parametrize("check", [NET_HEALTH, SPEED, OPTICS, FEC], ids=lambda each: each.id)
def test_a_port_that_is_not_in_use_is_not_judged_further(judged: Any, check: AnyCheck) -> None:
    """As on superpods: RoCE is down and HCCS does the work. Without HCCS it is a fault."""
    asked = {"hccn_tool -i N -net_health": told("net-health-fault"),
             "hccn_tool -i N -netdetect": told("netdetect"),
             "hccn_tool -i N -speed": told("speed-unknown"),
             "hccn_tool -i N -optical": told("optical-absent"),
             "hccn_tool -i N -fec": told("fec-none")}  # fmt: skip
    down = RECORDED["link-down"]
    idle = told(f"{down}[hccs]\n{RECORDED['hccs-ping-ok']}")
    verdict = judged(check, {**asked, "hccn_tool -i N -link": idle}, machine=ONE).verdict
    assert (verdict.kind, "uses HCCS" in verdict.reason) == (Kind.NOT_APPLICABLE, True)
    broken = judged(check, {**asked, "hccn_tool -i N -link": told("link-down")}, machine=ONE)
    assert broken.verdict.kind is not Kind.NOT_APPLICABLE
