"""physical.roce-v2-gid"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.roce_v2_gid import (
    CHECK,
    LINK_LOCAL,
    NO_ADDRESS,
    OTHER_FAMILY,
    V1_ONLY,
    Seen,
    Want,
    judge,
)
from commcheck.check import Nothing
from commcheck.formats.gid_table import Gid, GidTable
from commcheck.model import Cause, Origin, Rail, Status, Wanted

LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe5a:1b40"
ULA = "fd00:0000:0000:00a1:0000:0000:0000:0015"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a64:0115"
ZEROCONF = "0000:0000:0000:0000:0000:ffff:a9fe:0115"
PASS, WARN, FAIL = Status.PASS, Status.WARN, Status.FAIL


def table(*gids: str, versions: tuple[int, ...] = (1, 2), netdev: str = "ens1np0") -> GidTable:
    pairs = [(gid, version) for gid in gids for version in versions]
    return GidTable(
        "mlx5_0",
        1,
        tuple(Gid(index, gid, version, netdev) for index, (gid, version) in enumerate(pairs)),
    )


@pytest.mark.parametrize(
    ("name", "status"), [("gid-table-grep.txt", PASS), ("gid-table-v1-only.txt", FAIL)]
)
def test_recordings(judged: Any, name: str, status: Status) -> None:
    verdict = judged(CHECK, {"grep": (f"sysfs/{name}", 0)}).verdict
    assert verdict.status is status
    if status is PASS:
        assert verdict.reason == "mlx5_0 (ens1np0) has RoCE v2 at GID 3 10.100.1.21 on ens1np0"


@pytest.mark.parametrize(
    ("gids", "family", "status", "cause", "says"),
    [
        (table(LOCAL, IPV4), "ipv4", PASS, None, "GID 3 10.100.1.21"),
        (table(LOCAL, ULA, IPV4), "ipv4", PASS, None, "GID 5 10.100.1.21"),  # index shifted
        (table(LOCAL, IPV4, netdev="ens1np0.100"), "ipv4", PASS, None, "on ens1np0.100"),
        (table(LOCAL), "ipv4", FAIL, NO_ADDRESS, "link-local addresses only"),
        (table(LOCAL, IPV4, versions=(1,)), "ipv4", FAIL, V1_ONLY, "none of RoCE v2"),
        (table(LOCAL, ULA), "ipv4", WARN, OTHER_FAMILY, "by IPv6 only"),
        (
            table(LOCAL, ZEROCONF),
            "ipv4",
            WARN,
            LINK_LOCAL,
            "GID 3 169.254.1.21 on ens1np0, link-local",
        ),
        (table(LOCAL, ZEROCONF, IPV4), "ipv4", PASS, None, "GID 5 10.100.1.21"),
        (table(LOCAL, ZEROCONF), "ipv6", FAIL, NO_ADDRESS, "169.254.1.21"),
        (table(LOCAL, ULA), "ipv6", PASS, None, f"GID 3 {ULA}"),
        (table(LOCAL, IPV4), "ipv6", FAIL, NO_ADDRESS, "10.100.1.21"),
        (table(LOCAL), "ipv6", FAIL, NO_ADDRESS, "link-local addresses only"),
    ],
)
def test_judge(
    rail: Rail, gids: GidTable, family: str, status: Status, cause: Cause | None, says: str
) -> None:
    verdict = judge(Seen(gids), rail, Want(Wanted(family, Origin("test"))), Nothing())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason


def test_no_table_is_an_error(judged: Any) -> None:
    assert judged(CHECK, {"grep": ("\n", 0)}).verdict.error == "CommandFailed"
    text = "ls: cannot access '/sys/class/infiniband': No such file or directory\n"
    assert judged(CHECK, {"grep": (text, 0)}).verdict.error == "ParseError"
