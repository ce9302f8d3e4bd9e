"""physical.lldpad-running"""

from __future__ import annotations

from typing import Any

import pytest

from checks.physical.lldpad_running import CHECK, MISSING, RUNS, parse
from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.model import Kind, Status


def test_none_runs(judged: Any) -> None:
    assert judged(CHECK, {"pgrep": ("", 1)}).verdict.status is Status.PASS


def test_it_runs(judged: Any) -> None:
    verdict = judged(CHECK, {"pgrep": ("812\n", 0)}).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, RUNS)
    assert "process 812" in verdict.reason
    assert judged(CHECK, {"pgrep": ("812\n", 0)}, dcbx="lldpad").verdict.status is Status.PASS


def test_it_should_run(judged: Any) -> None:
    verdict = judged(CHECK, {"pgrep": ("", 1)}, dcbx="lldpad").verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MISSING)


def test_a_lossy_fabric_does_not_care(judged: Any) -> None:
    verdict = judged(CHECK, {"pgrep": ("812\n", 0)}, flow_control="none").verdict
    assert verdict.kind is Kind.NOT_APPLICABLE


def test_no_pgrep_is_no_pass(judged: Any) -> None:
    assert judged(CHECK).verdict.status is Status.ERROR


@pytest.mark.parametrize("text", ["", "812", "lldpad\n", "81 2\n"])
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ParseError):
        parse(Output(text))


def test_parse_knows_an_error_of_the_tool() -> None:
    with pytest.raises(CommandFailed):
        parse(Output("", "pgrep: cannot open /proc\n", 1))
