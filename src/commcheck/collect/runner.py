"""What is sent to a host: the runner, and the requests as lines it understands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from commcheck.collect.base import Request
from commcheck.lazy import regex

NONCE_CHARS: Final = 32
"""Length of a nonce in the runner's text: fixed, so that the text's length is known before it."""

DEADLINE_SLACK_S: Final = 10.0
"""The runner ends itself this much later than the client gives up."""

_MARK: Final = regex(r"[A-Za-z0-9_.-]{1,64}")
_MARK_END: Final = ":"
"""Not among a mark's characters: session 1 is not found where session 10 is looked for."""


@cache
def _template() -> str:
    text = files("commcheck.collect").joinpath("runner.sh").read_text("ascii")
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return "\n".join(line for line in lines if line.strip()) + "\n"


def first_part(
    *, mark: str, nonce: str, path: Sequence[str] = (), sysfs_root: str = "", deadline_s: float
) -> bytes:
    """The runner with its settings: finds the subjects, then waits for the requests."""
    settings = {
        "N": nonce,
        "M": mark + _MARK_END,
        "G": str(math.ceil(deadline_s + DEADLINE_SLACK_S)),
        "A": "".join(f":{each}" for each in path),
        "R": sysfs_root.rstrip("/"),
    }
    lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    return _bytes(lines + _template())


def second_part(requests: Sequence[Request], *, nonce: str, sysfs_root: str = "") -> bytes:
    """The requests, numbered from 1 in their order, behind a line that tells their length."""
    lines = [_line(number, each, sysfs_root) for number, each in enumerate(requests, start=1)]
    text = _bytes("\n".join((f"L={len(lines)}", *lines, f"#{nonce}")))
    root = " root" if any(each.command.root for each in requests) else ""
    return _bytes(f"{len(text)}{root}\n") + text


def _line(number: int, request: Request, sysfs_root: str) -> str:
    command = request.command
    words = [_under(sysfs_root.rstrip("/"), word) for word in command.argv]
    # One byte more than the cap tells a full answer from a cut one. Whole seconds: older
    # timeout(1) of busybox know no fractions.
    limits = (number, command.cap_bytes + 1, max(1, math.ceil(command.timeout_s)))
    head = " ".join(map(str, (*limits, int(command.root))))
    return f"c {head} {shlex.join(words)}"


_SIMULATED: Final = (
    "/sys/",
    "/proc/",
    "/etc/machine-id",
    "/etc/hccn.conf",
    "/usr/local/Ascend/",
)


def _under(root: str, word: str) -> str:
    return root + word if root and word.startswith(_SIMULATED) else word


def bootstrap(*, mark: str, length: int, become: bool) -> str:
    """The exec command: reads the runner (``length`` bytes) from stdin and becomes it.

    Harmless in every login shell: no newline, no ``!`` (csh), no ``/`` (rbash). The mark is set
    by env(1), so that the runner itself carries it in ``/proc/PID/environ``.
    """
    if not _MARK.fullmatch(mark):
        raise ValueError(f"mark {mark!r} is not {_MARK.pattern}")
    marked = f"env COMMCHECK_MARK={mark}{_MARK_END}"
    start = f's=$(head -c {length}); eval "$s"'
    if not become:
        return f"{marked} sh -c '{start}'"
    # sudo closes every descriptor above 2 and clears the environment. The script must not be an
    # argument of sudo: everybody on the host could read the nonce in /proc/PID/cmdline.
    escaped = start.replace("$", r"\$").replace('"', r"\"")
    sudo = f'sudo -n {marked} COMMCHECK_BECOME=sudo "SSH_CONNECTION=$SSH_CONNECTION"'
    return (
        f'{marked} sh -c \'r="{escaped}"; if test 0 = $(id -u); then exec sh -c "$r"; '
        "elif sudo -n env true </dev/null >/dev/null 2>&1; "
        f'then exec {sudo} sh -c "$r"; '
        'else exec env COMMCHECK_BECOME=refused sh -c "$r"; fi\''
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
