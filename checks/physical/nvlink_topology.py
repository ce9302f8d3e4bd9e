"""Every pair of GPUs is joined by the same number of NVLinks.

Why: NCCL builds its rings over all GPUs of a host. One pair that has to go through the CPU instead
makes every ring as slow as PCIe.
Reads: ``nvidia-smi topo -m``. One verdict for each host.
By hand: ``nvidia-smi topo -m``: NV18 (H100, H200, B200), NV12 (A100), NV8 (A800, H800) between all
GPUs.
Mend: fabric manager first, then a reset of the GPUs, both with no job on the host; the same pair
again: GPU or NVSwitch, the vendor.
Healthy though odd: PCIe cards have no NVLink, and bridged ones (A30, A100 PCIe, H100 NVL) only
within a pair. V100 and P100 boards are wired as a cube. GPUs in MIG mode have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from commcheck.check import Check, Nothing, failed, not_applicable, passed, reads
from commcheck.formats.nvidia_nvlink import BRIDGED
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.formats.nvidia_topo import NVIDIA_TOPO, NvidiaTopo
from commcheck.lazy import dataclass, regex
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The matrix, and the GPUs' names."""

    topo: NvidiaTopo = reads(NVIDIA_TOPO)
    listed: GpuList = reads(NVIDIA_SMI_LIST)


CUBE: Final = regex(r"[VP]100\b")
"""Boards on which not every GPU is next to every other: V100 and P100."""

LOOK = Remedy(
    command="nvidia-smi nvlink -s",
    effect=Words(
        "Shows the links of each GPU: those of the pair are inactive on one side or on both. Then "
        "dmesg for Xid 74 and SXid.",
        "查看每个 GPU 的链路：一侧或两侧不活动。再查看 dmesg 中的 Xid 74 与 SXid。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESTART = Remedy(
    command="systemctl restart nvidia-fabricmanager",
    effect=Words(
        "Trains the NVLinks anew: kills every job on the host. Afterwards nvidia-smi -r, or a "
        "reboot.",
        "重新训练 NVLink：会中断主机上的所有作业。之后执行 nvidia-smi -r 或重启。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows; no process holds a GPU.",
        "主机已排空并通知调度器；没有进程占用 GPU。",
    ),
)

PAIR_LOST = Cause(
    slug="nvlink-pair-lost",
    title=Words("GPUs are not joined by NVLink", "部分 GPU 之间没有 NVLink"),
    meaning=Words(
        "Most pairs of this host are joined by NVLink and some are not, or by fewer links.",
        "本机多数 GPU 对由 NVLink 连接，少数没有或链路更少。",
    ),
    remedies=(LOOK, RESTART),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """What most pairs have is right; a pair is named once."""
    names = " ".join(gpu.name for gpu in seen.listed.gpus)
    if seen.listed.has_mig:
        return not_applicable("MIG mode: NVLink is off")
    if BRIDGED.search(names) or CUBE.search(names):
        return not_applicable("these cards are not all joined to each other by design")
    gpus = seen.topo.gpus
    order = {gpu: at for at, gpu in enumerate(gpus)}
    pairs = {
        (gpu, other): word
        for gpu, other, word in seen.topo.links
        if other in order and order[gpu] < order[other]
    }
    words = Counter(pairs.values())
    if len(gpus) < 2 or not any(word.startswith("NV") for word in words):
        return not_applicable("no NVLink between the GPUs of this host")
    most, number = max(words.items(), key=lambda each: (each[1], each[0]))
    if number == len(pairs):
        return passed(f"{len(pairs)} pairs of {len(gpus)} GPUs, each {most}")
    links = {word: int(word[2:]) if word.startswith("NV") else 0 for word in words}
    best = max(words, key=lambda word: links[word])
    lost = [pair for pair, word in pairs.items() if word != best]
    odd = [f"{one}-{other} {pairs[one, other]}" for one, other in lost]
    shown = ", ".join(odd[:8]) + (f" and {len(odd) - 8} more" if len(odd) > 8 else "")
    reason = f"{len(odd)} of {len(pairs)} pairs of GPUs are not {best}: {shown}{_alone(lost, gpus)}"
    return failed(PAIR_LOST, reason, measured={"pairs": dict(words)})


def _alone(lost: Sequence[tuple[str, str]], gpus: Sequence[str]) -> str:
    """The GPU that is joined to no other as it should be: then it is that one's fault."""
    often = Counter(gpu for pair in lost for gpu in pair)
    found = [gpu for gpu, times in often.items() if times == len(gpus) - 1]
    alone = len(gpus) > 2 and len(found) == 1 and often[found[0]] == len(lost)
    return f"; all of them are {found[0]}'s" if alone else ""


CHECK = Check(
    id="physical.nvlink-topology",
    title=Words("All GPUs are joined by NVLink alike", "GPU 之间 NVLink 连接一致"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver", "physical.nvlink-active"),
    causes=(PAIR_LOST,),
    platforms=GPUS,
)
