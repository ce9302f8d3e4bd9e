"""physical.nic-ber"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.physical.nic_ber import CHECK, COMPLAINS, RAW_HIGH, UNCORRECTED, Limits, Seen, judge
from commcheck.check import Nothing
from commcheck.command import Output
from commcheck.formats.mlxlink import parse
from commcheck.model import Cause, Kind, Machine, Rail, Status


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"mlxlink": (f"mlxlink/{name}", rc)}


@pytest.mark.parametrize(
    "name", ["good-400g.txt", "good-400g-ansi.txt", "good-400g.json", "good-ndr.txt"]
)
def test_low(judged: Any, name: str) -> None:
    assert judged(CHECK, said(name)).verdict.status is Status.PASS


def test_uncorrected(judged: Any) -> None:
    verdict = judged(CHECK, said("high-raw-ber.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, UNCORRECTED)
    assert "77120 uncorrected" in verdict.reason


def test_a_complaint_at_a_harmless_rate(judged: Any) -> None:
    verdict = judged(CHECK, said("bad-si-but-low-ber.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, COMPLAINS)
    assert "harmless" in verdict.reason


@pytest.mark.parametrize(
    ("raw", "effective", "errors", "cause"),
    [
        (2e-5, 0.0, 0, RAW_HIGH),
        (1e-5, 0.0, 0, None),  # at the limit
        (1e-8, 1e-15, 0, None),
        (1e-8, 2e-15, 3, UNCORRECTED),
        (1e-8, 0.0, 3, COMPLAINS),  # some once
    ],
)
def test_limits(rail: Rail, raw: float, effective: float, errors: int, cause: Cause | None) -> None:

    good = parse(Output((Path(__file__).parents[2] / "recorded/mlxlink/good-400g.txt").read_text()))
    link = replace(good, raw_ber=raw, effective_ber=effective, effective_errors=errors)
    verdict = judge(Seen(link), rail, Nothing(), Limits())
    assert verdict.cause is cause


def test_a_port_without_a_link_tells_nothing(judged: Any) -> None:
    verdict = judged(CHECK, said("down-no-cable.txt")).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "Cable is unplugged" in verdict.reason


def test_without_the_tool_or_without_root(judged: Any) -> None:
    assert judged(CHECK).verdict.error == "CommandMissing"
    assert judged(CHECK, said("not-root.txt", 1)).verdict.error == "CommandFailed"
    assert judged(CHECK, {"mstlink": ("mlxlink/good-400g.json", 0)}).verdict.status is Status.PASS


def test_other_vendors_are_not_judged(judged: Any, rail: Rail) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, driver="bnxt_en"),))
    assert judged(CHECK, machine=machine).verdict.kind is Kind.NOT_APPLICABLE
