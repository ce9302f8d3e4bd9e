"""Whatever a hostile host prints: a reader tells facts or refuses, in linear time, and no more."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.discover import discover
from commcheck.errors import Unjudgeable
from commcheck.lookup import readers_of, tools
from tests.chaos.seeds import EXAMPLES, SEEDS

FOUND = discover(cwd=Path(__file__).parent)
READERS: dict[str, Reader[object]] = {
    f"{each.tool}-{number}": each
    for number, each in enumerate(
        {
            id(reader): reader
            for reader in (*tools(FOUND).values(), *readers_of(FOUND))
            if hasattr(reader, "parse")
        }.values()
    )
}
RECORDED = Path(__file__).parents[1] / "recorded"
TEXTS = sorted(
    path
    for path in RECORDED.rglob("*")
    if path.suffix in (".txt", ".json", ".log", ".csv") and path.stat().st_size < 20_000
)

DEEP = 20_000
HOSTILE = (
    "[" * DEEP,
    '{"a":' * DEEP,
    "{\n" * DEEP,
    f'{{"a": {"9" * 5000}}}\n',
    f"[{'9' * 5000}]\n",
    "9" * 5000 + "\n",
    f"x: {'9' * 5000}\ny = -{'9' * 400}e{'9' * 9}\n",
    '{"a": NaN, "b": 1e999, "c": "\\ud800", "a": {}}\n',
    "\x00\x1b[2J\x1b]0;x\x07\u202e\ufffe\n" * 50,
    "&a [" + "*a, " * 1000 + "]\n",
    "=" * 10_000 + "\n" + ":" * 10_000 + "\n" + " " * 10_000 + "x\n",
    "mlx5_0: " * 5_000 + "\n",
    "a\n" * 10_000,
)


def assert_told_or_refused(reader: Reader[object], outputs: list[Output]) -> None:
    begun = time.process_time()
    try:
        reader.read(*outputs)
    except Unjudgeable as error:
        assert error.reason.strip()
        assert len(error.reason) < 2000
    # Milliseconds on an idle core; what is not linear takes minutes.
    assert time.process_time() - begun < 3


def answered(reader: Reader[object], text: str) -> list[Output]:
    return [Output(text, "") for _ in reader.commands]


@pytest.mark.parametrize("name", READERS)
def test_hostile_answers(name: str) -> None:
    reader = READERS[name]
    for text in HOSTILE:
        assert_told_or_refused(reader, answered(reader, text))


PIECES = st.one_of(
    st.sampled_from(
        [
            *("\n", "\t", ": ", "=", ",", "|", "[", "]", "{", "}", '"', "'", "\\", "%", "\r", " "),
            *("0x", "-1", "1e999", "nan", "9" * 40, "0000:17:00.0", "mlx5_0", "ens1np0", "GPU 0"),
            *("../../etc/passwd", "$(reboot)", "<b>", "\x1b[31m", "\u202e", "yes", "N/A", "null"),
        ]
    ),
    st.text(max_size=6),
)


@EXAMPLES(2)
@given(st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=10).map("".join))
def test_any_text(text: str, stderr: str) -> None:
    for reader in READERS.values():
        assert_told_or_refused(reader, [Output(text, stderr) for _ in reader.commands])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", READERS)
def test_numbers_that_none_can_hold(name: str, seed: int) -> None:
    """In what the reader would read else: the place of a number is known by its form."""
    chance, reader = random.Random(f"{name} {seed}"), READERS[name]
    for path in chance.sample(TEXTS, 40):
        text = path.read_bytes().decode(errors="replace")
        for number in chance.sample(found := list(re.finditer(r"\d+", text)), min(3, len(found))):
            put = chance.choice(["9" * 400, "9" * 5000, "1e999", "\u00b2", "-1"])
            broken = text[: number.start()] + put + text[number.end() :]
            assert_told_or_refused(reader, answered(reader, broken))


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_of_other_tools_and_damaged_ones(seed: int) -> None:
    """Every reader is given recordings of any tool, with pieces put in, left out and swapped."""
    chance = random.Random(seed)
    for reader in READERS.values():
        text = chance.choice(TEXTS).read_bytes().decode(errors="replace")
        for _ in range(chance.randrange(6)):
            at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
            put = chance.choice(["", "9" * 30, "\n", "\x1b[1m", "[[", '"', text[at:to]])
            text = text[:at] + put + text[min(to, at + 200) :]
        assert_told_or_refused(reader, answered(reader, text))
