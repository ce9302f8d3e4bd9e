"""On NVSwitch systems the fabric manager has done its work, and the NVLink fabric is healthy.

Why: It trains the NVLinks of the NVSwitches and registers each GPU with the fabric. Without it
every CUDA program fails at its start (error 802, system not yet initialized), or NVLink is gone.
A GPU may be registered and yet have lost bandwidth, its route or its partition (GB200 NVL72).
Reads: ``nvidia-smi --query-gpu=fabric.state,fabric.status`` (drivers from 535 on, H100 and newer:
it decides), the health in ``nvidia-smi -q`` (younger drivers), ``systemctl is-active
nvidia-fabricmanager``, ``nv-fabricmanager --version``, the NVSwitches in
``/proc/driver/nvidia-nvswitch``, ``nvidia-smi -L``, ``nvidia-smi topo -m``. One verdict for each
host.
By hand: ``nvidia-smi -q | grep -A11 Fabric``: Completed, Success, Healthy; ``systemctl status
nvidia-fabricmanager``; ``journalctl -u nvidia-fabricmanager``.
Mend: install the fabric manager of exactly the driver's release and restart it, with no job on the
host; then reset the GPUs or reboot. On HGX B200 and B300 look at the NVLink subnet manager (nvlsm)
too.
Healthy though odd: the unit is stopped where the daemon runs in the driver's container, on the
NVLink switch trays (GB200 NVL72) or in the hypervisor: where the fabric says Completed and Success
that is a warning at most, and none where the unit is not installed. Systems without NVSwitch need
no fabric manager. Boards of four GB200 alone (NVL4) have no fabric: there each GPU shares its links
among the three others (NV6), where a rack has all of them (NV18) to its switches.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.fabric_manager import FABRIC_MANAGER_VERSION, NVSWITCHES
from commcheck.formats.nvidia_fabric import NVIDIA_FABRIC, FabricGpu
from commcheck.formats.nvidia_fabric_health import NVIDIA_FABRIC_HEALTH, FabricHealth
from commcheck.formats.nvidia_smi_list import NVIDIA_SMI_LIST, GpuList
from commcheck.formats.nvidia_topo import NVIDIA_TOPO, NvidiaTopo
from commcheck.formats.nvidia_version import NVIDIA_VERSION, NvidiaVersion
from commcheck.formats.systemctl import FABRIC_MANAGER_UNIT
from commcheck.lazy import dataclass, regex
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The fabric's word, the unit's, both releases, switches on PCI, the GPUs' names and links."""

    fabric: tuple[FabricGpu, ...] | Unread = tries(NVIDIA_FABRIC)
    health: tuple[FabricHealth, ...] | Unread = tries(NVIDIA_FABRIC_HEALTH)
    unit: str | Unread = tries(FABRIC_MANAGER_UNIT)
    version: str | Unread = tries(FABRIC_MANAGER_VERSION)
    driver: NvidiaVersion | Unread = tries(NVIDIA_VERSION)
    switches: tuple[str, ...] | Unread = tries(NVSWITCHES)
    listed: GpuList | Unread = tries(NVIDIA_SMI_LIST)
    topo: NvidiaTopo | Unread = tries(NVIDIA_TOPO)


DONE: Final = "Completed"
SUCCESS: Final = "Success"
HEALTHY: Final = {
    "Summary": "Healthy",
    "Bandwidth": "Full",
    "Route Recovery in progress": "False",
    "Route Unhealthy": "False",
    "Access Timeout Recovery": "False",
    "Incorrect Configuration": "None",
}
"""What a healthy GPU says, as far as it is told. Source: nvidia-smi manual, Fabric, Health."""
PASSING: Final = frozenset({"Summary", "Route Recovery in progress", "Access Timeout Recovery"})
"""What may be wrong while the fabric mends itself."""

RACK: Final = regex(r"\bGB\d{3}\b")
"""GPUs whose NVSwitches are in trays of the rack, so that a host never has them on PCI."""
MESHED: Final = regex(r"NV[1-9]")
"""A pair joined by some of a GPU's 18 links only: there is no switch between them."""

LOOK = Remedy(
    command="journalctl -u nvidia-fabricmanager -b",
    effect=Words(
        "Shows why it does not run: mostly another release than the driver, or an NVSwitch fault.",
        "查看未运行的原因：多为版本与驱动不符，或 NVSwitch 故障。",
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
        "The host is drained and the scheduler knows; the installed release is the driver's.",
        "主机已排空并通知调度器；已安装版本与驱动一致。",
    ),
)

SHOW = Remedy(
    command="nvidia-smi -q",
    effect=Words(
        "Shows Fabric, Health of each GPU. Then nvidia-smi nvlink -s, dmesg for Xid, and on NVL72 "
        "the links and partitions of its switch trays.",
        "查看各 GPU 的 Fabric、Health。再执行 nvidia-smi nvlink -s、查看 dmesg 中的 Xid；"
        "NVL72 还应查看交换托盘的链路与分区。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
RESET = Remedy(
    command="nvidia-smi --gpu-reset",
    effect=Words(
        "Registers all GPUs of the host anew: what runs on them ends. The same GPU again: a link, "
        "a switch or the GPU is faulty, ask the vendor.",
        "重新注册本机所有 GPU：其上的任务会终止。同一 GPU 复发：链路、交换机或 GPU 故障，"
        "联系厂商。",
    ),
    precondition=Words(
        "Links and partitions are right at the switches; the host is drained, no process holds a "
        "GPU.",
        "交换机侧链路与分区无误；主机已排空，没有进程占用 GPU。",
    ),
)

NOT_RUNNING = Cause(
    slug="fabric-manager-not-running",
    title=Words("Fabric manager is not running", "fabric manager 未运行"),
    meaning=Words(
        "The host has NVSwitches and nothing that sets them up: CUDA programs fail at their start.",
        "主机带 NVSwitch 但无人初始化：CUDA 程序在启动时失败。",
    ),
    remedies=(LOOK, RESTART),
)
NOT_DONE = Cause(
    slug="nvlink-fabric-not-ready",
    title=Words("NVLink fabric is not ready", "NVLink 网络未就绪"),
    meaning=Words(
        "GPUs are not registered with the NVLink fabric, or with an error: jobs cannot use NVLink.",
        "GPU 未注册到 NVLink 网络，或注册出错：作业无法使用 NVLink。",
    ),
    remedies=(LOOK, RESTART),
)
UNHEALTHY = Cause(
    slug="nvlink-fabric-unhealthy",
    title=Words("NVLink fabric is not healthy", "NVLink 网络不健康"),
    meaning=Words(
        "A GPU is registered, and its driver says that bandwidth, route or configuration are not "
        "right: collectives over NVLink are slow there, or fail.",
        "GPU 已注册，但驱动报告带宽、路由或配置异常：经 NVLink 的集合通信变慢或失败。",
    ),
    remedies=(SHOW, RESET),
)
RECOVERING = Cause(
    slug="nvlink-fabric-recovering",
    title=Words("NVLink fabric is recovering", "NVLink 网络正在恢复"),
    meaning=Words(
        "A route was lost or an access timed out a moment ago, and the fabric mends it: look again "
        "in a minute.",
        "刚发生路由丢失或访问超时，网络正在恢复：请一分钟后再看。",
    ),
    remedies=(SHOW,),
)
UNTOLD = Cause(
    slug="nvlink-fabric-untold",
    title=Words("GPUs tell of no NVLink fabric", "GPU 未报告 NVLink 网络"),
    meaning=Words(
        "All links may be trained and yet a GPU is not registered: NVLink does not reach other "
        "hosts, nor perhaps the GPU beside.",
        "链路可能均已训练，但 GPU 未注册到网络：NVLink 无法到达其他主机，甚至本机其他 GPU。",
    ),
    remedies=(SHOW,),
)
STOPPED = Cause(
    slug="fabric-manager-stopped",
    title=Words("Fabric manager has stopped", "fabric manager 已停止"),
    meaning=Words(
        "The fabric was set up and its manager has failed since: a fault of NVLink is not handled "
        "any more.",
        "网络已初始化但管理进程已失败：之后的 NVLink 故障将无人处理。",
    ),
    remedies=(LOOK, RESTART),
)
OTHER_RELEASE = Cause(
    slug="fabric-manager-version",
    title=Words("Fabric manager is of another release", "fabric manager 与驱动版本不一致"),
    meaning=Words(
        "It must be the driver's release: the next start of it will be refused.",
        "必须与驱动版本一致：下次启动会被拒绝。",
    ),
    remedies=(LOOK, RESTART),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """The fabric's own word decides; where it says nothing, the unit does."""
    unit = "unread" if isinstance(seen.unit, Unread) else seen.unit
    states = () if isinstance(seen.fabric, Unread) else seen.fabric
    told = [gpu for gpu in states if gpu.state is not None]
    measured: dict[str, object] = {
        "fabric": {f"gpu{gpu.index}": f"{gpu.state} {gpu.status or ''}".strip() for gpu in told},
        "fabric_manager": unit,
    }
    if not told and _is_of_a_rack(seen) and not machine.in_vm:
        # Source: https://github.com/leptonai/gpud/pull/1108
        reason = f"none of {len(states)} GPUs tells of an NVLink fabric; of NVL72 each should"
        return warned(UNTOLD, reason, measured=measured)
    if not told:
        return _by_unit(seen, unit, machine, measured)
    wrong = [gpu for gpu in told if gpu.state != DONE or gpu.status not in (SUCCESS, None)]
    if wrong:
        named = ", ".join(f"gpu{g.index} {g.state}, {g.status or 'no status'}" for g in wrong)
        reason = f"NVLink fabric: {named}; want {DONE}, {SUCCESS}; fabric manager {unit}"
        return failed(NOT_DONE, reason, measured=measured)
    if untold := [gpu for gpu in told if gpu.status is None]:
        named = ", ".join(f"gpu{gpu.index}" for gpu in untold)
        return undecidable(f"NVLink fabric is completed, but not how it ended on {named}")
    if left_out := _left_out(seen, {gpu.index for gpu in told}):
        named = ", ".join(f"gpu{index}" for index in left_out)
        reason = f"NVLink fabric completed on {many(len(told), 'GPU')}, and {named} tells of none"
        return warned(UNTOLD, reason, measured=measured)
    health = () if isinstance(seen.health, Unread) else seen.health
    if ill := {f"gpu{gpu.index}": said for gpu in health if (said := _ill(gpu))}:
        measured["fabric_health"] = ill
        lasts = any(key not in PASSING for said in ill.values() for key in said)
        # A summary alone does not say that it passes.
        lasts = lasts or any(said.keys() == {"Summary"} for said in ill.values())
        named = ", ".join(
            f"{gpu} {'; '.join(f'{key}: {word}' for key, word in said.items())}"
            for gpu, said in ill.items()
        )
        say = failed if lasts else warned
        return say(UNHEALTHY if lasts else RECOVERING, f"NVLink fabric: {named}", measured=measured)
    well = ", all healthy" if health and all(gpu.told for gpu in health) else ""
    reason = f"NVLink fabric completed on {many(len(told), 'GPU')}{well}"
    if unit == "failed":
        return warned(STOPPED, f"{reason}, but the unit failed since", measured=measured)
    return _by_release(seen, unit, f"{reason}, fabric manager {unit}", measured)


def _ill(gpu: FabricHealth) -> dict[str, str]:
    return {key: word for key, word in gpu.told if HEALTHY.get(key, word) != word}


def _left_out(seen: Seen, told: set[int]) -> list[int]:
    """GPUs without a state, of a model that has one here. With MIG they may have left NVLink."""
    if isinstance(seen.listed, Unread) or seen.listed.has_mig:
        return []
    names = {gpu.name for gpu in seen.listed.gpus if gpu.index in told}
    return [g.index for g in seen.listed.gpus if g.name in names and g.index not in told]


def _is_of_a_rack(seen: Seen) -> bool:
    """Where the driver was asked at all, and has more than one such GPU: one alone needs none."""
    if isinstance(seen.fabric, Unread) or isinstance(seen.listed, Unread):
        return False
    words = [] if isinstance(seen.topo, Unread) else [word for *_, word in seen.topo.links]
    is_board = any(MESHED.fullmatch(word) for word in words)
    of_rack = all(RACK.search(gpu.name) for gpu in seen.listed.gpus)
    return len(seen.fabric) > 1 and of_rack and not is_board


def _by_unit(seen: Seen, unit: str, machine: Machine, measured: dict[str, object]) -> Verdict:
    """Where the driver tells nothing of a fabric: A100, older drivers, hosts without NVSwitch."""
    switches = () if isinstance(seen.switches, Unread) else seen.switches
    if unit == "active":
        return _by_release(seen, unit, "the fabric manager runs", measured)
    if not switches:
        if unit == "unread" and isinstance(seen.switches, Unread):
            return undecidable("neither the fabric nor the unit nor the NVSwitches could be read")
        return not_applicable("the driver has no NVSwitch on this host, and tells of no fabric")
    if machine.in_vm or machine.in_container or isinstance(seen.unit, Unread):
        return undecidable(
            f"{len(switches)} NVSwitches, and who manages them cannot be seen from here",
            turn_on="read it where the fabric manager runs",
        )
    reason = f"{len(switches)} NVSwitches and the fabric manager is {unit}, want it active"
    return failed(NOT_RUNNING, reason, measured=measured)


def _by_release(seen: Seen, unit: str, reason: str, measured: dict[str, object]) -> Verdict:
    """A manager that runs is of the driver's release."""
    if isinstance(seen.version, Unread) or isinstance(seen.driver, Unread):
        return passed(reason, measured=measured)
    if unit == "active" and seen.version != seen.driver.version:
        reason = f"fabric manager {seen.version}, driver {seen.driver.version}: want them equal"
        return warned(OTHER_RELEASE, reason, measured=measured)
    return passed(reason, measured=measured)


CHECK = Check(
    id="physical.fabric-manager",
    title=Words("Fabric manager and NVLink fabric", "fabric manager 与 NVLink 网络"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(NOT_RUNNING, NOT_DONE, UNHEALTHY, RECOVERING, UNTOLD, STOPPED, OTHER_RELEASE),
    platforms=GPUS,
)
