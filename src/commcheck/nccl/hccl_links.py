"""Links between ranks as HCCL's lines tell them: who waited for whom, and over which addresses.

Forms: CANN documentation, "Link setup timeout (EI0006)" and "Error CQE (EI0013)" of 7 to 9.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from commcheck.command import whole_number
from commcheck.lazy import dataclass, regex
from commcheck.nccl.places import At

CREATE: Final = regex(
    r"createLink para:rank\[\d+\]-localUserrank\[(\d{1,9})\]-localIpAddr\[([^/\]]+)(?:/(\d{1,9}))?"
    r"\], (?:remoteRank|dst_rank)\[\d+\]-remoteUserrank\[(\d{1,9})\]-"
    r"(?:remoteIpAddr|remote_ip_addr)\[([^/\]]+)(?:/(\d{1,9}))?\](?:.*isUsedRdma\[([01])\])?"
)
ROW: Final = regex(
    r"\|\s*([\w.:%]{1,64})\((\d{1,9})\)\s*\|(?:\s*\d{1,12}\s*\|)?"
    r"\s*([\w.:%]{1,64})\((\d{1,9})\)\s*\|(?:\s*\d{1,12}\s*\|)?"
    r"\s*(?:server|client|NA)\s*\|\s*(time out|no connect|connect failed|connecting)\s*\|"
    r"(?:\s*(ENABLE|DISABLE|UNKNOWN)\s*\|)?"
)
"""A row of LINK_ERROR_INFO: of the peer and of the rank itself the NIC's address and the rank."""

_DETECTED: Final = regex(
    r"srcRank \(server ([\w.:%-]+), device ID (\d{1,6})\) fails to connect to "
    r"dstRank \(server ([\w.:%-]+), device ID (\d{1,6})\)"
)
_LOSS: Final = regex(
    r"\[ROCE CQE ERROR\]cqe error status\[12\].{0,120}?"
    r"localInfo\{server\[([^\]]*)\],deviceId\[([^\]]*)\],deviceIp\[([^\]]*)\]\}, ?"
    r"remoteIP\{server\[([^\]]*)\],deviceId\[([^\]]*)\],deviceIp\[([^\]]*)\]"
)
_LOSS_TOLD: Final = regex(
    r"Local information: server ([\w.:%-]+), device ID (\d{1,6}), device IP ([\w:%]+(?:\.\w+)*)\. "
    r"Peer information: server ([\w.:%-]+), device ID (\d{1,6}), device IP ([\w:%]+(?:\.\w+)*)"
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link. ``server``: the host's address. ``address``: that of the device's NIC."""

    rank: int | None
    server: str = ""
    device: int | None = None
    address: str = ""

    @property
    def label(self) -> str:
        """How reports name it."""
        device = "" if self.device is None else f"device {self.device}"
        where = " ".join(part for part in (self.server or self.address, device) if part)
        if self.rank is None:
            return where
        return f"rank {self.rank} ({where})" if where else f"rank {self.rank}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link that failed: ``source`` waited for ``target``. ``rdma`` None: it is not told."""

    source: End
    target: End
    rdma: bool | None
    at: At


def created(text: str, at: At) -> Link | None:
    """The link that could not be made; the form up to CANN 8.0 knows no devices."""
    match = CREATE.search(text)
    if match is None:
        return None
    source = End(int(match[1]), match[2], whole_number(match[3], 9))
    target = End(int(match[4]), match[5], whole_number(match[6], 9))
    return Link(source, target, None if match[7] is None else match[7] == "1", at)


def with_addresses(link: Link, row: Link) -> Link:
    """The link, with the addresses of its row in the table."""
    return replace(
        link,
        source=replace(link.source, address=row.source.address),
        target=replace(link.target, address=row.target.address),
    )


def detected(text: str, at: At) -> Link | None:
    """What HCCL's own probe found to be cut."""
    match = _DETECTED.search(text)
    if match is None:
        return None
    ends = End(None, match[1], int(match[2])), End(None, match[3], int(match[4]))
    return Link(*ends, None, at)


def lost(text: str, at: At) -> Link | None:
    """A RoCE link on which the retries ran out."""
    match = _LOSS.search(text) or _LOSS_TOLD.search(text)
    if match is None:
        return None
    ends = tuple(_ends(match.groups()))
    return Link(ends[0], ends[1], True, at)


def _ends(said: tuple[str, ...]) -> Iterator[End]:
    for server, device, address in (said[:3], said[3:]):
        # The documentation's own sample prints an address as the device's number.
        yield End(None, server, whole_number(device, 9), address)
