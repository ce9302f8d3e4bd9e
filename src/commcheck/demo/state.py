"""The state of a simulated host: a few facts, from which everything it answers is rendered.

A fault changes facts and nothing else, so that it shows in every tool as on a real host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

from commcheck.demo.counts import HEALTHY, Counts
from commcheck.demo.efa import EfaState
from commcheck.demo.facts import GOOD_JOB, GOOD_SYSTEM, GOOD_WIRE, Job, System, Wire
from commcheck.demo.npu import NpuState
from commcheck.demo.upkeep import GOOD_CARE, GOOD_UPKEEP, GpuCare, Upkeep
from commcheck.formats.gid_table import Gid
from commcheck.formats.qos import Qos, TrafficClass
from commcheck.lazy import dataclass

CLASS_OF_PRIORITY: Final = (1, 0, 2, 3, 4, 5, 6, 7)
"""Traffic class of each priority by 802.1Q: 0 is best effort and stands above background, 1."""

FACTORY_DSCP: Final = tuple((dscp, dscp >> 3) for dscp in range(64))
"""The NIC's map from DSCP to priority as it leaves the factory."""

LOSSLESS: Final = Qos(
    pfc=frozenset({3}),
    trust="dscp",
    dcbx="os",
    dscp_prio=FACTORY_DSCP,
    buffers_bytes=(20016, 156096, 0, 0, 0, 0, 0, 0),
    buffers_total_bytes=1048576,
    prio_buffer=(0, 0, 0, 1, 0, 0, 0, 0),
    cable_m=7,
    traffic_classes=tuple(
        TrafficClass(tc, (CLASS_OF_PRIORITY.index(tc),), "vendor", None, "unlimited")
        for tc in range(8)
    ),
)
"""A port as an operator sets it for RoCE: PFC and a buffer of its own for priority 3."""

MTU_CODES: Final = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
"""RDMA MTUs in bytes, and IBV_MTU_* of the verbs API."""

_OVERHEAD_BYTES: Final = 52
"""GRH or IP and UDP, BTH and ICRC, as the kernel reckons them (iboe_get_mtu)."""


def active_mtu_bytes(netdev_mtu_bytes: int) -> int:
    """The RDMA MTU that fits into the netdev's."""
    return max(size for size in MTU_CODES if size + _OVERHEAD_BYTES <= max(netdev_mtu_bytes, 308))


LINE_RATE_GBITS: Final = 400

MODES: Final = (
    "1000baseKX/Full",
    "10000baseKR/Full",
    "25000baseCR/Full",
    "50000baseCR2/Full",
    "100000baseCR4/Full",
    "200000baseCR4/Full",
    "400000baseCR4/Full",
)
"""Link modes of a 400G port of four lanes."""


@dataclass(frozen=True, slots=True)
class NicState:
    """One NIC with one port: link, Ethernet settings, addresses, PCIe link.

    ``root``, ``bridge`` and ``pci``: its place below the PCI root port that it shares with a GPU.
    ``members``: where ``netdev`` is a bond, the netdevs of the card's ports, set alike.
    """

    hca: str
    netdev: str
    root: str  # "pci0000:15/0000:15:01.0/0000:16:00.0"
    bridge: str  # "0000:17:00.0"
    pci: str  # "0000:18:00.0"
    guid: str  # "a088:c203:005a:1b40"
    image_guid: str  # of the card: that of its first function
    gids: tuple[Gid, ...]
    present: bool = True
    driver: str = "mlx5_core"
    driver_version: str = "24.10-1.1.4"
    link_layer: str = "Ethernet"
    link_up: bool = True
    sm_lid: int = 0  # of InfiniBand only
    lid: int = 0
    down_reason: str = "No cable"
    speed_mbits: int = 1000 * LINE_RATE_GBITS
    lanes: int | None = 4  # None: the driver does not say
    autoneg: bool = True
    modes: tuple[str, ...] = MODES
    fec_modes: str = "RS"
    mtu_bytes: int = 4200
    qos: Qos = LOSSLESS
    pause_autoneg: bool = False
    pause_rx: bool = False
    pause_tx: bool = False
    pause_negotiated: tuple[bool, bool] | None = None  # receive and transmit, where it was
    firmware: str = "28.39.2048"
    board_id: str | None = "MT_0000000838"  # None: the vendor has none
    part_id: int = 4129  # ConnectX-7
    is_vf: bool = False  # handed to a guest: the port's own settings are not shown
    embedded_cpu: bool = False  # of a BlueField: the Arm cores own the port
    ecn_only: bool = False  # lossy by design: ECN keeps the queues short, and little is lost
    vendor_id: int = 0x02C9
    hw_ver: int = 0
    pcie_gts: float = 32.0
    pcie_width: int = 16
    pcie_max_gts: float = 32.0
    pcie_max_width: int = 16
    roce_dscp: int = 26  # mark of the job's RoCE packets (NVIDIA RoCE guides)
    counts: Counts = HEALTHY
    wire: Wire = GOOD_WIRE
    members: tuple[str, ...] = ()

    @property
    def ports(self) -> tuple[NicState, ...]:
        """The physical ports: of a bond its members, each a function of the card."""
        return tuple(
            replace(self, netdev=member, pci=f"{self.pci[:-1]}{function}", members=())
            for function, member in enumerate(self.members)
        ) or (self,)


def port_state(nic: NicState) -> tuple[int, str]:
    """IBV_PORT_* of the verbs API. InfiniBand waits for its subnet manager."""
    if not nic.link_up:
        return 1, "DOWN"
    return (4, "ACTIVE") if nic.link_layer == "Ethernet" or nic.sm_lid else (2, "INIT")


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU. ``lost``: on the bus, and the driver cannot talk to it any more.

    ``links_gbytes``: GB/s of each NVLink one way, None where it is inactive. ``ring_share``: what
    a ring gets of them; ``nvls_gain``: and more, where the NVSwitches reduce. ``pace``: what it
    really computes of what its kind does, whatever it says of itself.
    """

    root: str
    bridge: str
    pci: str
    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    lost: bool = False
    links_gbytes: tuple[float | None, ...] = (26.562,) * 18
    all_inactive: bool = False  # as newer drivers say instead of a list
    ring_share: float = 0.77
    nvls_gain: float = 1.3
    pace: float = 1.0
    pcie_gen: int | None = 5
    pcie_max_gen: int = 5
    pcie_width: int | None = 16
    load_percent: int = 0
    idle_reasons: int = 0
    ecc_errors: int | None = 0  # uncorrected, since the driver was loaded
    care: GpuCare = GOOD_CARE


@dataclass(frozen=True, slots=True)
class ModuleState:
    """A loaded kernel module and who uses it."""

    name: str
    size: int
    uses: int
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """A process of somebody's on the host's GPUs. ``hidden``: it runs in another container."""

    pid: int
    name: str
    uid: int
    mib: int
    hidden: bool = False


PEERMEM: Final = ModuleState("nvidia_peermem", 16384, 0)

MODULES: Final = (
    PEERMEM,
    ModuleState("nvidia", 56823808, 2890, ("nvidia_uvm", "nvidia_peermem", "nvidia_modeset")),
    ModuleState("ib_uverbs", 192512, 3, ("nvidia_peermem", "rdma_ucm", "mlx5_ib")),
    ModuleState(
        "ib_core",
        557056,
        9,
        (
            "rdma_cm",
            "ib_ipoib",
            "nvidia_peermem",
            "iw_cm",
            "ib_umad",
            "rdma_ucm",
            "ib_uverbs",
            "mlx5_ib",
            "ib_cm",
        ),
    ),
    ModuleState("mlx5_ib", 512000, 0),
    ModuleState("mlx5_core", 2441216, 1, ("mlx5_ib",)),
)
"""What a GPU host with RDMA has loaded, as far as commcheck looks."""


def without(modules: tuple[ModuleState, ...], name: str) -> tuple[ModuleState, ...]:
    """The modules once ``name`` is unloaded: it uses the others no more."""
    return tuple(
        replace(
            each,
            uses=each.uses - (name in each.users and each.name != "nvidia"),
            users=tuple(user for user in each.users if user != name),
        )
        for each in modules
        if each.name != name
    )


Reach = Literal["up", "down", "refuses-key", "other-key"]
"""How a host meets a visitor: it answers, nothing listens, our key is refused, another host key."""


@dataclass(frozen=True, slots=True)
class HostState:
    """A host. ``mlnx_tools``, ``ethtool``: versions. ``declared``: what the inventory says of it.

    ``running``: jobs on its GPUs. ``slow_to``: numbers of hosts to which the fabric's way is slow,
    though both ends are good.
    ``second``: how long it has been looked at, for what counts up. ``missing``: tools that are not
    installed. ``hanging`` and ``flooding``: beginnings of command lines that never end, or print
    100 MB.
    """

    name: str
    number: int
    nics: tuple[NicState, ...]
    gpus: tuple[GpuState, ...]
    modules: tuple[ModuleState, ...] = MODULES
    driver: str = "550.54.15"
    driver_open: bool = True
    kernel: str = "5.15.0-105-generic"
    product: str = "HGX H100"
    is_guest: bool = False
    mlnx_tools: tuple[int, int] = (5, 8)
    ethtool: tuple[int, int] = (6, 1)
    declared: tuple[tuple[str, object], ...] = (("commcheck_line_rate_gbits", LINE_RATE_GBITS),)
    reach: Reach = "up"
    second: int = 0
    running: tuple[Running, ...] = ()
    slow_to: frozenset[int] = frozenset()
    npus: tuple[NpuState, ...] = ()
    efas: tuple[EfaState, ...] = ()
    hccn_conf: bool = True  # of a host with NPUs: the file is there
    sudo: bool = True  # sudo -n runs anything as root
    system: System = GOOD_SYSTEM
    job: Job | None = GOOD_JOB
    upkeep: Upkeep = GOOD_UPKEEP
    missing: frozenset[str] = frozenset()
    hanging: tuple[str, ...] = ()
    flooding: tuple[str, ...] = ()

    @property
    def ports(self) -> tuple[NicState, ...]:
        """The physical ports of its NICs."""
        return tuple(port for nic in self.nics for port in nic.ports)

    def nic(self, index: int, change: Callable[[NicState], NicState]) -> HostState:
        """The host with one NIC changed."""
        nics = list(self.nics)
        nics[index] = change(nics[index])
        return replace(self, nics=tuple(nics))

    def every_nic(self, change: Callable[[NicState], NicState]) -> HostState:
        """The host with each NIC changed, as by one setting that went wrong everywhere."""
        return replace(self, nics=tuple(change(each) for each in self.nics))

    def npu(self, index: int, change: Callable[[NpuState], NpuState]) -> HostState:
        """The host with one NPU changed."""
        npus = list(self.npus)
        npus[index] = change(npus[index])
        return replace(self, npus=tuple(npus))

    def every_npu(self, change: Callable[[NpuState], NpuState]) -> HostState:
        """The host with each NPU changed."""
        return replace(self, npus=tuple(change(each) for each in self.npus))

    def every_efa(self, change: Callable[[EfaState], EfaState]) -> HostState:
        """The host with each EFA device changed."""
        return replace(self, efas=tuple(change(each) for each in self.efas))

    def gpu(self, index: int, change: Callable[[GpuState], GpuState]) -> HostState:
        """The host with one GPU changed."""
        gpus = list(self.gpus)
        gpus[index] = change(gpus[index])
        return replace(self, gpus=tuple(gpus))


# --- a healthy host -----------------------------------------------------------------------------

# Buses below which a PCIe switch carries one NIC and two GPUs.
_BUSES: Final = (0x15, 0x37, 0x59, 0x9D)


_GPUS_PER_RAIL: Final = 2


def healthy(number: int) -> HostState:
    """Host ``number`` (from 1) of the fleet, with nothing wrong: H100 and RoCE at 400 Gb/s."""
    nics, gpus = [], []
    for rail, bus in enumerate(_BUSES):
        root = f"pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{bus + 1:02x}:00.0"
        below = bus + 2
        nics.append(
            _nic(number, rail, root, f"0000:{below:02x}:00.0", f"0000:{below + 1:02x}:00.0")
        )
        for each in range(_GPUS_PER_RAIL):
            index = rail * _GPUS_PER_RAIL + each
            gpus.append(
                GpuState(
                    root,
                    f"0000:{below:02x}:{each + 1:02x}.0",
                    f"0000:{below + 2 + each:02x}:00.0",
                    f"GPU-{number:08x}-1111-2222-3333-44444444444{index}",
                )
            )
    return HostState(f"gpu-{number:02d}", number, tuple(nics), tuple(gpus))


def _nic(number: int, rail: int, root: str, bridge: str, pci: str) -> NicState:
    netdev = f"ens{rail + 1}np0"
    low = f"{0x1B40 + 4 * rail:04x}"
    host = f"{0xC200 + number % 256:04x}"
    addresses = (
        f"fe80:0000:0000:0000:a288:{host[:2]}ff:fe{host[2:]}:{low}",
        f"0000:0000:0000:0000:0000:ffff:0a{64 + rail:02x}:00{number:02x}",
    )
    return NicState(
        hca=f"mlx5_{rail}",
        netdev=netdev,
        root=root,
        bridge=bridge,
        pci=pci,
        guid=f"a088:{host}:005a:{low}",
        image_guid=f"a088:{host}:005a:{low}",
        gids=tuple(
            Gid(2 * at + version - 1, address, version, netdev)
            for at, address in enumerate(addresses)
            for version in (1, 2)
        ),
    )
