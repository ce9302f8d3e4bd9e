"""The NIC can reach GPU memory directly (GPUDirect RDMA).

Why: Without it NCCL copies everything through host memory: bandwidth between hosts halves and the
CPU's memory bus fills up. Nothing fails, the job is only slow.
Reads: ``lsmod``, or ``/proc/modules`` where that is not installed; ``/proc/driver/nvidia/version``
and the kernel's release. One verdict for each host.
By hand: ``lsmod | grep peer``; ``cat /proc/driver/nvidia/version`` (does it say "Open Kernel
Module"?); ``uname -r``; in NCCL's log: ``GDRDMA`` behind the channels.
Mend: load the module. ``Invalid argument``: the driver was built before the RDMA stack came:
rebuild it with dkms, reboot. Then have it loaded at boot.
Healthy though odd: the old name ``nv_peer_mem`` is as good. Without either, DMA-BUF does the same
where the kernel is 5.12 or newer, the GPU's kernel modules are the open ones and NCCL is 2.13 or
newer; the library is not looked at here.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Check, Nothing, Unread, failed, passed, reads, tries, undecidable
from commcheck.formats.kernel_modules import KERNEL_MODULES, PEER_MODULES
from commcheck.formats.nvidia_version import NVIDIA_VERSION, NvidiaVersion
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """Loaded modules, and the flavour of the GPU's own."""

    modules: frozenset[str] = reads(KERNEL_MODULES)
    driver: NvidiaVersion | Unread = tries(NVIDIA_VERSION)


DMABUF_KERNEL: Final = (5, 12)
"""The first kernel with DMA-BUF for RDMA (ib_umem_dmabuf)."""

LOAD = Remedy(
    command="modprobe nvidia-peermem",
    effect=Words(
        "Loads the module; jobs that start afterwards use it. Put it into /etc/modules-load.d for "
        "the next boot.",
        "加载模块；之后启动的作业即可使用。写入 /etc/modules-load.d 以便下次开机加载。",
    ),
    precondition=Words(
        "The RDMA stack is loaded. A driver that the GPU operator's container loads is set there "
        "(driver.rdma.enabled).",
        "RDMA 协议栈已加载。若驱动由 GPU Operator 容器加载，在其中设置（driver.rdma.enabled）。",
    ),
)
REBUILD = Remedy(
    command="dkms status",
    effect=Words(
        "Shows the driver's builds. Where modprobe says Invalid argument: build the driver again, "
        "with the RDMA stack installed, and reboot; the open kernel modules also give DMA-BUF.",
        "显示驱动编译状态。若 modprobe 报 Invalid argument：安装 RDMA 协议栈后重新编译驱动并重启；"
        "开源内核模块还可提供 DMA-BUF。",
    ),
    precondition=Words(
        "The host is drained before the reboot.",
        "重启前主机已排空。",
    ),
)

NEITHER = Cause(
    slug="gpudirect-unavailable",
    title=Words("No GPUDirect RDMA", "GPUDirect RDMA 不可用"),
    meaning=Words(
        "No peer memory module is loaded and DMA-BUF is not possible here: NCCL bounces through "
        "host memory. Usually lost at a driver upgrade.",
        "未加载 peermem 模块，也无法使用 DMA-BUF：NCCL 经主机内存中转。通常在驱动升级后丢失。",
    ),
    remedies=(LOAD, REBUILD),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """A peer memory module, else what DMA-BUF needs."""
    loaded = [name for name in PEER_MODULES if name in seen.modules]
    if loaded:
        return passed(f"{loaded[0]} is loaded", measured={"gpudirect": loaded[0]})
    missing = "nvidia_peermem is not loaded"
    if isinstance(seen.driver, Unread):
        return undecidable(
            f"{missing}, and nothing tells whether DMA-BUF is possible: {seen.driver.reason}"
        )
    version = f"driver {seen.driver.version}"
    if not seen.driver.is_open:
        return failed(NEITHER, f"{missing}, and {version} has not the open modules for DMA-BUF")
    release = re.search(r"(\d+)\.(\d+)", machine.kernel)
    if release is None:
        return undecidable(f"{missing}, and the kernel's release is not known for DMA-BUF")
    if (int(release[1]), int(release[2])) < DMABUF_KERNEL:
        wanted = ".".join(map(str, DMABUF_KERNEL))
        return failed(
            NEITHER, f"{missing}, and DMA-BUF wants kernel {wanted}, not {machine.kernel}"
        )
    return passed(
        f"{missing}, but DMA-BUF is possible ({version}, open modules, {machine.kernel}) with NCCL "
        "2.13 or newer",
        measured={"gpudirect": "dma-buf"},
    )


CHECK = Check(
    id="physical.gpudirect",
    title=Words("NIC reaches GPU memory directly", "网卡可直接访问 GPU 显存"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(NEITHER,),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
)
