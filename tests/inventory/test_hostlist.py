"""Slurm's lists of nodes, against the rules and against what folds them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.inventory.hostlist import expand
from commcheck.report.ranges import fold_hosts

PREFIX = st.from_regex(r"[a-z]{1,3}[a-z0-9]?-?", fullmatch=True)
NUMBERS = st.lists(st.integers(0, 2000), min_size=1, max_size=20)
WIDTH = st.integers(0, 6)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu", ["gpu"]),
        ("gpu-[01-03,7]", ["gpu-01", "gpu-02", "gpu-03", "gpu-7"]),
        ("a[001-3]", ["a001", "a002", "a003"]),
        ("a[9-010]", ["a9", "a10"]),
        ("a[1,01,1]", ["a1", "a01", "a1"]),
        ("n[1-2]n[1-2,5]", ["n1n1", "n1n2", "n1n5", "n2n1", "n2n2", "n2n5"]),
        ("rack[1-2]-ib,b", ["rack1-ib", "rack2-ib", "b"]),
        ("a,,b", ["a", "b"]),
        ("", []),
    ],
)
def test_the_lists_of_scontrol_show_hostnames(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a[3-1]", "begins after its end"),
        ("a[]", "stand numbers"),
        ("a[x-z]", "stand numbers"),
        ("a[1-2", r"has '\['"),
        ("a[[1]]", r"has '\['"),
        ("a 1", "has ' '"),
        ("a[1-99999999]", "more than"),
        ("a[1-999]b[1-999]", "more than"),
        (",".join(["a[1-60000]"] * 2), "more than"),
    ],
)
def test_what_is_no_list_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        expand(text)


@settings(max_examples=60)
@given(st.lists(st.tuples(PREFIX, NUMBERS, WIDTH), max_size=4))
def test_what_reports_fold_unfolds_to_the_same_hosts(
    racks: list[tuple[str, list[int], int]],
) -> None:
    names = {f"{prefix}{n:0{width}d}" for prefix, ns, width in racks for n in ns}
    assert sorted(expand(fold_hosts(names))) == sorted(names)


@settings(max_examples=60)
@given(st.text("ab[]-,019 ", max_size=30))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        names = expand(text)
    except ValueError as error:
        assert str(error)
    else:
        assert all(re.fullmatch(r"[^\[\],\s]+", name) for name in names)
