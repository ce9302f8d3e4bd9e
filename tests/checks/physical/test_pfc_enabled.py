"""physical.pfc-enabled"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checks.physical.pfc_enabled import CHECK, NO_ROOM, NOT_WANTED, OFF, WRONG_PRIORITY
from commcheck.model import Cause, Kind, Machine, Rail, Status
from tests.checks.conftest import RECORDED


def said(name: str, rc: int = 0) -> dict[str, tuple[str, int]]:
    return {"mlnx_qos": (f"mlnx_qos/{name}", rc)}


DCB_GOOD = {
    "dcb -j pfc": ("dcb/pfc-good.json", 0),
    "dcb -j app": ("dcb/app-dscp.json", 0),
    "dcb -j dcbx": ("dcb/dcbx-host.json", 0),
}
DCB_OFF = DCB_GOOD | {"dcb -j pfc": ("dcb/pfc-off.json", 0)}


@pytest.mark.parametrize(
    "name",
    [
        "good-dscp-prio3.txt",
        "all-prios-on.txt",  # others being on is another check's
        "dcbx-fw.txt",
        "trust-pcp.txt",
        "lldpad-warning.txt",
        "layout-classic-2017.txt",
        "layout-5.2-default-priority.txt",
    ],
)
def test_on(judged: Any, name: str) -> None:
    assert judged(CHECK, said(name)).verdict.status is Status.PASS


@pytest.mark.parametrize(
    ("name", "cause", "told", "mask"),
    [
        ("pfc-off.txt", OFF, "PFC off", "0,0,0,1,0,0,0,0"),
        ("wrong-prio-4.txt", WRONG_PRIORITY, "PFC on 4", "0,0,0,1,1,0,0,0"),
    ],
)
def test_not_on(judged: Any, name: str, cause: Cause, told: str, mask: str) -> None:
    verdict = judged(CHECK, said(name)).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, cause)
    assert f"has {told}, want it on 3" in verdict.reason
    assert [remedy.command for remedy in verdict.remedies if remedy.command] == [
        "lldptool -tni ens1np0",
        f"mlnx_qos -i ens1np0 --pfc {mask}",
        "dcb pfc set dev ens1np0 prio-pfc 3:on",
    ]


def test_on_without_room(judged: Any) -> None:
    short = judged(CHECK, said("cable-len-zero.txt")).verdict
    assert (short.status, short.cause) == (Status.WARN, NO_ROOM)
    assert "room is kept for a cable of 0 m" in short.reason
    good = (RECORDED / "mlnx_qos" / "good-dscp-prio3.txt").read_text()
    for sizes, status in (
        ("20016,0,156096,", Status.WARN),  # priority 3 is in buffer 1
        ("0,0,0,", Status.PASS),  # none is told
    ):
        text = good.replace("20016,156096,0,", sizes)
        verdict = judged(CHECK, {"mlnx_qos": (text, 0)}).verdict
        assert verdict.status is status
        assert ("receive buffer 1, of 0 bytes" in verdict.reason) is (status is Status.WARN)


def test_the_inventory_says_which_priority(judged: Any) -> None:
    verdict = judged(CHECK, said("wrong-prio-4.txt"), roce_priority=4).verdict
    assert verdict.status is Status.PASS
    assert (
        judged(CHECK, said("good-dscp-prio3.txt"), roce_priority=5).verdict.cause is WRONG_PRIORITY
    )


@pytest.mark.parametrize("flow_control", ["none", "global"])
def test_a_fabric_without_pfc(judged: Any, flow_control: str) -> None:
    off = judged(CHECK, said("pfc-off.txt"), flow_control=flow_control).verdict
    assert off.kind is Kind.NOT_APPLICABLE
    on = judged(CHECK, said("good-dscp-prio3.txt"), flow_control=flow_control).verdict
    assert (on.status, on.cause) == (Status.WARN, NOT_WANTED)


@pytest.mark.parametrize(
    ("name", "rc"),
    [
        ("command-not-found.txt", 127),
        ("not-supported.txt", 1),
        ("traceback-import.txt", 1),
        ("traceback-bytes-py3.txt", 1),
        ("traceback-keyerror.txt", 1),
    ],
)
def test_dcb_speaks_where_mlnx_qos_cannot(judged: Any, name: str, rc: int) -> None:
    good = judged(CHECK, said(name, rc) | DCB_GOOD)
    assert good.verdict.status is Status.PASS
    assert [evidence.used for evidence in good.evidence] == [False, True, True, True]
    assert judged(CHECK, said(name, rc) | DCB_OFF).verdict.cause is OFF


@pytest.mark.parametrize(
    ("name", "rc"),
    [("not-supported.txt", 1), ("traceback-import.txt", 1), ("command-not-found.txt", 127)],
)
def test_nobody_speaks_is_an_error_not_a_fail(judged: Any, name: str, rc: int) -> None:
    refused = ("dcb/not-supported.txt", 1)
    verdict = judged(CHECK, said(name, rc) | {"dcb": refused}).verdict
    assert (verdict.status, verdict.kind) == (Status.ERROR, Kind.CHECK)
    assert judged(CHECK, said(name, rc)).verdict.status is Status.ERROR


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"is_vf": True}, "virtual function"),
        ({"link_layer": "InfiniBand"}, "InfiniBand"),
        ({"link_layer": "Unspecified"}, "Unspecified"),
    ],
)
def test_not_its_business(judged: Any, rail: Rail, change: dict[str, Any], says: str) -> None:
    machine = Machine("gpu-01", "gpu-roce", rails=(replace(rail, **change),))
    verdict = judged(CHECK, machine=machine).verdict
    assert verdict.kind is Kind.NOT_APPLICABLE
    assert says in verdict.reason


def test_a_fabric_of_another_priority_is_not_to_be_changed_host_by_host() -> None:
    assert WRONG_PRIORITY.everywhere is not None
    assert "commcheck_roce_priority" in WRONG_PRIORITY.everywhere.en
    assert "commcheck_roce_priority" in WRONG_PRIORITY.everywhere.zh
