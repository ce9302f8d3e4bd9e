"""``ping`` between simulated hosts, and ``hccn_tool -ping`` between their NPUs. Pure.

It needs a link, a VLAN and an MTU.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from commcheck.demo.state import HostState, NicState


def ping(host: HostState, fleet: Iterable[HostState], words: Sequence[str]) -> tuple[str, int]:
    """What iputils prints on ``host``, and its exit code; the peer is known by its address."""
    options = dict(itertools.pairwise(words))
    netdev, size, peer = options["-I"], int(options["-s"]), words[-1]
    count = int(options["-c"])
    mine = next((nic for nic in host.nics if nic.netdev == netdev and nic.present), None)
    if mine is None:
        return f"ping: SO_BINDTODEVICE {netdev}: No such device\n", 2
    theirs = next((nic for each in fleet for nic in each.nics if _ipv4(nic) == peer), None)
    said = [f"PING {peer} ({peer}) from {_ipv4(mine)} {netdev}: {size}({size + 28}) bytes of data."]
    counted = f"0 received, 100% packet loss, time {203 * (count - 1)}ms\n"
    if size + 28 > mine.mtu_bytes:
        said += [f"ping: local error: message too long, mtu={mine.mtu_bytes}"] * count
        counted = counted.replace("received,", f"received, +{count} errors,")
    elif theirs is not None and _passes(mine, theirs, size + 28):
        said += [
            f"{size + 8} bytes from {peer}: icmp_seq={number} ttl=63 time=0.105 ms"
            for number in range(1, count + 1)
        ]
        counted = counted.replace("0 received, 100%", f"{count} received, 0%")
        counted += "rtt min/avg/max/mdev = 0.105/0.105/0.105/0.000 ms"
    said += ["", f"--- {peer} ping statistics ---", f"{count} packets transmitted, {counted}", ""]
    return "\n".join(said), int(" 0% " not in counted)


def _passes(mine: NicState, theirs: NicState, size: int) -> bool:
    ends = (mine, theirs)
    return (
        all(nic.present and nic.link_up for nic in ends)
        and mine.wire.vlan == theirs.wire.vlan
        and size <= min(nic.wire.path_mtu_bytes for nic in ends)
    )


def npu_ping(host: HostState, fleet: Iterable[HostState], words: Sequence[str]) -> tuple[str, int]:
    """What ``hccn_tool -i N -ping`` and ``-hccs_ping`` print, and the exit code."""
    options = dict(itertools.pairwise(words))
    mine = next((npu for npu in host.npus if str(npu.number) == options["-i"]), None)
    over_hccs = "-hccs_ping" in words
    if mine is None or not mine.present:
        return "The device is not exist!\n", 1
    if over_hccs and mine.vnic is None:
        return "The command is not supported on this product.\n", 1
    peer = options["address"]
    theirs = [npu for each in fleet for npu in each.npus if npu.present]
    if over_hccs:
        passes = any(npu.vnic == peer for npu in theirs)
    else:
        passes = mine.link_up and any(
            npu.address == peer and npu.link_up and npu.vlan == mine.vlan for npu in theirs
        )
    said = [f"device {mine.number} PING {peer}"]
    said += [f"recv seq={seq},time=0.998000ms" for seq in range(3)] if passes else []
    got, loss = (3, "0.00") if passes else (0, "100.00")
    said += [f"3 packets transmitted, {got} received, {loss}% packets loss", ""]
    return "\n".join(said), 0


def _ipv4(nic: NicState) -> str:
    """The address of a port, or ""."""
    return next((str(gid.ipv4) for gid in nic.gids if gid.ipv4), "")
