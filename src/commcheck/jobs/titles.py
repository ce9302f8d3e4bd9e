"""What the checks that load the fabric are called, launched or read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.model import Words

TITLES: Final[Mapping[str, Words]] = {
    "physical.collective-node": Words("Collective inside a host", "单机集合通信带宽"),
    "physical.collective-pairs": Words("Collective between two hosts", "两机集合通信带宽"),
    "physical.collective-rails": Words("Collective rail by rail", "逐轨集合通信带宽"),
    "physical.collective-fleet": Words("Collective over the fleet", "全体主机集合通信带宽"),
    "physical.npu-reach": Words("NPUs reach each other", "各 NPU 互通"),
    "physical.rail-reach": Words("Rails reach each other", "各轨互通"),
    "physical.rdma-pairs": Words("RDMA between two NICs", "两块网卡间 RDMA 带宽"),
}
