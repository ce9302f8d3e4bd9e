"""Every GPU's PCIe link has all its lanes, and under load its full generation.

Why: The NIC reaches the GPU, and the GPU its input, over PCIe. Half the lanes are half of that, and
the whole job waits for the one GPU.
Reads: ``nvidia-smi --query-gpu=pcie.link...``. One verdict for each host.
By hand: ``nvidia-smi -q | grep -A8 'GPU Link Info'``; ``lspci -vvv -s PCI | grep Lnk`` (root).
Mend: reseat GPU or riser, on a drained and powered off host; an SXM board is the vendor's.
Healthy though odd: an idle GPU lowers its generation to save power, so that is judged only while it
works; the width always. What is not told (``[N/A]``, virtual machines) is undecided.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, failed, limit, passed, reads, undecidable
from commcheck.formats.nvidia_pcie import FIELDS, NVIDIA_PCIE, PcieGpu
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The links of the GPUs."""

    gpus: tuple[PcieGpu, ...] = reads(NVIDIA_PCIE)


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a GPU counts as working."""

    busy_percent: int = limit(
        10, unit="percent", source="own choice: a GPU that works keeps its link awake"
    )


SHOW = Remedy(
    command=f"nvidia-smi --query-gpu={','.join(FIELDS)} --format=csv",
    effect=Words(
        "Shows width and generation of all GPUs; compare with a healthy host of this model.",
        "显示所有 GPU 的宽度与代次；与同型号健康主机对比。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESEAT = Remedy(
    command="",
    effect=Words(
        "Reseat GPU and riser, clean the contacts, look at the BIOS (bifurcation, forced "
        "generation); again: replace riser or GPU.",
        "重新插拔 GPU 与转接卡、清洁触点、检查 BIOS（拆分、强制代次）；复发则更换转接卡或 GPU。",
    ),
    precondition=Words("Host drained and powered off.", "主机已排空并断电。"),
    who="vendor",
)

LANES = Cause(
    slug="gpu-pcie-lanes-lost",
    title=Words("GPU lost PCIe lanes", "GPU 的 PCIe 通道丢失"),
    meaning=Words(
        "The GPU's link trained with fewer lanes than GPU and slot have: not seated, a riser, or a "
        "faulty board.",
        "GPU 链路训练的通道数少于其能力：未插牢、转接卡或基板故障。",
    ),
    remedies=(SHOW, RESEAT),
)
GENERATION = Cause(
    slug="gpu-pcie-generation-low",
    title=Words("GPU's PCIe generation is low", "GPU 的 PCIe 代次过低"),
    meaning=Words(
        "The GPU works and its link runs at an older generation than GPU and slot can do: signal "
        "quality, or a generation forced in the BIOS.",
        "GPU 正在工作但链路代次低于其能力：信号质量问题或 BIOS 强制代次。",
    ),
    remedies=(SHOW, RESEAT),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """Width always, generation of those that work."""
    gpus = seen.gpus
    measured = {
        "pcie_width": {f"gpu{gpu.index}": gpu.width for gpu in gpus},
        "pcie_generation": {f"gpu{gpu.index}": gpu.gen for gpu in gpus},
    }
    narrow = [gpu for gpu in gpus if gpu.width and gpu.max_width and gpu.width < gpu.max_width]
    if narrow:
        told = ", ".join(f"gpu{g.index} ({g.pci}) x{g.width}, want x{g.max_width}" for g in narrow)
        return failed(LANES, told, measured=measured)
    low = [gpu for gpu in gpus if gpu.gen and gpu.max_gen and gpu.gen < gpu.max_gen]
    working = [gpu for gpu in low if _works(gpu, limits)]
    if working:
        told = ", ".join(
            f"gpu{g.index} ({g.pci}) generation {g.gen} under load, want {g.max_gen}"
            for g in working
        )
        return failed(GENERATION, told, measured=measured)
    unknown = [gpu for gpu in gpus if not gpu.width or not gpu.max_width]
    if unknown:
        told = ", ".join(f"gpu{gpu.index}" for gpu in unknown)
        return undecidable(f"the driver does not tell the PCIe width of {told}")
    note = ""
    if low:
        asleep = ", ".join(f"gpu{gpu.index}" for gpu in low)
        note = f"; lower generation of {asleep} not judged: no load"
    return passed(f"{many(len(gpus), 'GPU')} with all their PCIe lanes{note}", measured=measured)


def _works(gpu: PcieGpu, limits: Limits) -> bool:
    """Only where load is told: an unknown one may be asleep."""
    if gpu.is_idle is not None:
        return not gpu.is_idle
    return gpu.load_percent is not None and gpu.load_percent >= limits.busy_percent


CHECK = Check(
    id="physical.gpu-pcie",
    title=Words("GPU PCIe links have all lanes", "GPU 的 PCIe 通道齐全"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(LANES, GENERATION),
    platforms=GPUS,
)
