"""Whatever a name stands for: bytes within a limit, or one line, and never a wait."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commcheck.files import lines_of, opened, read_whole


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert read_whole(file, 100) == b"x" * 100
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_whole(str(file), 99)


def test_what_is_no_file_is_told_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to("loop")
    for name, says in (
        ("pipe", "a named pipe, wanted a file"),
        ("socket", "a socket, wanted a file"),
        ("/dev/zero", "a device, wanted a file"),
        (".", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("none", "No such file"),
    ):
        with pytest.raises(OSError, match=says):
            opened(tmp_path / name)
    assert read_whole("/dev/null", 1) == b""


def test_the_pipe_of_a_shell_is_read(tmp_path: Path) -> None:
    """``commcheck ... <(command)``, whose writer may be slow."""
    code = "import sys; from commcheck.files import read_whole; print(read_whole(sys.argv[1], 99))"
    script = f'{sys.executable} -c "$1" <(sleep 0.2; echo text)'
    done = subprocess.run(
        ["bash", "-c", script, "bash", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "b'text\\n'\n"


def test_a_line_that_does_not_end_is_refused() -> None:
    assert list(lines_of(io.StringIO("a\nbc\n\nd"), 3)) == ["a\n", "bc\n", "\n", "d"]
    with pytest.raises(OSError, match="a line of more than"):
        list(lines_of(io.StringIO("a\nbcde\n"), 4))
