"""A check judged by the real engine on recorded answers, without a host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from commcheck.check import AnyCheck
from commcheck.collect.base import Frame
from commcheck.judge import judge_host
from commcheck.model import Finding, Host, Machine, Rail, Result
from commcheck.plan import Asked, requests

RECORDED = Path(__file__).parents[1] / "recorded"

RAIL = Rail(
    index=0,
    hca="mlx5_0",
    netdev="ens1np0",
    link_layer="Ethernet",
    driver="mlx5_core",
    pci="0000:81:00.0",
    state="ACTIVE",
    phys_state="LinkUp",
    fabric=True,
)


class Judge(Protocol):
    """Judge one check on a host; see ``judged``."""

    def __call__(
        self,
        check: AnyCheck,
        answers: Mapping[str, tuple[str, int]] = ...,
        *,
        machine: Machine = ...,
        **variables: object,
    ) -> Finding:
        """The worst finding."""


@pytest.fixture
def rail() -> Rail:
    """A healthy RoCE rail."""
    return RAIL


@pytest.fixture
def judged() -> Judge:
    """Judges a check on answers by the beginning of the command: (file or text, exit code).

    A command without an answer is not installed.
    """

    def run(
        check: AnyCheck,
        answers: Mapping[str, tuple[str, int]] = {},
        *,
        machine: Machine = Machine("gpu-01", "gpu-roce", rails=(RAIL,)),  # noqa: B008 - frozen
        **variables: object,
    ) -> Finding:
        frames = {}
        for request in requests(Host("gpu-01"), machine, [Asked(check)]):
            key = request.key
            said = next(
                (a for word, a in answers.items() if str(request.command).startswith(word)), None
            )
            text, rc = said or ("sh: 1: not found\n", 127)
            file = RECORDED / text
            data = file.read_bytes() if "\n" not in text and file.is_file() else text.encode()
            out, err = (data, b"") if rc == 0 else (b"", data)
            frames[key] = Frame(key, out, err, rc, 1.0, 1.1)
        host = Host("gpu-01", {f"commcheck_{name}": value for name, value in variables.items()})
        results: tuple[Result, ...] = judge_host(
            host, [Asked(check)], machine, frames, None, lambda data: data.decode()
        )
        return results[0].worst

    return run
