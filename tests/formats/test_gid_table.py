"""The GID table as grep prints it from sysfs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.gid_table import GID_TABLE, ZERO, Gid, GidTable, parse
from commcheck.model import Rail

RECORDED = Path(__file__).parents[1] / "recorded" / "sysfs"

LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe5a:1b40"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a64:0115"

FACTS = {
    "gid-table-grep.txt": GidTable(
        "mlx5_0",
        1,
        (
            Gid(0, LOCAL, 1, "ens1np0"),
            Gid(1, LOCAL, 2, "ens1np0"),
            Gid(2, IPV4, 1, "ens1np0"),
            Gid(3, IPV4, 2, "ens1np0"),
        ),
    ),
    "gid-table-v1-only.txt": GidTable(
        "mlx5_0", 1, (Gid(0, LOCAL, 1, "ens1np0"), Gid(1, IPV4, 1, "ens1np0"))
    ),
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_layout(name: str) -> None:
    # grep exits 2: asking an unused slot for its type is an error.
    assert parse(Output(text_of(name), "", 2)) == FACTS[name]


@pytest.mark.parametrize("name", FACTS)
def test_complaints_may_come_apart(name: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    stdout = "".join(line for line in lines if not line.startswith("grep:"))
    assert parse(Output(stdout, "grep: x: Invalid argument\n", 2)) == FACTS[name]


@pytest.mark.parametrize("name", FACTS)
def test_unused_slots_may_be_left_out(name: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    used = "".join(line for line in lines if ZERO not in line and not line.startswith("grep:"))
    prefixed = used.replace("/sys/", "/tmp/root-7/sys/")
    assert parse(Output(prefixed)) == FACTS[name]


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_table_is_refused(name: str) -> None:
    text = text_of(name)
    for end in range(len(text)):
        with pytest.raises(Unjudgeable):
            parse(Output(text[:end]))


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 60),
    at=st.integers(0, 100),
    by=st.sampled_from(["", "X", "\n", "\x1b[0m"]),
)
def test_a_damaged_line_loses_a_slot_or_the_table(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    at %= len(lines[line])
    # The value only: a damaged index or name is another slot or port, which no reader can tell.
    if lines[line].rfind(":") < at:
        lines[line] = lines[line][:at] + by + lines[line][at + 1 :]
    try:
        table = parse(Output("".join(lines)))
    except ParseError:
        return
    assert {gid.gid for gid in table.gids} <= {gid.gid for gid in FACTS[name].gids}


@pytest.mark.parametrize(
    ("gid", "ipv4", "local"),
    [
        (IPV4, "10.100.1.21", False),
        (LOCAL, None, True),
        ("fd00:0000:0000:00a1:0000:0000:0000:0015", None, False),
    ],
)
def test_gid(gid: str, ipv4: str | None, local: bool) -> None:
    one = Gid(3, gid, 2, "ens1np0")
    assert (one.ipv4, one.is_link_local) == (ipv4, local)


@pytest.mark.parametrize("rc", [0, 1, 2])
def test_no_port_is_no_table(rc: int) -> None:
    with pytest.raises(CommandFailed, match="no GID"):
        parse(Output("", "", rc))


@pytest.mark.parametrize(
    "text",
    [
        "ls: cannot access '/sys/class/infiniband': No such file or directory\n",
        f"/sys/class/infiniband/mlx5_0/ports/1/gids/0:{ZERO}\n",
        text_of("gid-table-grep.txt").replace("RoCE v2", "RoCE v3"),
        text_of("gid-table-grep.txt") + text_of("gid-table-grep.txt"),
        text_of("gid-table-grep.txt") + text_of("gid-table-grep.txt").replace("mlx5_0", "mlx5_1"),
        text_of("gid-table-grep.txt").replace("ndevs/3:ens1np0\n", ""),
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="sysfs-gids"):
        parse(Output(text, "", 2))


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))


@pytest.mark.skipif(shutil.which("grep") is None, reason="needs grep")
def test_the_command_on_real_files(tmp_path: Path) -> None:
    for line in text_of("gid-table-grep.txt").splitlines():
        path, _, value = line.partition(":")
        if path.startswith("/sys/"):
            file = tmp_path / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value + "\n")
    command = GID_TABLE.commands[0].on(Rail(0, "mlx5_0", netdev="ens1np0"))
    argv = [word.replace("/sys/", f"{tmp_path}/sys/") for word in command.argv]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 12  # three lines for each used slot
    assert parse(Output(done.stdout, done.stderr, done.returncode)) == FACTS["gid-table-grep.txt"]
