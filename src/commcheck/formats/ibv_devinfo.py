"""``ibv_devinfo [-d HCA] [-v]``: HCAs and their ports, as user space sees them.

``link_layer`` is the last line of a port that is read here, so a port that was cut lacks it. The
words in front of the bracketed codes are those of the tool, the codes are the verbs API's.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "ibv_devinfo"

_LINE: Final = regex(r"\t*([a-z_]+):\t+(\S.*)?")  # a blank after the tabs is damage
_MTU: Final = regex(r"(256|512|1024|2048|4096) \(([1-5])\)")
_STATE: Final = regex(r"PORT_(NOP|DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER) \(\d\)")
_LINK_LAYER: Final = regex(r"Ethernet|InfiniBand|Unspecified|Unknown")


@dataclass(frozen=True, slots=True)
class IbvPort:
    """One port. ``active_mtu_bytes`` means nothing while the port is down."""

    number: int
    state: str  # "ACTIVE", "DOWN", "INIT", "ARMED"
    max_mtu_bytes: int
    active_mtu_bytes: int
    link_layer: str  # "Ethernet", "InfiniBand", "Unspecified"
    sm_lid: int
    lid: int


@dataclass(frozen=True, slots=True)
class IbvDevice:
    """One HCA; ``board_id`` is not told by every driver."""

    hca: str
    firmware: str
    vendor_id: int
    part_id: int
    board_id: str | None
    ports: tuple[IbvPort, ...]


def parse(output: Output) -> tuple[IbvDevice, ...]:
    """The HCAs; raises ``CommandFailed`` where the tool could open none."""
    text = output.text
    if output.rc != 0:
        raise CommandFailed(*_why(output))
    # Each HCA begins with a line of its own; what stands before the first is a warning.
    before, *blocks = re.split(r"^(?=hca_id:)", text, flags=re.MULTILINE)
    if not blocks or re.search(r"^\t", before, re.MULTILINE):
        raise ParseError(TOOL, text, "'hca_id:' before all that is told of an HCA")
    if not text.endswith("\n"):
        raise ParseError(TOOL, text, "a whole last line")
    return tuple(_device(block, text) for block in blocks)


def _device(block: str, text: str) -> IbvDevice:
    head, *bodies = re.split(r"^\t\tport:", block, flags=re.MULTILINE)
    values = _values(head, text)
    ports = tuple(_port(body, text) for body in bodies)
    if "phys_port_cnt" not in values or len(ports) != _number(values["phys_port_cnt"], text):
        raise ParseError(TOOL, text, "as many ports as phys_port_cnt says")
    if missing := {"hca_id", "fw_ver", "vendor_id", "vendor_part_id"} - values.keys():
        raise ParseError(TOOL, text, f"{min(missing)} of each HCA")
    return IbvDevice(
        hca=_match(r"[\w.-]+", values["hca_id"], text),
        firmware=values["fw_ver"],
        vendor_id=int(_match(r"0x[0-9a-f]+", values["vendor_id"], text), 16),
        part_id=_number(values["vendor_part_id"], text),
        board_id=values.get("board_id"),
        ports=ports,
    )


def _port(body: str, text: str) -> IbvPort:
    number, _, rest = body.partition("\n")
    values = _values(rest, text)
    wanted = {"state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "link_layer"}
    if missing := wanted - values.keys():
        raise ParseError(TOOL, text, f"{min(missing)} of each port")
    return IbvPort(
        number=_number(number.strip(), text),
        state=_match(_STATE, values["state"], text).partition(" ")[0].removeprefix("PORT_"),
        max_mtu_bytes=_mtu(values["max_mtu"], text),
        active_mtu_bytes=_mtu(values["active_mtu"], text),
        link_layer=_match(_LINK_LAYER, values["link_layer"], text),
        sm_lid=_number(values["sm_lid"], text),
        lid=_number(values["port_lid"], text),
    )


def _values(part: str, text: str) -> dict[str, str]:
    """Key to value of the whole lines: one without its line end was cut."""
    values: dict[str, str] = {}
    for line in part.rpartition("\n")[0].rstrip("\n").split("\n"):
        # A blank line, or one without a tab, is what is left of a line that broke in two.
        if not line.startswith(("\t", "hca_id:")):
            raise ParseError(TOOL, text, f"a tab before each line of an HCA, not {line[:60]!r}")
        if (match := _LINE.fullmatch(line)) is not None:
            if match[1] in values:
                raise ParseError(TOOL, text, f"{match[1]!r} once for each HCA or port")
            values[match[1]] = (match[2] or "").strip()
    return values


def _mtu(value: str, text: str) -> int:
    size = int(_match(_MTU, value, text).partition(" ")[0])
    if size != 128 << int(value[-2]):  # IBV_MTU_256 is 1, each next one is twice as large
        raise ParseError(TOOL, text, f"an MTU and its code, not {value!r}")
    return size


def _number(value: str, text: str) -> int:
    return int(_match(r"\d{1,9}", value, text))


def _match(pattern: str | re.Pattern[str], value: str, text: str) -> str:
    return only(pattern, value, text, TOOL)[0]


def _why(output: Output) -> tuple[str, str]:
    """Reason and remedy, by the tool's own words."""
    both = f"{output.text}\n{Output(output.stderr).text}"
    if "no userspace device-specific driver" in both:
        return (
            "libibverbs has no user-space driver for the HCA",
            "install the provider package: ibverbs-providers, or rdma-core / libibverbs",
        )
    if "Failed to get IB devices list" in both:
        return "ib_uverbs is not loaded", "modprobe -a ib_uverbs mlx5_ib"
    if "Failed to open device" in both:
        return (
            "the HCA cannot be opened",
            "a container needs /dev/infiniband; else look at its permissions and at memlock",
        )
    # Warnings of the library come first; what the tool itself says is the last line.
    lines = [line.strip() for line in both.splitlines() if line.strip()]
    said = lines[-1][:200] if lines else "no message"
    return f"ibv_devinfo failed with exit code {output.rc}: {said}", ""


IBV_DEVINFO: Final = Reader(
    tool=TOOL, commands=(Command((TOOL, "-d", "{hca}")),), parse=parse, per=Rail
)
