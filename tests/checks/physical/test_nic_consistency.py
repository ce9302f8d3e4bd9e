"""What of a rail is compared; who is odd is told by tests/test_peers.py."""

from __future__ import annotations

from dataclasses import replace

from checks.physical.nic_consistency import CHECK, DRIFT, GID_DRIFT, TWICE
from commcheck.model import Machine
from tests.checks.conftest import RAIL, RECORDED, Judge

ANSWERS = {
    "ethtool": ("ethtool/link-400g-good.txt", 0),
    "cat": ("9000\n", 0),
    "mlnx_qos": ("mlnx_qos/good-dscp-prio3.txt", 0),
    "grep": ("sysfs/gid-table-grep.txt", 0),
    "ibv_devinfo": ("ibv_devinfo/roce-400g-good.txt", 0),
}


def test_traits() -> None:
    assert {each.cause for each in CHECK.peers} == {DRIFT, GID_DRIFT, TWICE}
    assert all(each.owners or each.unique for each in CHECK.peers)


def test_a_rail_in_a_few_plain_values(judged: Judge) -> None:
    assert judged(CHECK, ANSWERS).verdict.measured == {
        "board": "MT_0000000838",
        "mtu_bytes": 9000,
        "speed_mbits": 400_000,
        "pfc_priorities": [3],
        "trust": "dscp",
        "dscp_map": "factory",
        "gid_index": 3,
        "address": "10.100.1.21",
        "port": "fe80:0000:0000:0000:a288:c2ff:fe5a:1b40",
        "netdev": "ens1np0",
        "peers": "gpu-roce",
        "platform": "gpu-roce",
        "kernel_driver": "mlx5_core",
    }


def test_an_address_that_the_netdev_gave_itself_is_not_compared(judged: Judge) -> None:
    text = (RECORDED / "sysfs" / "gid-table-grep.txt").read_text().replace("0a64:", "a9fe:")
    measured = judged(CHECK, ANSWERS | {"grep": (text, 0)}).verdict.measured
    assert (measured["gid_index"], "address" in measured) == (3, False)


def test_the_declared_group(judged: Judge) -> None:
    assert judged(CHECK, ANSWERS, peers="rack-7").verdict.measured["peers"] == "rack-7"


def test_a_changed_map_and_trust(judged: Judge) -> None:
    said = ANSWERS | {"mlnx_qos": ("mlnx_qos/dscp26-remapped.txt", 0)}
    assert str(judged(CHECK, said).verdict.measured["dscp_map"]).startswith("26>")
    said = ANSWERS | {"mlnx_qos": ("mlnx_qos/trust-pcp.txt", 0)}
    measured = judged(CHECK, said).verdict.measured
    assert measured["trust"] == "pcp"
    assert "dscp_map" not in measured


def test_what_cannot_be_read_is_named_and_what_is_none_of_its_business_is_not(
    judged: Judge,
) -> None:
    unread = judged(CHECK, {}).verdict.measured["unread"]
    assert isinstance(unread, dict)
    assert list(unread) == ["MTU", "speed", "PFC", "GID index"]
    virtual = Machine("gpu-01", "gpu-roce", rails=(replace(RAIL, is_vf=True),))
    measured = judged(CHECK, ANSWERS, machine=virtual).verdict.measured
    assert "pfc_priorities" not in measured
    assert "unread" not in measured
