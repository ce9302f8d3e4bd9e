"""``journalctl``: the kernel's log of this boot, the newest first, of what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("journalctl",)

_XIDS_OR_BOOT: Final = r"^(?!(?!.*Xid.\()(?!Linux.version))"


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """The kernel's first line, and what the GPU driver reported."""
    argv = ("journalctl", "-k", "-b", "-r", "-q", "--no-pager", "-o", "short-monotonic", "-g")
    boot = f"Linux version {host.kernel} (buildd@lcy02-amd64-001) #115-Ubuntu SMP"
    lines = [(0.0, boot), *host.upkeep.xids]
    text = "".join(
        f"[{at_s:12.6f}] {host.name} kernel: {message}\n" for at_s, message in reversed(lines)
    )
    yield Answer((*argv, _XIDS_OR_BOOT), text)
