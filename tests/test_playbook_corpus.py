"""A corpus of playbooks and waivers, right and wrong: each message whole, with its place.

The messages wanted of ``wrong/x.yaml`` are the lines of ``wrong/x.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck import waivers
from commcheck.discover import load as load_check
from commcheck.errors import PlaybookError
from commcheck.lint import RULES
from commcheck.model import Layer
from commcheck.playbook import load

HERE = Path(__file__).parent / "playbooks"
FOUND = tuple(
    load_check(path, Layer(path.parent.name)) for path in sorted(HERE.glob("checks/*/*.py"))
)
RIGHT = sorted(HERE.glob("right/*.yaml"))
WRONG = sorted(HERE.glob("wrong*/*.yaml"))


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right(path: Path) -> None:
    assert load(path, FOUND).plays


@pytest.mark.parametrize("path", WRONG, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_wrong(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    name = Path(path.name)
    read: Callable[..., object] = load if path.parent.name == "wrong" else waivers.load
    with pytest.raises(PlaybookError) as caught:
        read(name, FOUND)
    assert list(caught.value.problems) == path.with_suffix(".txt").read_text().splitlines()


def test_every_message_has_a_place_and_a_rule_that_lint_lists() -> None:
    line = re.compile(r"[\w-]+\.yaml:[1-9]\d*:[1-9]\d*: error: .+ \[([a-z-]+)\]")
    messages = [
        each for path in WRONG for each in path.with_suffix(".txt").read_text().splitlines()
    ]
    rules = {match[1] for each in messages if (match := line.fullmatch(each))}
    assert all(line.fullmatch(each) for each in messages)
    assert rules <= set(RULES)
    told_elsewhere = {"file", "size", "depth"}  # by files that no repository should hold
    assert {rule for rule in RULES if "check-" not in rule and "-waiver" not in rule} == (
        rules | told_elsewhere | {"check"}
    )


def test_every_expected_message_belongs_to_a_playbook() -> None:
    assert {path.with_suffix(".yaml") for path in HERE.glob("wrong*/*.txt")} == set(WRONG)
