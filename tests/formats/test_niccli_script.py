"""The script that looks a Broadcom port up in niccli's own list, run by a real sh."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed
from commcheck.formats.niccli import NICCLI
from commcheck.model import Rail
from tests.sshd import write_tool

RECORDED = Path(__file__).parents[1] / "recorded" / "niccli"
RAIL = Rail(1, "bnxt_re1", netdev="eth1", driver="bnxt_en", pci="0000:26:00.0")
NO_DCB = "echo 'Attribute read: Operation not supported' >&2; exit 1"


def asked(folder: Path, rail: Rail = RAIL) -> Output:
    command = NICCLI.commands[0].on(rail)
    assert str(command) == "niccli get_qos eth1"
    done = subprocess.run(
        command.argv,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return Output(done.stdout, done.stderr, done.returncode)


def niccli(folder: Path, words: str) -> None:
    """Answers ``--list``, and the one call that this release knows of the device."""
    write_tool(
        folder / "niccli",
        f"""case "$*" in
  --list) cat {RECORDED}/list.txt ;;
  "{words}") cat {RECORDED}/get-qos-good.txt ;;
  *) echo "ERROR: unknown command: $*"; exit 2 ;;
esac""",
    )


@pytest.mark.parametrize("words", ["-dev 2 get_qos", "-i 2 getqos"])
def test_the_port_is_found_by_its_address(tmp_path: Path, words: str) -> None:
    write_tool(tmp_path / "dcb", NO_DCB)
    niccli(tmp_path, words)
    assert NICCLI.parse(asked(tmp_path)).pfc == {3}


@pytest.mark.parametrize(
    ("dcb", "rail", "rc", "says"),
    [
        ("echo '{}'", RAIL, 1, "not asked: dcb tells the same"),
        (NO_DCB, Rail(0, "b", netdev="eth1", driver="bnxt_en", pci="0000:99:00.0"), 1, "99:00:00"),
    ],
)
def test_what_it_refuses(tmp_path: Path, dcb: str, rail: Rail, rc: int, says: str) -> None:
    write_tool(tmp_path / "dcb", dcb)
    niccli(tmp_path, "-dev 2 get_qos")
    output = asked(tmp_path, rail)
    assert (output.rc, says in output.stderr) == (rc, True)
    with pytest.raises(CommandFailed, match=says):
        NICCLI.parse(output)


def test_it_may_be_missing(tmp_path: Path) -> None:
    write_tool(tmp_path / "dcb", NO_DCB)
    assert asked(tmp_path).rc == 127


def test_cards_of_another_driver_are_not_asked() -> None:
    assert Rail(0, "mlx5_0", netdev="eth1", driver="mlx5_core", pci=RAIL.pci).bnxt_pci is None
