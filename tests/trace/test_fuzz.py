"""Damaged traces are measured or refused in one line; nothing else ever happens."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import UsageError
from commcheck.trace.job import job_facts
from commcheck.trace.ladder import judge
from commcheck.trace.limits import Limits
from commcheck.trace.plain import facts_json
from commcheck.trace.rungs import Known
from tests.trace.expected import assert_identity, made

KINDS: list[dict[str, Any]] = [
    {},
    {"style": "compact"},
    {"npu": True, "memcpy": True},
    {"mode": "zero3"},
    {"phases": "BE"},
]
TOKENS = (
    *(b"null", b'""', b"-1", b"1e400", b"[]", b"{}", b'"x"', b"0", b"9" * 30, b"true", b"1.5"),
    *(b"}", b"{", b'"', b"\\", b",", b"NaN", b"\xff\xfe"),
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[list[bytes]]:
    """Small healthy jobs of every layout."""
    found = []
    for options in KINDS:
        folder = tmp_path_factory.mktemp("fuzz")
        paths, _ = made(folder, layers=2, kernels=2, steps=2, memcpy_us=5, **options)
        found.append([path.read_bytes() for path in paths])
    return found


def damaged(text: bytes, chance: random.Random) -> bytes:
    """The text with bytes lost, put in, or a value replaced."""
    data = bytearray(text)
    for _ in range(chance.choice([1, 1, 2, 5, 30])):
        at, how = chance.randrange(len(data)), chance.random()
        if how < 0.25:
            del data[at : at + chance.choice([1, 5, 100])]
        elif how < 0.5:
            data[at:at] = chance.choice(TOKENS)
        else:
            values = list(re.finditer(rb': ("[^"]*"|-?[\d.]+)', bytes(data[at : at + 600])))
            if values:
                value = chance.choice(values)
                data[at + value.start(1) : at + value.end(1)] = chance.choice(TOKENS)
    return bytes(data)


@given(st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_any_damage(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[list[bytes]], seed: int
) -> None:
    chance = random.Random(seed)
    folder: Path = tmp_path_factory.mktemp("damaged")
    paths = []
    for rank, text in enumerate(chance.choice(jobs)):
        paths.append(folder / f"t_rank{rank}.json")
        paths[-1].write_bytes(damaged(text, chance))
    try:
        job, problems = job_facts(paths)
    except UsageError as error:
        assert all(problem.count("\n") == 0 for problem in error.problems)
        return
    assert all(problem.count("\n") == 0 for problem in problems.values())
    for step in (step for rank in job.ranks for step in rank.steps):
        assert_identity(step)
    assert judge(job, Limits(), Known())
    json.dumps(facts_json(job))
