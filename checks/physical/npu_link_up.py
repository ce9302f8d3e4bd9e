"""The RoCE port of the NPU has a link.

Why: Each NPU has a port of its own. Where one is down HCCL cannot connect its rank to other hosts:
the job ends at its start with EI0006, a timeout of a socket.
Reads: ``hccn_tool -i N -link -g``; where it is down the module, and whether HCCS reaches another
NPU. One verdict for each NPU.
By hand: ``hccn_tool -i N -link -g`` (root; N is the physical chip id); ``hccn_tool -i N -lldp -g``.
Mend: look at the module and the fibre, then at the switch port. ``-link -s up`` starts it again.
On the switch: a 400GE port for two NPUs has to be split into two of 200GE.
Healthy though odd: hosts of an A3 superpod talk over HCCS, and their RoCE ports may be unused: a
link that is down while a ping over HCCS comes back is a warning.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Unread, failed, passed, reads, tries, warned
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_history import LLDP, NpuNeighbour
from commcheck.formats.hccn_optical import OPTICAL, NpuOptical
from commcheck.formats.hccn_port import LINK, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Words
from commcheck.npu import ASCEND, CLEAN, DRAINED, READS, npus_only


@dataclass(frozen=True, slots=True)
class Seen:
    """The links, and what may say why one is down."""

    link: PerNpu[NpuLink] = reads(LINK)
    optical: PerNpu[NpuOptical] | Unread = tries(OPTICAL)
    lldp: PerNpu[NpuNeighbour | None] | Unread = tries(LLDP)


UP = Remedy(
    command="hccn_tool -i {npu} -link -s up",
    effect=Words("Starts the link again.", "重新启用链路。"),
    precondition=DRAINED,
)
SWITCH = Remedy(
    command="",
    effect=Words(
        "Look at the switch port: shut, not split into two, other FEC or speed.",
        "检查交换机端口：是否 shutdown、未拆分、FEC 或速率不一致。",
    ),
    precondition=READS,
    who="network team",
)

DOWN = Cause(
    slug="npu-link-down",
    title=Words("NPU link is down", "NPU 链路断开"),
    meaning=Words(
        "The NPU's RoCE port has no link: the rank on it cannot reach other hosts.",
        "NPU 的 RoCE 端口无链路：其上的 rank 无法与其他主机通信。",
    ),
    remedies=(CLEAN, SWITCH, UP),
)
NO_MODULE = Cause(
    slug="npu-module-missing",
    title=Words("NPU port has no module", "NPU 端口光模块不在位"),
    meaning=Words(
        "The optical module is not there, or does not answer.",
        "光模块不在位，或其管理接口无响应。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -optical -g",
            effect=Words(
                "Shows whether the module is seen. Reseat it, then replace it.",
                "显示光模块是否在位。重插，仍异常则更换。",
            ),
            precondition=DRAINED,
        ),
    ),
)
UNUSED = Cause(
    slug="npu-roce-unused",
    title=Words("RoCE is down, HCCS works", "RoCE 断开但 HCCS 正常"),
    meaning=Words(
        "As on superpods whose RoCE ports are not cabled: jobs inside the superpod run, jobs "
        "beyond it do not.",
        "常见于未接 RoCE 线缆的超节点：超节点内作业正常，跨超节点作业无法运行。",
    ),
    remedies=(UP,),
)


def judge(seen: Seen, npu: Accelerator, _want: Nothing, _limits: Nothing) -> Verdict:
    """Down fails, with what the module says; down with HCCS that works warns."""
    link = seen.link.of(npu.index)
    if link.is_up:
        return passed(f"{npu.label} is up{_neighbour(seen, npu)}")
    if link.hccs_loss_percent == 0:
        reason = f"{npu.label} is down, but HCCS reaches another NPU without loss"
        return warned(UNUSED, reason, npu=npu.index)
    loss = link.hccs_loss_percent
    hccs = "" if loss is None else f", and HCCS loses {loss:g} % of its packets"
    optical = None if isinstance(seen.optical, Unread) else dict(seen.optical.values).get(npu.index)
    if optical is not None and optical.state != "present":
        state = "not there" if optical.state == "absent" else "there and does not answer"
        reason = f"{npu.label} is down: its module is {state}{hccs}"
        return failed(NO_MODULE, reason, npu=npu.index)
    return failed(DOWN, f"{npu.label} is down, want up{_light(optical)}{hccs}", npu=npu.index)


def _neighbour(seen: Seen, npu: Accelerator) -> str:
    heard = None if isinstance(seen.lldp, Unread) else dict(seen.lldp.values).get(npu.index)
    return "" if heard is None else f", at {heard.switch} port {heard.port}"


def _light(optical: NpuOptical | None) -> str:
    if optical is None or not optical.rx_mw:
        return ""
    dark = sorted({lane for name, lane in optical.flags if name == "Rx Los Flag"})
    return f"; no light on lane {', '.join(map(str, dark))}" if dark else "; its module sees light"


CHECK = Check(
    id="physical.npu-link-up",
    title=Words("NPU port has a link", "NPU 端口链路正常"),
    subject=Accelerator,
    seen=Seen,
    judge=judge,
    causes=(DOWN, NO_MODULE, UNUSED),
    platforms=ASCEND,
    not_applicable=npus_only,
)
