"""physical.roce-gid-index"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.roce_gid_index import CHECK, EMPTY, WRONG
from commcheck.model import Kind, Status
from tests.checks.conftest import RECORDED

NO_CONF = ("cat: /etc/nccl.conf: No such file or directory\n", 1)


def said(conf: str = "", table: str = "gid-table-grep.txt") -> dict[str, tuple[str, int]]:
    return {
        "cat /etc/nccl.conf": (conf, 0) if conf else NO_CONF,
        "grep -rHsxv 0000:": (f"sysfs/{table}", 0),
    }


def test_unset_is_not_judged(judged: Any) -> None:
    for conf in ("", "NCCL_IB_GID_INDEX=-1\n", "NCCL_DEBUG=WARN\n"):
        assert judged(CHECK, said(conf)).verdict.kind is Kind.NOT_APPLICABLE


def test_a_good_index_of_the_host_and_of_the_inventory(judged: Any) -> None:
    host = judged(CHECK, said("NCCL_IB_GID_INDEX=3\n")).verdict
    assert host.status is Status.PASS
    assert "/etc/nccl.conf" in host.reason
    assert judged(CHECK, said(), gid_index=3).verdict.status is Status.PASS


def test_an_index_of_a_wrong_gid(judged: Any) -> None:
    verdict = judged(CHECK, said("NCCL_IB_GID_INDEX=1\n"), gid_index=3).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, WRONG)
    assert "such a one is at 3" in verdict.reason
    assert verdict.remedies[0].command == "show_gids mlx5_0"


def test_link_local_ipv4_is_good_only_where_nothing_is_better(judged: Any) -> None:
    text = (RECORDED / "sysfs" / "gid-table-grep.txt").read_text()
    alone = "".join(
        line for line in text.splitlines(keepends=True) if not line.endswith("0000:0000\n")
    ).replace("0a64:0115", "a9fe:0115")
    answers = said("NCCL_IB_GID_INDEX=3\n") | {"grep -rHsxv 0000:": (alone, 0)}
    assert judged(CHECK, answers).verdict.status is Status.PASS
    folder = "/sys/class/infiniband/mlx5_0/ports/1"
    better = alone + (
        f"{folder}/gids/5:0000:0000:0000:0000:0000:ffff:0a64:0115\n"
        f"{folder}/gid_attrs/types/5:RoCE v2\n{folder}/gid_attrs/ndevs/5:ens1np0\n"
    )
    verdict = judged(CHECK, answers | {"grep -rHsxv 0000:": (better, 0)}).verdict
    assert (verdict.cause, "such a one is at 5" in verdict.reason) == (WRONG, True)


def test_an_index_of_no_gid(judged: Any) -> None:
    verdict = judged(CHECK, said("NCCL_IB_GID_INDEX=9\n")).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, EMPTY)


@pytest.mark.parametrize("conf", ["NCCL_IB_GID_INDEX=three\n"])
def test_no_number_is_undecided(judged: Any, conf: str) -> None:
    assert judged(CHECK, said(conf)).verdict.kind is Kind.UNDECIDABLE


def test_an_unreadable_file_is_undecided_unless_the_inventory_says_it(judged: Any) -> None:
    answers = said() | {"cat /etc/nccl.conf": ("cat: /etc/nccl.conf: Permission denied\n", 1)}
    assert judged(CHECK, answers).verdict.kind is Kind.UNDECIDABLE
    assert judged(CHECK, answers, gid_index=3).verdict.status is Status.PASS


def test_an_unreadable_table(judged: Any) -> None:
    answers = said("NCCL_IB_GID_INDEX=3\n") | {"grep -rHsxv 0000:": ("garbage\n", 0)}
    assert judged(CHECK, answers).verdict.status is Status.ERROR
