from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.report.ranges import fold_hosts, natural


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["node-0007"], "node-0007"),
        (["login", "admin"], "admin,login"),
        ([f"node-{n:04d}" for n in [*range(1, 951), 953]], "node-[0001-0950,0953]"),
        (["node-0007", "node-0019", "node-0020", "node-0021"], "node-[0007,0019-0021]"),
        (["n9", "n10", "n8"], "n[8-10]"),
        (["n08", "n09", "n10", "n9"], "n[08-10],n9"),
        (["n1", "n01"], "n1,n01"),
        (["n99", "n100"], "n[99-100]"),
        (["gpu-01.dc2", "gpu-02.dc2"], "gpu-[01-02].dc2"),
        (["r1-n1", "r1-n2", "r2-n1", "r2-n2"], "r1-n[1-2],r2-n[1-2]"),
        (["192.0.2.10", "192.0.2.11"], "192.0.2.[10-11]"),
        (["mlx5_0", "mlx5_1", "mlx5_3"], "mlx5_[0-1,3]"),
        (["a", "a"], "a"),
        (["n[1]", "n2"], "n2,n[1]"),
    ],
)
def test_fold(names: list[str], folded: str) -> None:
    assert fold_hosts(names) == folded


def unfold(text: str) -> set[str]:
    """An independent reader of the notation."""
    names: set[str] = set()
    for part in re.findall(r"[^,\[]*\[[^\]]*\][^,]*|[^,]+", text):
        match = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", part)
        if match is None:
            names.add(part)
            continue
        for item in match[2].split(","):
            low, _, high = item.partition("-")
            for number in range(int(low), int(high or low) + 1):
                names.add(f"{match[1]}{number:0{len(low)}d}{match[3]}")
    return names


name = st.from_regex(r"[a-z.-]{0,3}[0-9]{0,3}[a-z.-]{0,2}[0-9]{0,2}", fullmatch=True).filter(bool)


@given(st.lists(name, max_size=30))
def test_folding_loses_and_invents_nobody(names: list[str]) -> None:
    assert unfold(fold_hosts(names)) == set(names)


@given(st.lists(name, max_size=10))
def test_folding_does_not_depend_on_order(names: list[str]) -> None:
    assert fold_hosts(names) == fold_hosts(names[::-1])


def test_natural_order() -> None:
    assert sorted(["n10", "n9", "n09", "a", "n"], key=natural) == ["a", "n", "n9", "n09", "n10"]
