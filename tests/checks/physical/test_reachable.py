"""physical.reachable"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from checks.physical import reachable
from checks.physical.reachable import CHECK, judge
from commcheck import collect
from commcheck.check import Nothing
from commcheck.errors import ConnectionLost, HostDeadline, Interrupted, Unreachable
from commcheck.model import Machine, Status


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (
            Machine("gpu-01", "gpu-roce", hostname="node-01", kernel="5.15.0", root="sudo"),
            "node-01 answers, kernel 5.15.0, with sudo",
        ),
        (
            Machine("gpu-01", "ascend", root="self", in_container=True),
            "gpu-01 answers, kernel not told, as root, a container",
        ),
        (
            Machine("gpu-01", "gpu-ib", root="self", in_container=True, in_vm=True),
            "gpu-01 answers, kernel not told, as root, a container in a vm",
        ),
        (
            Machine("gpu-01"),
            "gpu-01 answers, kernel not told, without root rights, "
            "platform unknown: declare commcheck_platform",
        ),
    ],
)
def test_an_answer_is_a_pass(machine: Machine, says: str) -> None:
    verdict = judge(Nothing(), machine, Nothing(), Nothing())
    assert (verdict.status, verdict.reason) == (Status.PASS, says)


def codes() -> set[str]:
    """The codes that the collecting side gives to a host it could not judge."""
    errors = {error.__name__ for error in (Unreachable, ConnectionLost, HostDeadline, Interrupted)}
    found = set()
    for path in Path(collect.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in errors and node.args:
                parts = ast.walk(node.args[0])
                found |= {each.value for each in parts if isinstance(each, ast.Constant)}
    return {code for code in found if isinstance(code, str)}


def test_the_runbook_names_every_way_in_which_a_connection_fails() -> None:
    doc = reachable.__doc__ or ""
    named = set(re.findall(r"``([a-z-]+)``", "\n".join(re.findall(r"^- .*?:", doc, re.M | re.S))))
    assert codes() - named == set()
    assert len(named) > 12


def test_it_is_asked_of_every_platform() -> None:
    assert CHECK.platforms >= {"gpu-roce", "gpu-ib", "ascend", "unknown"}
