"""physical.rail-arp"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.rail_arp import CHECK, SHARED, STRICT, TWICE
from commcheck.model import Kind, Machine, Rail, Status

RECORDED = Path(__file__).parents[2] / "recorded"


@pytest.fixture
def machine(rail: Rail) -> Machine:
    second = replace(rail, index=1, hca="mlx5_1", netdev="ens2np0")
    return Machine("gpu-01", "gpu-roce", rails=(rail, second))


def said(
    addr: str, rule: str = "rule-default.json", conf: str = "procfs/ipv4-conf-default.txt"
) -> dict[str, tuple[str, int]]:
    return {
        "ip -j -4 addr": (addr if "\n" in addr else f"ip/{addr}", 0),
        "ip -j -4 rule": (f"ip/{rule}", 0),
        "grep -rHs . /proc": (conf, 0),
    }


def test_a_subnet_for_each_needs_nothing(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("addr-own-subnets.json"), machine=machine).verdict
    assert verdict.status is Status.PASS


def test_one_subnet_without_rules(judged: Any, machine: Machine) -> None:
    verdict = judged(CHECK, said("addr-one-subnet.json"), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, SHARED)
    assert "share 10.100.0.0/16, and ens1np0 has no rule for 10.100.1.21" in verdict.reason
    lax = said("addr-one-subnet.json", "rule-by-source.json")
    assert "has arp_ignore 0" in judged(CHECK, lax, machine=machine).verdict.reason


def test_one_subnet_with_rules(judged: Any, machine: Machine) -> None:
    good = "procfs/ipv4-conf-good.txt"
    answers = said("addr-one-subnet.json", "rule-by-source.json", good)
    assert judged(CHECK, answers, machine=machine).verdict.status is Status.PASS
    strict = (RECORDED / good).read_text().replace("np0/rp_filter:2", "np0/rp_filter:1")
    answers = said("addr-one-subnet.json", "rule-by-source.json", strict)
    verdict = judged(CHECK, answers, machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, STRICT)


def test_one_address_on_two_rails(judged: Any, machine: Machine) -> None:
    text = (RECORDED / "ip/addr-own-subnets.json").read_text()
    text = text.replace("10.100.2.21", "10.100.1.21")
    verdict = judged(CHECK, said(text), machine=machine).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, TWICE)


def test_one_rail_cannot_answer_for_another(judged: Any) -> None:
    verdict = judged(CHECK, said("addr-one-subnet.json")).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_unreadable(judged: Any, machine: Machine) -> None:
    assert judged(CHECK, said("[{}\n"), machine=machine).verdict.status is Status.ERROR
    conf = said("addr-one-subnet.json", conf="garbage\n")
    assert judged(CHECK, conf, machine=machine).verdict.status is Status.ERROR
