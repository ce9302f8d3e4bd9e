"""physical.npu-ip"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.physical.npu_ip import CHECK, DIFFERS, NOT_KEPT, TWICE, UNSET
from commcheck.model import Kind, Machine, Status, Verdict
from tests.checks.physical.npu_answers import ONE, RECORDED, TWO, told

SECOND = "ipaddr:10.20.2.31\nnetmask:255.255.255.0"
GOOD = "hccn_conf/good.txt"
MISSING = "cat: /etc/hccn.conf: No such file or directory"


def of(judged: Any, *ips: str, conf: str = GOOD, rc: int = 0, machine: Machine = TWO) -> Verdict:
    answers = {"hccn_tool -i N -ip": told(*ips), "cat /etc/hccn.conf": (conf, rc)}
    verdict: Verdict = judged(CHECK, answers, machine=machine).verdict
    return verdict


def test_as_kept(judged: Any) -> None:
    assert of(judged, "ip", SECOND).status is Status.PASS
    assert of(judged, "ip", conf="hccn_conf/extra-keys.txt", machine=ONE).status is Status.PASS


def test_not_set_in_both_wordings(judged: Any) -> None:
    for nothing in ("ip-not-set", ""):
        verdict = of(judged, "ip", nothing)
        assert (verdict.status, verdict.cause) == (Status.FAIL, UNSET)
        assert verdict.reason.startswith("npu1: no address")


def test_ports_that_are_not_in_use_need_none(judged: Any) -> None:
    """As on superpods, whose RoCE is not cabled."""
    idle = f"{RECORDED['link-down']}[hccs]\n{RECORDED['hccs-ping-ok']}"
    answers = {"cat /etc/hccn.conf": (GOOD, 0), "hccn_tool -i N -link": told(idle, idle)}
    none = told("ip-not-set", "ip-not-set")
    verdict = judged(CHECK, {**answers, "hccn_tool -i N -ip": none}, machine=TWO).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    one = {**answers, "hccn_tool -i N -ip": told("ip", "ip-not-set")}
    assert judged(CHECK, one, machine=TWO).verdict.status is Status.PASS


def test_twice(judged: Any) -> None:
    verdict = of(judged, "ip", "ip", conf="hccn_conf/duplicate-ip.txt")
    assert (verdict.status, verdict.cause) == (Status.FAIL, TWICE)


def test_another_than_kept(judged: Any) -> None:
    verdict = of(judged, "ip", SECOND.replace("2.31", "2.77"))
    assert (verdict.status, verdict.cause) == (Status.FAIL, DIFFERS)
    assert "npu1 has 10.20.2.77, /etc/hccn.conf says 10.20.2.31" in verdict.reason


def test_not_kept(judged: Any) -> None:
    verdict = of(judged, "ip", SECOND, conf=MISSING, rc=1)
    assert (verdict.status, verdict.cause) == (Status.WARN, NOT_KEPT)
    inside = of(judged, "ip", SECOND, conf=MISSING, rc=1, machine=replace(TWO, in_container=True))
    assert inside.kind is Kind.UNDECIDABLE


def test_unreadable(judged: Any) -> None:
    assert of(judged, "ipaddr:10.20.1", SECOND).status is Status.ERROR
    assert of(judged, "ip", SECOND, conf="address_0 10.20.1.31\n").status is Status.ERROR
