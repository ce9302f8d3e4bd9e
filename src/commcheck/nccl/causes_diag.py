"""What NCCL's own diagnostics can show."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import DRAINED, step

DIAG_P2P: Final = Cause(
    slug="nccl-diag-p2p",
    title=Words("GPU pairs failed NCCL's own test", "GPU 对未通过 NCCL 自检"),
    meaning=Words(
        "A mismatch means wrong data over NVLink or PCIe; a failed import points to containers or "
        "IMEX.",
        "数据不一致说明 NVLink 或 PCIe 传输出错；导入失败多与容器或 IMEX 有关。",
    ),
    remedies=(
        step("Are the links up?", "检查链路。", "nvidia-smi nvlink --status"),
        step(
            "Drain the host and have it tested.", "排空主机并送检。", before=DRAINED, who="vendor"
        ),
    ),
)
DIAG_NIC: Final = Cause(
    slug="nccl-diag-nic",
    title=Words("NICs are slow in NCCL's own test", "网卡在 NCCL 自检中偏慢"),
    meaning=Words(
        "A pair of NICs reached far less than the others or than the line rate, or nothing.",
        "某对网卡远低于其他网卡或线速，或完全不通。",
    ),
    remedies=(
        step(
            "Counters and link of the device named.",
            "查看所列设备的计数器与链路。",
            "rdma link show",
        ),
    ),
)
DIAG_GPU: Final = Cause(
    slug="nccl-diag-gpu",
    title=Words("GPU trouble in NCCL's own report", "NCCL 自检报告 GPU 异常"),
    meaning=Words(
        "Uncorrected memory errors, inactive NVLinks, Xid events, or GPUs and drivers that differ.",
        "不可纠正的显存错误、NVLink 未激活、Xid 事件，或 GPU/驱动不一致。",
    ),
    remedies=(
        step("Shows the counters.", "查看计数器。", "nvidia-smi -q -d ECC"),
        step(
            "Drain the host; reset the GPU or replace it.",
            "排空主机，复位或更换 GPU。",
            before=DRAINED,
            who="vendor",
        ),
    ),
)
DIAG_PCI: Final = Cause(
    slug="nccl-diag-pci",
    title=Words("PCIe settings in NCCL's own report", "NCCL 自检报告 PCIe 设置问题"),
    meaning=Words(
        "ACS, IOMMU or ATS is set in a way that slows or breaks GPU Direct.",
        "ACS、IOMMU 或 ATS 的设置会拖慢或破坏 GPU Direct。",
    ),
    remedies=(step("Shows the bits.", "查看相关位。", "lspci -vvv"),),
)
