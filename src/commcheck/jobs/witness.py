"""What NCCL's own lines of the same run say of the network it used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from commcheck.lazy import dataclass, regex

_USING: Final = regex(r"NET/IB : Using (?P<list>(?:\[\d+\]\S+ ?)+)")
_VIA: Final = regex(r"via NET/(?P<net>\w+)/\d+(?:\(\d+\))?(?P<rest>\S*)")
_NETWORK: Final = regex(r"Using network (\S+)")
_NVLS: Final = regex(r"NVLS multicast support is (not )?available")


@dataclass(frozen=True, slots=True)
class Witness:
    """None means that no line told. ``nics``: the fewest that any process lists."""

    network: str | None = None  # "IB", "Socket", a plugin's name
    nics: int | None = None
    gpudirect: bool | None = None
    nvls: bool | None = None


def hear(log: Iterable[str]) -> Witness:
    """The facts in NCCL's lines. One process on sockets outweighs all that use IB."""
    networks: set[str] = set()
    nics: list[int] = []
    direct: set[bool] = set()
    nvls: set[bool] = set()
    for line in log:
        if using := _USING.search(line):
            nics.append(len(re.findall(r"\[\d+\]\S", using["list"])))
        if via := _VIA.search(line):
            networks.add("Socket" if via["net"] == "Socket" else via["net"])
            if via["net"] == "IB":
                direct.add("GDRDMA" in via["rest"])
        if network := _NETWORK.search(line):
            networks.add(network[1])
        if found := _NVLS.search(line):
            nvls.add(found[1] is None)
    return Witness(
        network="Socket" if "Socket" in networks else min(networks, default=None),
        nics=min(nics, default=None),
        gpudirect=all(direct) if direct else None,
        nvls=all(nvls) if nvls else None,
    )
