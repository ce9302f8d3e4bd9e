"""physical.roce-trust-dscp"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.roce_trust_dscp import CHECK, NOT_DSCP, NOT_PCP
from commcheck.model import Kind, Status

DCB = {"dcb -j pfc": ("dcb/pfc-good.json", 0), "dcb -j dcbx": ("dcb/dcbx-host.json", 0)}


def said(name: str) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (f"mlnx_qos/{name}", 0)}


@pytest.mark.parametrize(
    "name",
    [
        "good-dscp-prio3.txt",
        "pfc-off.txt",  # PFC is another check's
        "dscp26-remapped.txt",  # so is the map
        "layout-4.2-no-buffer.txt",
        "layout-5.2-default-priority-empty.txt",
    ],
)
def test_dscp(judged: Any, name: str) -> None:
    assert judged(CHECK, said(name)).verdict.status is Status.PASS


def test_pcp(judged: Any) -> None:
    verdict = judged(CHECK, said("trust-pcp.txt")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, NOT_DSCP)
    assert "trusts pcp, want dscp" in verdict.reason
    assert [remedy.command for remedy in verdict.remedies] == [
        "mlnx_qos -i ens1np0 --trust dscp",
        "dcb app add dev ens1np0 dscp-prio 26:3",
    ]


def test_a_fabric_that_marks_in_the_vlan_tag(judged: Any) -> None:
    assert judged(CHECK, said("trust-pcp.txt"), trust="pcp").verdict.status is Status.PASS
    verdict = judged(CHECK, said("good-dscp-prio3.txt"), trust="pcp").verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, NOT_PCP)


def test_a_layout_that_does_not_tell_is_undecidable(judged: Any) -> None:
    verdict = judged(CHECK, said("layout-classic-2017.txt")).verdict
    assert (verdict.status, verdict.kind) == (Status.SKIP, Kind.UNDECIDABLE)


@pytest.mark.parametrize(
    ("app", "status"), [("app-dscp.json", Status.PASS), ("app-empty.json", Status.FAIL)]
)
def test_dcb_speaks_where_mlnx_qos_is_missing(judged: Any, app: str, status: Status) -> None:
    verdict = judged(CHECK, DCB | {"dcb -j app": (f"dcb/{app}", 0)}).verdict
    assert verdict.status is status


def test_unreadable(judged: Any) -> None:
    verdict = judged(CHECK, {"mlnx_qos": ("PFC configuration:\n", 0)}).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "ParseError")
