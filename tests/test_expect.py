"""What the inventory may say, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from commcheck import expect
from commcheck.check import Key
from commcheck.model import Host, Origin

KEYS = [value for value in vars(expect).values() if isinstance(value, Key)]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_key_is_named_explained_and_its_defaults_are_valid(key: Key[Any]) -> None:
    assert key.name.startswith("commcheck_")
    assert key.meaning
    assert bool(key.source) is bool(key.defaults)
    for platform, value in key.defaults.items():
        assert key.read(value) == value
        assert key.on(Host("gpu-01"), platform).value == value


@pytest.mark.parametrize(
    ("key", "given", "read"),
    [
        (expect.MTU, 9000, 9000),
        (expect.MTU, " 4200 ", 4200),
        (expect.ROCE_PRIORITY, 0, 0),
        (expect.ROCE_DSCP, "26", 26),
        (expect.TRUST, "pcp", "pcp"),
        (expect.FLOW_CONTROL, "none", "none"),
        (expect.GID_FAMILY, "ipv6", "ipv6"),
        (expect.GPU_COUNT, 4, 4),
        (expect.NICS, ["mlx5_0", "mlx5_bond_0/2"], ("mlx5_0", "mlx5_bond_0/2")),
        (expect.NICS, "mlx5_0, rocep129s0f0np0", ("mlx5_0", "rocep129s0f0np0")),
        (expect.NICS, [], ()),
        (expect.LINK_LAYER, "InfiniBand", "InfiniBand"),
        (expect.LINE_RATE_GBITS, "400", 400),
        (expect.RDMA_MTU, 2048, 2048),
        (expect.LOSSLESS_PRIORITIES, [5, 3], (3, 5)),
        (expect.LOSSLESS_PRIORITIES, "3, 5", (3, 5)),
        (expect.LOSSLESS_PRIORITIES, 3, (3,)),
        (expect.LOSSLESS_PRIORITIES, [], ()),
        (expect.NVLINK_LINKS, 18, 18),
    ],
)
def test_reads(key: Key[Any], given: object, read: object) -> None:
    assert key.read(given) == read


@pytest.mark.parametrize(
    ("key", "given", "wanted"),
    [
        (expect.MTU, 90000, "from 1280 to 10240"),
        (expect.MTU, 9000.0, "whole number"),
        (expect.MTU, "9k", "whole number"),
        (expect.ROCE_PRIORITY, True, "Ethernet priority"),
        (expect.ROCE_PRIORITY, 8, "from 0 to 7"),
        (expect.ROCE_DSCP, 106, "from 0 to 63"),
        (expect.TRUST, "DSCP", "one of dscp, pcp"),
        (expect.FLOW_CONTROL, False, "one of pfc, global, none"),
        (expect.GPU_COUNT, 0, "number of GPUs"),
        (expect.NICS, "mlx5_0;reboot", "HCA name"),
        (expect.NICS, ["mlx5_0", 1], "HCA name"),
        (expect.NICS, ["mlx5_0", "mlx5_0"], "twice"),
        (expect.NICS, 8, "list of HCA names"),
        (expect.LINK_LAYER, "ethernet", "one of Ethernet, InfiniBand"),
        (expect.LINE_RATE_GBITS, 400_000, "line rate in Gb/s"),
        (expect.RDMA_MTU, 3000, "256, 512, 1024, 2048 or 4096"),
        (expect.RDMA_MTU, 9000, "RDMA MTU in bytes"),
        (expect.LOSSLESS_PRIORITIES, [3, 8], "from 0 to 7"),
        (expect.LOSSLESS_PRIORITIES, {"3": True}, "Ethernet priorities"),
        (expect.NVLINK_LINKS, 100, "number of NVLinks"),
    ],
)
def test_refuses_with_what_was_wanted(key: Key[Any], given: object, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        key.read(given)


def test_the_inventory_beats_the_default_and_says_where() -> None:
    host = Host("gpu-01", {"commcheck_mtu": 9000}, {"commcheck_mtu": Origin("prod.yaml:7")})
    wanted = expect.MTU.on(host, "gpu-roce")
    assert (wanted.value, str(wanted.origin)) == (9000, "prod.yaml:7")
    assert expect.GPU_COUNT.on(host, "gpu-roce").value is None
