"""What the inventory may say that should be, shared by the checks that compare with it.

Each ``Key`` is a plain inventory variable. ``read`` refuses a value of the wrong type, and one
beyond what the hardware or the protocol can carry, with a ``ValueError`` that says what was
wanted. Values of INI inventories and of ``-e`` come as text, so ``"3"`` is as good as ``3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from commcheck.check import Key
from commcheck.lazy import regex

_HCA: Final = regex(r"[A-Za-z0-9_.-]{1,64}(?:/\d{1,3})?")


def whole(low: int, high: int, what: str) -> Callable[[object], int]:
    """A reader of whole numbers from ``low`` to ``high``; ``what`` says what the number is."""

    def read(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"wanted {what}, a whole number from {low} to {high}, not {value!r}")
        return value

    return read


def one_of(*words: str) -> Callable[[object], str]:
    """A reader of one word out of a few."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError(f"wanted one of {', '.join(words)}, not {value!r}")

    return read


def yes_or_no(value: object) -> bool:
    """A truth value; INI inventories have it as text."""
    words = {"true": True, "yes": True, "false": False, "no": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise ValueError(f"wanted true or false, not {value!r}")


def read_nics(value: object) -> tuple[str, ...]:
    """HCA names, ``mlx5_0`` or with a port ``mlx5_0/2``: a list, or one text with commas."""
    names = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise ValueError(f"wanted a list of HCA names like mlx5_0 or mlx5_0/2, not {value!r}")
    for name in names:
        if not isinstance(name, str) or not _HCA.fullmatch(name):
            raise ValueError(f"wanted an HCA name like mlx5_0 or mlx5_0/2, not {name!r}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"wanted each HCA once, but {', '.join(twice)} is there twice")
    return tuple(names)


def read_priorities(value: object) -> tuple[int, ...]:
    """Ethernet priorities: a list, one number, or one text with commas."""
    read = whole(0, 7, "Ethernet priorities")
    given = value.split(",") if isinstance(value, str) else value
    priorities = given if isinstance(given, list | tuple) else [given]
    return tuple(sorted({read(each) for each in priorities}))


def read_rdma_mtu(value: object) -> int:
    """An RDMA MTU: one of five sizes."""
    size = whole(256, 4096, "an RDMA MTU in bytes")(value)
    if size not in (256, 512, 1024, 2048, 4096):
        raise ValueError(f"wanted an RDMA MTU of 256, 512, 1024, 2048 or 4096, not {value!r}")
    return size


LINK_LAYER: Final = Key(
    name="commcheck_link_layer",
    read=one_of("Ethernet", "InfiniBand"),
    defaults={"gpu-roce": "Ethernet", "gpu-ib": "InfiniBand"},
    source="the platform's name says it",
    meaning="link layer of the training NICs",
)

# No default of 400: a 200G fleet is as healthy. Undeclared, a port is compared with its own best.
LINE_RATE_GBITS: Final[Key[int | None]] = Key(
    name="commcheck_line_rate_gbits",
    read=whole(1, 1600, "a line rate in Gb/s"),
    unit="Gb/s",
    meaning="line rate of each training NIC port; of a bond that of one port, not their sum",
)

MTU: Final = Key(
    name="commcheck_mtu",
    read=whole(1280, 10240, "an Ethernet MTU in bytes"),
    defaults={"gpu-roce": 4200},
    unit="bytes",
    source="the usual value just above 4192, the least for a RoCE MTU of 4096",
    meaning="MTU of the training netdevs; the switch ports carry at least as much",
)

RDMA_MTU: Final = Key(
    name="commcheck_rdma_mtu",
    read=read_rdma_mtu,
    defaults={"gpu-roce": 4096, "gpu-ib": 4096},
    unit="bytes",
    source="the largest MTU of the InfiniBand specification",
    meaning="largest RDMA packet's payload that the ports should agree on",
)

FLOW_CONTROL: Final = Key(
    name="commcheck_flow_control",
    read=one_of("pfc", "global", "none"),
    defaults={"gpu-roce": "pfc", "ascend": "pfc"},
    source="vendor RoCE guides",
    meaning="how the fabric avoids loss: PFC, global pause, or not at all (lossy RoCE)",
)

ROCE_PRIORITY: Final = Key(
    name="commcheck_roce_priority",
    read=whole(0, 7, "an Ethernet priority"),
    defaults={"gpu-roce": 3, "ascend": 4},
    source="NVIDIA and Broadcom RoCE guides use 3; HCCL_RDMA_SL of CANN defaults to 4",
    meaning="priority that carries RoCE and is lossless",
)

LOSSLESS_PRIORITIES: Final[Key[tuple[int, ...] | None]] = Key(
    name="commcheck_lossless_priorities",
    read=read_priorities,
    meaning="priorities that may be lossless; undeclared: the RoCE priority alone",
)

ROCE_DSCP: Final = Key(
    name="commcheck_roce_dscp",
    read=whole(0, 63, "a DSCP"),
    defaults={"gpu-roce": 26, "ascend": 33},
    source="NVIDIA and Broadcom RoCE guides use 26; HCCL_RDMA_TC of CANN defaults to 132",
    meaning="DSCP of RoCE packets: traffic class divided by 4",
)

TRUST: Final = Key(
    name="commcheck_trust",
    read=one_of("dscp", "pcp"),
    defaults={"gpu-roce": "dscp"},
    source="vendor RoCE guides",
    meaning="which mark of a packet decides its priority; pcp only with VLAN-tagged RoCE",
)

GID_FAMILY: Final = Key(
    name="commcheck_gid_family",
    read=one_of("ipv4", "ipv6"),
    defaults={"gpu-roce": "ipv4"},
    source="NCCL and perftest pick IPv4 RoCE v2 GIDs by default",
    meaning="address family of the fabric's RoCE v2 GIDs",
)

ADAPTIVE_ROUTING: Final = Key(
    name="commcheck_adaptive_routing",
    read=yes_or_no,
    defaults={"": False, "gpu-ib": True},
    source="most Ethernet fabrics keep the packets of a queue pair in order; NVIDIA's subnet "
    "manager turns adaptive routing on (InfiniBand Cluster Bring-up Procedure)",
    meaning="whether the fabric sprays the packets of a queue pair over many paths",
)

# No default of 8: a host of four GPUs is as healthy. Undeclared, PCI says how many there are.
GPU_COUNT: Final[Key[int | None]] = Key(
    name="commcheck_gpu_count",
    read=whole(1, 64, "a number of GPUs"),
    meaning="GPUs that the driver should list",
)

# No default of 8: an A3 has 16 chips. Undeclared, the driver's device files say how many there are.
NPU_COUNT: Final[Key[int | None]] = Key(
    name="commcheck_npu_count",
    read=whole(1, 64, "a number of NPUs"),
    meaning="NPUs (chips) that npu-smi should list",
)

# No default: whether the site encrypts is its own policy. Undeclared, all must be alike.
NPU_TLS: Final[Key[int | None]] = Key(
    name="commcheck_npu_tls",
    read=whole(0, 1, "0 (off) or 1 (on)"),
    meaning="TLS switch of the NPUs; undeclared: that of the fleet",
)

# No default: what the driver calls the default limit is compared with, and says so.
GPU_POWER_WATTS: Final[Key[int | None]] = Key(
    name="commcheck_gpu_power_watts",
    read=whole(50, 3000, "a power limit in watts"),
    unit="W",
    meaning="power limit of each GPU; undeclared: the driver's default of that GPU",
)

NVLINK_LINKS: Final[Key[int | None]] = Key(
    name="commcheck_nvlink_links",
    read=whole(0, 36, "a number of NVLinks"),
    meaning="active NVLinks of each GPU; undeclared: what its name says",
)

NICS: Final[Key[tuple[str, ...] | None]] = Key(
    name="commcheck_nics",
    read=read_nics,
    meaning="HCAs that carry training traffic; undeclared: those next to an accelerator",
)

# No default: instances of one type are sold with any number of them attached.
EFA_COUNT: Final[Key[int | None]] = Key(
    name="commcheck_efa_count",
    read=whole(1, 64, "a number of EFA devices"),
    meaning="EFA devices of the instance (p4d 4, p5 32, p5e 32, p5en 16 where all are attached)",
)

DCBX: Final = Key(
    name="commcheck_dcbx",
    read=one_of("os", "firmware", "lldpad"),
    defaults={"gpu-roce": "os"},
    source="vendor RoCE guides set PFC on the host by hand",
    meaning="who sets PFC on the host: static settings (os), the card's firmware, or lldpad",
)

# No default: both modes are sold, and the card tells which it is in.
BLUEFIELD_MODE: Final[Key[str | None]] = Key(
    name="commcheck_bluefield_mode",
    read=one_of("nic", "dpu"),
    meaning="mode of the BlueField cards; dpu: QoS is set, and looked at, on their Arm side",
)

# No default: NCCL 2.21 and newer picks the index itself, and a job may set it.
GID_INDEX: Final[Key[int | None]] = Key(
    name="commcheck_gid_index",
    read=whole(0, 255, "a GID index"),
    meaning="NCCL_IB_GID_INDEX of the jobs; undeclared: what /etc/nccl.conf says",
)


def read_pkey(value: object) -> int:
    """A partition key: ``0xffff`` as text, or a number."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,4}", value.strip()):
        value = int(value, 16)
    return whole(1, 0xFFFF, "a partition key like 0xffff")(value)


# No default of 0xffff: where tenants share a fabric, they are limited members of that partition.
PKEY: Final[Key[int | None]] = Key(
    name="commcheck_pkey",
    read=read_pkey,
    meaning="partition key of the training fabric; undeclared: any with full membership",
)


def read_leaf(value: object) -> tuple[tuple[str, str], ...]:
    """Switch of the host or of its rails: a name, a list in rail order, or rail to name.

    Returns (rail, switch) pairs; the rail is an HCA, a netdev, an index, or "" for all.
    """
    if isinstance(value, str) and value.strip():
        return (("", value.strip()),)
    pairs: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = list(enumerate(value))
    if not pairs or not all(isinstance(switch, str) and switch.strip() for _, switch in pairs):
        raise ValueError(
            f"wanted a switch, a list of switches in rail order, or rail: switch, not {value!r}"
        )
    return tuple((str(rail), str(switch).strip()) for rail, switch in pairs)


LEAF: Final[Key[tuple[tuple[str, str], ...] | None]] = Key(
    name="commcheck_leaf",
    read=read_leaf,
    meaning="leaf switch of the host, or of each rail",
)
