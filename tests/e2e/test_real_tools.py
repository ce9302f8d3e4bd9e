"""Debian's own tools on this machine, which has no RDMA device, through a real sshd.

Each check that needs a device ends in the class and with the reason that tell why it could not be
judged: a tool that fails is never a fault of the fabric, and never a pass.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.errors import CommandFailed, Unjudgeable
from commcheck.formats.ibstat import IBSTAT
from commcheck.formats.ibstatus import IBSTATUS
from commcheck.formats.rdma_link import RDMA_LINK
from tests.e2e.conftest import Commcheck
from tests.sshd import SshdFleet, why_no_sshd

TOOLS = ("ethtool", "ibv_devinfo", "ibstat", "rdma", "dcb", "lldpctl", "lspci", "ip")


def why_not() -> str:
    lacking = [tool for tool in TOOLS if shutil.which(tool, path="/usr/sbin:/usr/bin") is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


pytestmark = [
    pytest.mark.sshd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

NETDEV = "ccreal0"
NO_PCI = "0000:ff:1f.7"
OUR_PORT = {"commcheck_platform": "gpu-roce", "commcheck_nics": ["mlx5_0"]}


@pytest.fixture
def netdev() -> Iterator[str]:
    """A port without a driver's extras: one end of a veth pair, whose link is up."""
    why = why_no_sshd()
    made = ["ip", "link", "add", NETDEV, "mtu", "4200", "type", "veth", "peer", f"{NETDEV}p"]
    if why or subprocess.run(made, check=False, capture_output=True).returncode:
        pytest.skip(why or "no network devices may be made here")
    try:
        for end in (NETDEV, f"{NETDEV}p"):
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield NETDEV
    finally:
        subprocess.run(["ip", "link", "del", NETDEV], check=True)


def judged(commcheck: Commcheck, fleet: SshdFleet) -> dict[str, tuple[str, str]]:
    """Check to how it ended and why: status, kind and class of the error where there is one."""
    reach = ["-i", fleet.inventory, "--known-hosts", fleet.known_hosts]
    ran = commcheck("run", *reach, "-t", "physical.*", "--format", "json")
    return {
        each["check"].removeprefix("physical."): (
            " ".join(
                filter(None, (each["status"], each["kind"].replace("check", ""), each["error"]))
            ),
            each["reason"],
        )
        for each in ran.document["verdicts"]
        if each["kind"] != "not-permitted" and "platform is" not in each["reason"]
    }


IN_VM = " hypervisor" in Path("/proc/cpuinfo").read_text()
BRIDGES = (
    ("skip not-applicable", "a guest does not see the real bridges")
    if IN_VM
    else ("skip undecidable", "lspci shows no bridge above a NIC or GPU")
)
NOT_THERE = "skip blocked", r"blocked: physical\.rdma-device-count failed on none"

WITHOUT = {
    "rdma-device-count": ("fail", "the host shows no RDMA device at all"),
    "gpu-nic-affinity": NOT_THERE,
    "bluefield-mode": ("skip not-applicable", "none is no BlueField"),
    "rail-arp": ("skip not-applicable", "fewer than two rails have an IPv4 address"),
    "pcie-acs": BRIDGES,
    **dict.fromkeys(
        (
            *("nic-link-type", "nic-link-up", "nic-speed", "nic-mtu", "nic-fec", "nic-firmware"),
            *("nic-ber", "nic-link-flaps", "nic-rx-discards", "nic-symbol-errors"),
            *("rdma-port-active", "rdma-rate", "rdma-mtu", "optics-power", "pcie-link"),
            *("pcie-mrrs", "pcie-errors", "pfc-enabled", "pfc-only-expected", "roce-trust-dscp"),
            *("roce-dscp-map", "dcbx-os", "pause-global-off", "pause-storm", "qos-ratelimit"),
            *("roce-v2-gid", "roce-gid-index", "roce-tclass", "cma-roce-mode", "roce-ecn"),
            *("roce-retransmit", "roce-congestion", "roce-traffic-on-pfc-prio"),
            *("rail-switch", "switch-pfc", "nic-consistency"),
        ),
        NOT_THERE,
    ),
}
"""Of a machine without any RDMA device: the hole is one fail, and what stands on it is blocked."""


def test_a_machine_without_a_device(
    commcheck: Commcheck, sshd_fleet: Callable[..., SshdFleet]
) -> None:
    fleet = sshd_fleet(1, sysfs=True, variables={"commcheck_platform": "gpu-roce"})
    said = judged(commcheck, fleet)
    for check, (status, reason) in WITHOUT.items():
        assert said[check][0] == status, (check, said[check])
        assert re.search(reason, said[check][1]), (check, said[check])


NO_DCB = "error CommandFailed", r"dcb pfc show failed with exit code \d+: .*not supported"
NO_VERBS = "error CommandFailed", r"ib_uverbs is not loaded|no HCA|no InfiniBand device|mlx5_0"
NO_LLDP = "skip not-applicable", "nothing tells the switch of mlx5_0|no switch was heard"

PRETENDED = {
    # ethtool
    "nic-link-up": ("pass", "has a link"),
    "nic-fec": ("skip not-applicable", "has no FEC setting"),
    "optics-power": ("skip not-applicable", "has no module that answers"),
    "pause-global-off": ("skip not-applicable", "has no global pause"),
    "nic-link-flaps": ("skip undecidable", "shows no counter of link losses"),
    "nic-symbol-errors": ("skip undecidable", "shows no counter of damaged packets"),
    "roce-traffic-on-pfc-prio": ("skip undecidable", "shows no counter of bytes by priority"),
    "pcie-errors": ("skip undecidable", "neither the kernel nor the driver counts PCIe errors"),
    # ibv_devinfo
    "rdma-mtu": NO_VERBS,
    "nic-firmware": NO_VERBS,
    # dcb
    "pfc-enabled": NO_DCB,
    "pfc-only-expected": NO_DCB,
    "roce-trust-dscp": NO_DCB,
    "roce-dscp-map": NO_DCB,
    "dcbx-os": NO_DCB,
    "qos-ratelimit": ("skip undecidable", "mlnx_qos is not there"),
    # lldpctl
    "rail-switch": NO_LLDP,
    "switch-pfc": NO_LLDP,
    # lspci
    "pcie-mrrs": ("skip undecidable", "lspci does not list mlx5_0 at 0000:ff:1f.7"),
    "pcie-acs": BRIDGES,
    # sysfs alone
    "rdma-device-count": ("pass", "mlx5_0 is there"),
    "rdma-port-active": ("pass", "ACTIVE"),
    "nic-mtu": ("pass", "MTU 4200"),
    "pcie-link": ("pass", "32 GT/s x16"),
    "roce-v2-gid": ("pass", "RoCE v2 at GID 3"),
    "roce-ecn": ("skip not-applicable", "shows no ECN settings in sysfs"),
    "roce-congestion": ("error CommandFailed", "sysfs shows no such counters"),
    # no tool of NVIDIA's
    "nic-ber": ("error CommandMissing", "none of mlxlink or mstlink spoke"),
    "gpu-driver": ("error CommandMissing", "nvidia-smi is not there"),
    "gpu-pcie": ("error CommandMissing", "nvidia-smi is not there"),
    "nvlink-active": ("error CommandMissing", "nvidia-smi is not there"),
}
"""Of a port that only /sys/class has, over a netdev without any hardware."""


def test_each_tool_fails_in_its_own_words(
    commcheck: Commcheck, sshd_fleet: Callable[..., SshdFleet], netdev: str
) -> None:
    fleet = sshd_fleet(1, sysfs=True, variables=OUR_PORT)
    fleet.servers[0].rail("mlx5_0", netdev, pci=NO_PCI)
    said = judged(commcheck, fleet)
    for check, (status, reason) in PRETENDED.items():
        assert said[check][0] == status, (check, said[check])
        assert re.search(reason, said[check][1]), (check, said[check])


@pytest.mark.parametrize("reader", [IBSTAT, IBSTATUS, RDMA_LINK], ids=lambda each: each.tool)
def test_tools_that_no_check_needs_where_sysfs_tells(reader: Reader[tuple[object, ...]]) -> None:
    """ibstat says nothing and exits 0; the others say that there is no device, or no core."""
    done = subprocess.run(
        reader.commands[0].argv,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
    )
    output = Output(done.stdout, done.stderr, done.returncode)
    try:
        assert reader.parse(output) == ()
    except Unjudgeable as refused:
        assert isinstance(refused, CommandFailed)
        assert re.search("(?i)no .*device|no RDMA core", refused.reason)
