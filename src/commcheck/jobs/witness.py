"""What NCCL's own lines of the same run say of the network it used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.nccl.case import LIBFABRIC, OVER_VERBS
from commcheck.nccl.messages import nics_of
from commcheck.nccl.paths import read_path
from commcheck.nccl.rules_network import forces_tcp

_USING: Final = regex(r"NET/IB ?: Using (?P<list>\[.+?) ?(?:\[RO\])?; OOB")
_VIA: Final = regex(r"via (?P<path>NET/.+)")
_NETWORK: Final = regex(r"Using network (\S.*\S)")
_FORCED: Final = regex(r"(NCCL_IB_DISABLE|NCCL_NET) set by environment to (\w+)")
_NVLS: Final = regex(r"NVLS multicast support is (not )?available")


@dataclass(frozen=True, slots=True)
class Witness:
    """None means that no line told. ``nics`` and ``most_nics``: the fewest and the most ports of
    NICs that a process lists. ``forced``: the setting that turned RDMA off."""

    network: str | None = None  # "IB", "Socket", a plugin's name
    nics: int | None = None
    most_nics: int | None = None
    forced: str = ""
    gpudirect: bool | None = None
    nvls: bool | None = None


def hear(log: Iterable[str], env: Mapping[str, str] | None = None) -> Witness:
    """The facts in NCCL's lines. One process on sockets outweighs all that use IB.

    ``env``: the variables that stand beside the run.
    """
    networks: set[str] = set()
    nics: list[int] = []
    direct: set[bool] = set()
    nvls: set[bool] = set()
    forced = forces_tcp((env or {}).items())
    for line in log:
        if using := _USING.search(line):
            ports = [nic.name.count("+") + 1 for nic in nics_of(using["list"])]
            nics += [sum(ports)] if ports else []
        if via := _VIA.search(line):
            path = read_path(via["path"].partition(" comm 0x")[0].rstrip())
            if path is not None:
                networks.add(path.net)
                if path.net == "IB" or path.net in LIBFABRIC or path.net.startswith(OVER_VERBS):
                    direct.add(path.gdr)
        if network := _NETWORK.search(line):
            networks.add(network[1])
        if setting := _FORCED.search(line):
            forced = forced or forces_tcp([(setting[1], setting[2])])
        if found := _NVLS.search(line):
            nvls.add(found[1] is None)
    return Witness(
        network="Socket" if "Socket" in networks else min(networks, default=None),
        nics=min(nics, default=None),
        most_nics=max(nics, default=None),
        forced=forced,
        gpudirect=all(direct) if direct else None,
        nvls=all(nvls) if nvls else None,
    )
