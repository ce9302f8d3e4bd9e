"""physical.switch-pfc"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.physical.switch_pfc import CHECK, OFF, WILLING
from commcheck.model import Kind, Status

GOOD = (Path(__file__).parents[2] / "recorded" / "lldpctl" / "leaf-pfc3.json").read_text()


def said(text: str) -> dict[str, tuple[str, int]]:
    return {"lldpctl": (text, 0)}


def test_on(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc3.json")).verdict
    assert verdict.status is Status.PASS
    assert "leaf-01 port Ethernet12 announces PFC on 3" in verdict.reason


def test_off(judged: Any) -> None:
    verdict = judged(CHECK, said(GOOD.replace('"08,08"', '"08,00"'))).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, OFF)
    assert "announces PFC off, want it on 3" in verdict.reason
    other = judged(CHECK, said("lldpctl/leaf-pfc3.json"), roce_priority=4).verdict
    assert other.cause is OFF


def test_a_willing_switch_is_a_warning(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc-off.json")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, WILLING)


def test_silence_is_no_finding(judged: Any) -> None:
    for answers in ({}, said("lldpctl/no-neighbour.json"), said("lldpctl/nameless-no-dcbx.json")):
        assert judged(CHECK, answers).verdict.kind is Kind.NOT_APPLICABLE


def test_a_fabric_without_pfc(judged: Any) -> None:
    verdict = judged(CHECK, said("lldpctl/leaf-pfc-off.json"), flow_control="none").verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
