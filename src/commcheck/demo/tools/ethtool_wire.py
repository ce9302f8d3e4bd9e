"""``ethtool --show-fec`` and ``ethtool -m``: error correction, and the optical module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("ethtool",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every Ethernet port."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet":
            yield Answer(("ethtool", "--show-fec", nic.netdev), fec(nic))
            yield Answer(("ethtool", "-m", nic.netdev), module(nic))


def fec(nic: NicState) -> str:
    """``ethtool --show-fec DEV``, of version 5.10 and newer."""
    return (
        f"FEC parameters for {nic.netdev}:\n"
        "Supported/Configured FEC encodings: Auto RS\n"
        f"Active FEC encoding: {nic.wire.fec}\n"
    )


_LOW_ALARM_DBM: Final = -10.0
_CHANNELS: Final = 8  # as ethtool prints them of every CMIS module, whatever it has


def module(nic: NicState) -> str:
    """``ethtool -m DEV`` of an OSFP module, without what it says of lengths and serial numbers."""
    rows = [
        ("Identifier", "0x19 (OSFP 8X Pluggable Transceiver)"),
        ("Vendor name", "NVIDIA"),
        ("Vendor PN", "MMA4Z00-NS400"),
        ("Module State", "0x03 (ModuleReady)"),
        ("Module temperature", "52.03 degrees C / 125.66 degrees F"),
    ]
    lanes = list(enumerate(nic.wire.rx_dbm, start=1))
    spare = range(len(lanes) + 1, _CHANNELS + 1)
    for key, powers in (
        ("Transmit avg optical power", [0.95] * len(lanes)),
        ("Rcvr signal avg optical power", list(nic.wire.rx_dbm)),
    ):
        rows += [(f"{key} (Channel {n})", _power(dbm)) for n, dbm in enumerate(powers, start=1)]
        rows += [(f"{key} (Channel {n})", "0.0000 mW / -inf dBm") for n in spare]
    rows.append(("Module temperature high alarm", "Off"))
    for lane, dbm in lanes:
        word = "On" if dbm < _LOW_ALARM_DBM else "Off"
        rows.append((f"Laser rx power low alarm    (Channel {lane})", word))
    return "".join(f"\t{key:<41} : {value}\n" for key, value in rows)


def _power(dbm: float) -> str:
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"
