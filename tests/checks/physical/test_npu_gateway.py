"""physical.npu-gateway"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_gateway import CHECK, LOST, OUTSIDE, SOME
from commcheck.model import Kind, Status, Verdict
from tests.checks.physical.npu_answers import TWO, told

SECOND = "ipaddr:10.20.2.31\nnetmask:255.255.255.0"
VIA = "default gateway:10.20.2.1, Iface:eth0"


def of(judged: Any, *gateways: str, conf: str = "hccn_conf/good.txt") -> Verdict:
    answers = {
        "hccn_tool -i N -gateway": told(*gateways),
        "hccn_tool -i N -ip": told("ip", SECOND),
        "cat /etc/hccn.conf": (conf, 0),
    }
    verdict: Verdict = judged(CHECK, answers, machine=TWO).verdict
    return verdict


def test_as_kept(judged: Any) -> None:
    assert of(judged, "gateway", VIA).status is Status.PASS


def test_not_restored(judged: Any) -> None:
    verdict = of(judged, "gateway", "gateway-not-set")
    assert (verdict.status, verdict.cause) == (Status.FAIL, LOST)
    assert "npu1 has none, /etc/hccn.conf says 10.20.2.1" in verdict.reason


def test_of_another_subnet(judged: Any) -> None:
    verdict = of(judged, "gateway", "gateway", conf="send_arp_status_0=1\n")
    assert (verdict.status, verdict.cause) == (Status.FAIL, OUTSIDE)


def test_one_subnet_needs_none(judged: Any) -> None:
    none = "gateway-not-set"
    verdict = of(judged, none, none, conf="hccn_conf/duplicate-ip.txt")
    assert verdict.kind is Kind.NOT_APPLICABLE
    verdict = of(judged, "gateway", none, conf="hccn_conf/duplicate-ip.txt")
    assert (verdict.status, verdict.cause) == (Status.WARN, SOME)


def test_unreadable(judged: Any) -> None:
    assert of(judged, "default gateway:", VIA).status is Status.ERROR
