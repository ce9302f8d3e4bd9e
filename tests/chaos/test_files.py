"""Files from anywhere: inventories, playbooks, waivers, and whatever is given to analyze."""

from __future__ import annotations

import gzip
import random
import re
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck import playbook
from commcheck.cli_analyze import analyze
from commcheck.discover import discover
from commcheck.errors import UsageError
from commcheck.inventory.load import load
from commcheck.trace.read import read
from commcheck.trace.source import HELD_MOST, TAIL_MOST, Foreign, Held
from tests.chaos.seeds import EXAMPLES, SEEDS
from tests.chaos.test_run_folders import call

__all__ = ["call"]

Call = Callable[..., tuple[int, str, str]]

FOUND = discover(cwd=Path(__file__).parent)
ROOT = Path(__file__).parents[2]
RECORDED = sorted(
    path
    for path in (ROOT / "tests" / "recorded").rglob("*")
    if path.is_file() and path.suffix != ".md" and path.stat().st_size < 60_000
)
BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]" for n in range(1, 30))])
HOSTILE = {
    "empty": b"",
    "zeros": bytes(4096),
    "deep": b"[" * 50_000,
    "deep-object": b'{"a":' * 50_000,
    "deep-trace": b'{"traceEvents": [' + b"[" * 50_000,
    "deep-kineto": b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "a":' + b'{"a":' * 50_000,
    "deep-toml": b"a = " + b"[" * 50_000,
    "digits": b'{"traceEvents": [{"ph": "X", "ts": ' + b"9" * 5000 + b"}]}",
    "digits-yaml": b"zero_optimization: " + b"9" * 5000,
    "alias-bomb": BOMB.encode(),
    "tag": b'!!python/object/apply:os.system ["touch owned"]',
    "escapes": b"\x1b]0;owned\x07\x1b[2J NCCL INFO \x1b[31m\n" * 50,
    "pickle": b"cos\nsystem\n(S'touch owned'\ntR.",
    "gzip-cut": gzip.compress(b"{" * 10_000)[:-9],
    "gzip-zeros": gzip.compress(bytes(20 << 20)),
    "utf-16": "all:\n  hosts: {a: {}}\n".encode("utf-16"),
    "one-line": b"NCCL INFO " * 30_000,
    "names": b'{"traceEvents": [], "../../../etc/passwd": "<script>"}',
}
PLACES = {
    "inventory": ["run", "-i", "FILE", "--dry-run"],
    "playbook": ["run", "-i", "a,", "FILE", "--dry-run"],
    "waivers": ["run", "-i", "a,", "--waivers", "FILE", "--dry-run"],
    "lint": ["lint", "FILE"],
    "settings": ["list", "checks", "--config", "FILE"],
    "baseline": ["run", "-i", "a,", "--baseline", "FILE", "--dry-run"],
    **{f"analyze-{name}": ["analyze", name, "FILE"] for name in analyze.commands},
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_hostile_files_are_read_or_refused(place: str, tmp_path: Path, call: Call) -> None:
    for name, data in HOSTILE.items():
        path = tmp_path / f"{name}.{'json' if 'deep' in name else 'yaml'}"
        path.write_bytes(data)
        begun = time.process_time()
        call(*(path if word == "FILE" else word for word in PLACES[place]))
        assert time.process_time() - begun < 10, name
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_recordings_are_analysed_or_refused(seed: int, tmp_path: Path, call: Call) -> None:
    """Any file in any place, damaged: most are foreign there, some are almost right."""
    chance = random.Random(seed)
    for turn in range(25):
        data = bytearray(chance.choice(RECORDED).read_bytes())
        for _ in range(chance.choice([0, 1, 2, 20])):
            at = chance.randrange(len(data) + 1)
            put = chance.choice([b"", b"\xff", b"\n", b"[" * 2000, b"9" * 5000, b'"', b"\0"])
            data[at : at + chance.choice([0, 1, 50])] = put
        if numbers := list(re.finditer(rb"\d+", data)):
            number = chance.choice(numbers)
            put = chance.choice([number[0], b"9" * 400, b"9" * 5000, b"1e999"])
            data[number.start() : number.end()] = put
        path = tmp_path / f"{turn}{chance.choice(['.json', '.yaml', '.log', '.json.gz'])}"
        path.write_bytes(bytes(data))
        place = chance.choice(list(PLACES))
        call(*(path if word == "FILE" else word for word in PLACES[place]))


# --- a trace that a hostile host packed ----------------------------------------------------------


def packed(head: bytes, fill: bytes, mib: int) -> Held:
    """Text of so many MiB in a few kB."""
    data = bytearray(gzip.compress(head))
    block = gzip.compress(fill * (1 << 20))  # members follow each other in one stream
    return Held("rank0.json.gz", bytes(data + block * mib))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "fill", "mib", "says"),
    [
        (b'{"traceEvents": [', b" ", (HELD_MOST >> 20) + 1, "unpacks to more than 512 MiB"),
        (b'{"traceEvents": []', b" ", 200, "has more than 64 MiB behind its events"),
        (b'{"traceEvents": [{"name": "', b"a", 200, "has an event that is no JSON"),
        (b'{"a": "', b"a", 200, "has no traceEvents"),
        (b'{"traceEvents": [', b"[", 9, "has an event that nobody can read"),
    ],
)
def test_a_gzip_bomb_is_refused_in_bounded_time_and_memory(
    head: bytes, fill: bytes, mib: int, says: str
) -> None:
    trace = packed(head, fill, mib)
    assert len(trace.data) < 4 << 20
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Foreign, match=says):
        read(trace)
    assert time.process_time() - begun < 10
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used >> 10 < 4 * (TAIL_MOST >> 20)


# --- texts ----------------------------------------------------------------------------------------

PIECES = st.one_of(
    st.sampled_from(
        [
            *("all", "hosts", "children", "vars", "plays", "checks", "layer", "name", "allow"),
            *(
                ": ",
                "\n",
                "  ",
                "- ",
                "[",
                "]",
                "{",
                "}",
                ",",
                "&a ",
                "*a",
                "!x ",
                "!!binary ",
                "|",
            ),
            *("n[01:9]", "physical.nic-mtu", "commcheck_mtu", "4200", "0x1", "1e999", "null", "~"),
            *(
                "<<: *a",
                "---\n",
                "'",
                '"',
                "#",
                "{{ x }}",
                "\t",
                "\x00",
                "\u2028",
                "../..",
                "9" * 40,
            ),
        ]
    ),
    st.text(max_size=4),
)


@EXAMPLES(25)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_as_inventory_or_playbook(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.yaml"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        for reads in (
            lambda: load((str(path),), cwd=Path(folder)),
            lambda: playbook.load(path, FOUND),
        ):
            try:
                reads()
            except UsageError as error:
                assert error.problems
