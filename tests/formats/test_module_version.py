"""The version of a driver's module, where it has one."""

from __future__ import annotations

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.module_version import parse

LINE = "/sys/class/infiniband/mlx5_0/device/driver/module/version:24.10-1.1.4\n"


def test_a_vendors_driver() -> None:
    assert parse(Output(LINE)).version == "24.10-1.1.4"
    assert parse(Output(LINE.replace("\n", "\r\n"))).version == "24.10-1.1.4"


@pytest.mark.parametrize("rc", [1, 2])
def test_the_kernels_own_driver_has_none(rc: int) -> None:
    assert parse(Output("", "", rc)).version is None


@pytest.mark.parametrize("cut", range(1, len(LINE)))
def test_a_cut_version_is_refused(cut: int) -> None:
    with pytest.raises(ParseError):
        parse(Output(LINE[:cut]))


def test_grep_that_could_not_run() -> None:
    with pytest.raises(CommandFailed):
        parse(Output("", "grep: killed\n", 137))
