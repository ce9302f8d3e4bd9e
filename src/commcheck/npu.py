"""What the checks of NPU ports share: whom they ask, and what their remedies cost."""

from __future__ import annotations

from typing import Final

from commcheck.check import Unread
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import NpuLink
from commcheck.model import Accelerator, Remedy, Words

ASCEND: Final = frozenset({"ascend"})


def npus_only(accelerator: Accelerator) -> str | None:
    """A host may hold other accelerators, too."""
    return None if accelerator.vendor == "ascend" else f"{accelerator.label} is no NPU"


def unused(links: PerNpu[NpuLink] | Unread, npu: Accelerator) -> str | None:
    """Why nothing of the port is judged: its link is down, and HCCS does the work (A3)."""
    link = None if isinstance(links, Unread) else dict(links.values).get(npu.index)
    if link is None or link.is_up or link.hccs_loss_percent != 0:
        return None
    return f"{npu.label} uses HCCS, its RoCE link is down"


READS: Final = Words("None, it only reads.", "无，只读。")
DRAINED: Final = Words(
    "Host drained: jobs on this NPU fail meanwhile.", "主机已排空：期间该 NPU 上的作业会失败。"
)
SWITCH_FIRST: Final = Words(
    "Host drained, and the switch port has the same setting already.",
    "主机已排空，且交换机端口已采用相同配置。",
)
CLEAN: Final = Remedy(
    command="hccn_tool -i {npu} -optical -g",
    effect=Words(
        "Shows the light of each lane (root). Then clean both ends of the fibre, replace fibre and "
        "module, one at a time.",
        "显示各通道光功率（需 root）。随后清洁光纤两端，再逐件更换光纤与光模块。",
    ),
    precondition=Words(
        "Reading is free; unplugging drops the link: host drained.",
        "读取无影响；拔插会断链：主机需已排空。",
    ),
)
RECOVER: Final = Remedy(
    command="hccn_tool -a -cfg recovery",
    effect=Words(
        "Gives every NPU of the host the settings of /etc/hccn.conf again; cuts running jobs.",
        "按 /etc/hccn.conf 恢复本机所有 NPU 的配置；会中断运行中的作业。",
    ),
    precondition=Words("Host drained, and the file is right.", "主机已排空，且该文件内容正确。"),
)


def named(npus: list[int]) -> str:
    """``npu0, npu3``."""
    return ", ".join(f"npu{npu}" for npu in npus)
