"""Calls ``kubectl`` once: words, no shell; within a time, bounded in memory, gone at the end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from commcheck.errors import Unreachable
from commcheck.kube.failures import explain, late, no_kubectl
from commcheck.kube.place import Place

MAX_BYTES: Final = 64 << 20
_COMPLAINT_BYTES: Final = 64 << 10
_CHUNK_BYTES: Final = 64 << 10


_LOOK_S: Final = 0.2

GoOn = Callable[[], None]
"""Asked now and then: raises where the operator stopped the run."""


def _always() -> None:
    """Nobody stops it."""


def call(
    words: Sequence[str],
    place: Place,
    *,
    limit_s: float,
    data: bytes = b"",
    go_on: GoOn = _always,
) -> bytes:
    """What ``kubectl`` prints. ``data`` is its stdin.

    Raises ``HostError`` with a code of ``failures`` where it is refused or too late.
    """
    answer = bytearray()
    for chunk in stream(words, place, limit_s=limit_s, data=data, go_on=go_on):
        answer += chunk
        if len(answer) > MAX_BYTES:
            raise Unreachable("output-flood", f"{place}: kubectl answers more than 64 MiB")
    return bytes(answer)


def stream(
    words: Sequence[str],
    place: Place,
    *,
    limit_s: float,
    data: bytes = b"",
    go_on: GoOn = _always,
) -> Iterator[bytes]:
    """The same in chunks, as they arrive."""
    ends = time.monotonic() + limit_s
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(data)
        stdin.seek(0)
        try:
            child = subprocess.Popen(  # noqa: S603 - words, no shell
                words,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise no_kubectl(error) from error
        assert child.stdout  # noqa: S101 - for mypy: it is a pipe
        try:
            while (left := ends - time.monotonic()) > 0:
                go_on()
                if not select.select([child.stdout], [], [], min(left, _LOOK_S))[0]:
                    continue
                chunk = os.read(child.stdout.fileno(), _CHUNK_BYTES)
                if not chunk:
                    break
                yield chunk
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, ends - time.monotonic()))
        finally:
            child.stdout.close()
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if child.returncode == -signal.SIGKILL:
            raise late(words, limit_s)
        if child.returncode:
            stderr.seek(0)
            raise explain(stderr.read(_COMPLAINT_BYTES).decode(errors="replace"), place)
