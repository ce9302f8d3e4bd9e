"""A fleet of real sshd hosts that look like healthy RoCE hosts, and the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.sshd import REMOTE, Server, SshdFleet, why_no_sshd

RECORDED = Path(__file__).parents[1] / "recorded"
COMMCHECK = Path(sys.executable).parent / "commcheck"
RAILS = (("mlx5_0", "ens1np0"), ("mlx5_1", "ens2np0"))


def recorded(name: str) -> str:
    """The text of a recording."""
    return (RECORDED / name).read_text()


def answer(server: Server, tool: str, text: str, rc: int = 0) -> None:
    """Let a tool on one host print a text, byte for byte, and exit."""
    (server.folder / f"{tool}.out").write_text(text)
    server.tool(tool, f'cat "{REMOTE / server.folder.name}/{tool}.out"; exit {rc}')


def make_healthy(server: Server) -> None:
    """Two rails of 400G RoCE, PFC on priority 3, DSCP trusted, eight GPUs."""
    for number, (hca, netdev) in enumerate(RAILS):
        server.rail(hca, netdev, pci=f"0000:{0x17 + number:02x}:00.0")
    link = recorded("ethtool/link-400g-good.txt")
    pause = recorded("ethtool/pause-off.txt")
    server.tool(
        "ethtool",
        f"if [ $1 = -a ]; then sed s/ens1np0/$2/ <<'END'\n{pause}END\n"
        f"else sed s/ens1np0/$1/ <<'END'\n{link}END\nfi",
    )
    answer(server, "mlnx_qos", recorded("mlnx_qos/good-dscp-prio3.txt"))
    hca = recorded("ibv_devinfo/roce-400g-good.txt")
    server.tool("ibv_devinfo", f"sed s/mlx5_0/$2/ <<'END'\n{hca}END")
    answer(server, "lsmod", recorded("modules/lsmod-peermem.txt"))
    gpus = "".join(
        f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n:08d}-0000-0000-0000-000000000000)\n"
        for n in range(8)
    )
    for name, text in {
        "list": gpus,
        "nvlink": recorded("nvidia-smi/nvlink-h100-good.txt"),
        "query": recorded("nvidia-smi/query-gpu-good.csv"),
    }.items():
        (server.folder / f"nvidia-smi.{name}").write_text(text)
    server.tool(
        "nvidia-smi",
        "case $1 in nvlink) f=nvlink ;; --query-gpu*) f=query ;; *) f=list ;; esac\n"
        f'cat "{REMOTE / server.folder.name}/nvidia-smi.$f"',
    )


@dataclass(frozen=True)
class Ran:
    """One call of the command line."""

    code: int
    out: str
    err: str
    cwd: Path

    @property
    def document(self) -> dict[str, Any]:
        """stdout of ``--format json``."""
        assert self.out, self.err
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded

    def verdicts(self, *, but: str = "pass") -> list[tuple[str, str, str]]:
        """(subject, check, status/kind) of every verdict that is not ``but``."""
        return [
            (v["subject"], v["check"], "/".join(filter(None, (v["status"], v["kind"]))))
            for v in self.document["verdicts"]
            if v["status"] != but
        ]

    @property
    def folder(self) -> Path:
        """The newest run folder."""
        return (self.cwd / "reports" / "latest").resolve()


class Commcheck(Protocol):
    """The command line, run in an empty folder of its own."""

    def __call__(self, *words: object, timeout_s: float = 60) -> Ran:
        """Run it to its end."""


@pytest.fixture
def commcheck(tmp_path: Path) -> Commcheck:
    """The installed console script."""
    cwd = tmp_path / "cwd"
    cwd.mkdir()

    def run(*words: object, timeout_s: float = 60) -> Ran:
        done = subprocess.run(
            [COMMCHECK, *map(str, words)],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, "COMMCHECK_DEBUG": "1", "HOME": str(tmp_path)},
        )
        return Ran(done.returncode, done.stdout, done.stderr, cwd)

    return run


@pytest.fixture
def fleet_of(tmp_path: Path) -> Iterator[Callable[..., SshdFleet]]:
    """Make fleets of healthy hosts; all end with the test."""
    if why_no_sshd():
        pytest.skip(why_no_sshd())
    started: list[SshdFleet] = []

    def make(n: int = 1, **more: Any) -> SshdFleet:
        variables = {
            "commcheck_platform": "gpu-roce",
            "commcheck_nics": [hca for hca, _ in RAILS],
            **more.pop("variables", {}),
        }
        fleet = SshdFleet(
            tmp_path,
            n=n,
            sysfs=True,
            variables=variables,
            prefix=f"gpu{len(started)}",
            net=len(started),
            **more,
        )
        for server in fleet.servers:
            make_healthy(server)
        fleet.__enter__()
        started.append(fleet)
        return fleet

    yield make
    for fleet in started:
        fleet.__exit__()
