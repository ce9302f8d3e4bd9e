"""A check judged by the real engine on recorded answers, without a host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from commcheck.check import AnyCheck, Span, Watched
from commcheck.collect.base import Frame
from commcheck.counters import Counters
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


class Watch(Protocol):
    """Make readings of counters; see ``watched``."""

    def __call__(
        self,
        last: Mapping[str, int],
        added: Mapping[str, int] = ...,
        *,
        seconds: float = ...,
        since: Mapping[str, int] | None = ...,
        since_s: float = ...,
    ) -> Watched[Counters]:
        """Readings that end with ``last``."""


@pytest.fixture
def watched() -> Watch:
    """Counters as read: ``added`` during the visit, ``since`` since an earlier run of ``since_s``.

    A negative number is a counter that went backwards.
    """

    def less(last: Mapping[str, int], by: Mapping[str, int]) -> Counters:
        return Counters({name: value - by.get(name, 0) for name, value in last.items()})

    def make(
        last: Mapping[str, int],
        added: Mapping[str, int] = {},
        *,
        seconds: float = 10.0,
        since: Mapping[str, int] | None = None,
        since_s: float = 7200.0,
    ) -> Watched[Counters]:
        end = Counters(last)
        earlier = None if since is None else Span(less(last, since), end, since_s)
        return Watched(Span(less(last, added), end, seconds), earlier)

    return make


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
        host = Host("gpu-01", {f"commcheck_{name}": value for name, value in variables.items()})
        frames = {}
        for request in requests(host, machine, [Asked(check)]):
            key = request.key
            said = next(
                (a for word, a in answers.items() if str(request.command).startswith(word)), None
            )
            text, rc = said or ("sh: 1: not found\n", 127)
            file = RECORDED / text
            data = file.read_bytes() if "\n" not in text and file.is_file() else text.encode()
            out, err = (data, b"") if rc == 0 else (b"", data)
            frames[key] = Frame(key, out, err, rc, 1.0, 1.1)
        results: tuple[Result, ...] = judge_host(
            host, [Asked(check)], machine, frames, None, lambda data: data.decode()
        )
        return results[0].worst

    return run
