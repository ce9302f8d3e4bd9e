"""Files that are small and unpack to much, or large and hold nothing: bounded memory, one line."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.climbs import Ended
from tests.chaos.test_file_arguments import at_most, forget_peak, peak_mib
from tests.chaos.test_files import PLACES
from tests.chaos.test_run_folders import call, copy_of, whole

__all__ = ["call", "whole"]

Call = Callable[..., tuple[int, str, str]]

MOST_MIB = 800
"""Of the largest that is read whole, 256 MiB, twice: as bytes, and as text."""

NOT_READ = {"analyze-metrics", "baseline"}
"""The one takes no file; the other is not looked at by a dry run, and is read as ``diff`` does."""

READ = {
    "read": ["read", "mlnx_qos", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
    "ssh_config": ["run", "-i", "a,", "--ssh-config", "FILE", "--connect-timeout", "1", "-q"],
}


def bombs(folder: Path) -> Iterator[Path]:
    """A line of 2 GiB without an end, and texts of 300 MiB in less than one."""
    line = folder / "line.json"
    with line.open("wb") as file:
        os.truncate(file.fileno(), 2 << 30)
    yield line
    block = gzip.compress(b"a" * (1 << 20))  # members follow each other in one stream
    for name, head in (("text.log.gz", b"NCCL INFO "), ("text.json.gz", b'{"traceEvents": ["')):
        (folder / name).write_bytes(gzip.compress(head) + block * 300)
        yield folder / name


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("place", sorted({*PLACES, *READ} - NOT_READ))
def test_a_bomb_is_refused_in_bounded_memory(place: str, tmp_path: Path, call: Call) -> None:
    words = {**PLACES, **READ}[place]
    for bomb in bombs(tmp_path):
        forget_peak()
        before = peak_mib()
        with at_most(120):
            code, out, err = call(*(bomb if word == "FILE" else word for word in words))
        assert peak_mib() - before < MOST_MIB, bomb
        # A log is read as it comes, whatever its length: it holds nothing, which is no pass.
        assert code == (3 if place in ("analyze-log", "ssh_config") else 2), (bomb, err)
        assert code == 3 or len((err or out).splitlines()) == 1, (bomb, err)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["events", "frames/gpu-01", "inventory", "results"])
def test_a_run_folder_with_a_bomb_in_it(
    whole: Ended, tmp_path: Path, call: Call, name: str
) -> None:
    run = copy_of(whole, tmp_path / "run")
    [file] = run.glob(f"{name}.*json")
    with file.open("wb") as bomb:
        bomb.write(b"{")
        os.truncate(bomb.fileno(), 2 << 30)
    out = ("-o", run.parent)
    for words in (("report", run.name), ("judge", run.name, "-q"), ("diff", run.name, run.name)):
        forget_peak()
        before = peak_mib()
        with at_most(120):
            code, _, err = call(*words, *out)
        assert peak_mib() - before < MOST_MIB, words
        assert code != 2 or len(err.splitlines()) == 1, (words, err)
