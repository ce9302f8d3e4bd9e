"""The way a channel takes, as NCCL prints it behind ``via``: NIC, NVLink, shared memory."""

from __future__ import annotations

from typing import Final

from commcheck.lazy import dataclass, regex

_NET: Final = regex(r"NET/(.+)/(\d{1,3})(?:\((\d{1,7})\))?(/GDRDMA)?(?:\(PCI\))?(?:/Shared)?")
_PATH: Final = regex(
    r"P2P/(?:direct pointer|IPC|CUMEM|MNNVL|indirect/\d+\[[0-9a-f]+\]|common device)"
    r"(?:/read)?(?:/CE)?|direct shared memory|SHM(?:/(?:direct|CE))*"
)


@dataclass(frozen=True, slots=True)
class Path:
    """What stands behind ``via``. ``net`` is empty inside a host; ``proxy`` is a rank or -1.

    ``labels``: how it is counted, for the sending and the receiving end.
    """

    kind: str
    net: str = ""
    device: int = -1
    proxy: int = -1
    gdr: bool = False
    labels: tuple[str, str] = ("", "")


def read_path(text: str) -> Path | None:
    """The path, or None where its form is unknown or cut."""
    if text.startswith("NET/"):
        match = _NET.fullmatch(text)
        if match is None:
            return None
        proxy = -1 if match[3] is None else int(match[3])
        label = f"NET/{match[1]}{match[4] or ''}"
        labels = (f"{label} [send]", f"{label} [receive]")
        return Path("NET", match[1], int(match[2]), proxy, match[4] is not None, labels)
    if not _PATH.fullmatch(text):
        return None
    if text.startswith("P2P/indirect"):
        return Path("P2P/indirect")
    if text.startswith("P2P"):
        return Path(text.removesuffix("/CE").removesuffix("/read"))
    return Path("SHM")
