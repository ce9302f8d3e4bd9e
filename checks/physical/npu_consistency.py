"""The NPUs of a host have driver, firmware, CANN and model of their peers.

Why: HCCL of one driver release does not always connect with another's (TLS is checked from HDK 25.2
on, and not before), and a ring with one slower model goes at its pace.
Reads: ``npu-smi info``, and the files of the installers in /usr/local/Ascend. One verdict for the
host; hosts are compared.
By hand: ``npu-smi info``: the release in its head, the column Name;
``cat /usr/local/Ascend/{cann,ascend-toolkit/latest}/*/ascend_toolkit_install.info`` (the first
since CANN 8.5).
Mend: bring driver and firmware of the odd hosts to the release of the fleet.
Healthy though odd: groups of different models are declared apart with ``commcheck_peers``. Where
jobs bring CANN in their images, the host's own means nothing, and need not be there.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, Unread, reads, to_compare, tries
from commcheck.formats.cann import CANN, Releases
from commcheck.formats.npu_smi import NPU_SMI, NpuSmi
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.npu import ASCEND


@dataclass(frozen=True, slots=True)
class Seen:
    """The NPUs that the driver lists, and what is installed for them."""

    smi: NpuSmi = reads(NPU_SMI)
    releases: Releases | Unread = tries(CANN)


DRIFT = Cause(
    slug="npu-host-drift",
    title=Words("NPUs unlike those of the peers", "NPU 与同组主机不一致"),
    meaning=Words(
        "Driver, firmware, CANN or model of the NPUs is another than on most hosts of the group.",
        "NPU 的驱动、固件、CANN 版本或型号与同组多数主机不同。",
    ),
    remedies=(
        Remedy(
            command="npu-smi info",
            effect=Words(
                "Shows release and models. Install the fleet's driver, firmware and CANN.",
                "显示版本与型号。请安装与集群一致的驱动、固件与 CANN 版本。",
            ),
            precondition=Words(
                "Reading is free; a new driver needs a drained host and a restart.",
                "读取无影响；更换驱动需排空并重启主机。",
            ),
        ),
    ),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Release and models; whether they are right only the peers can tell."""
    models = sorted({chip.name for chip in seen.smi.chips})
    traits: dict[str, object] = {"release": seen.smi.version, "models": models}
    if isinstance(seen.releases, Unread):
        return to_compare(traits)
    if seen.releases.firmware is not None:
        traits["firmware"] = seen.releases.firmware
    if seen.releases.cann:
        traits["cann"] = [f"{package} {release}" for package, release in seen.releases.cann]
    return to_compare(traits)


CHECK = Check(
    id="physical.npu-consistency",
    title=Words("NPUs as on the peers", "NPU 同组一致"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(DRIFT,),
    platforms=ASCEND,
    peers=(
        Trait("release", Words("NPU driver release", "NPU 驱动版本"), DRIFT),
        Trait("firmware", Words("NPU firmware", "NPU 固件"), DRIFT),
        Trait("cann", Words("CANN", "CANN 版本"), DRIFT),
        Trait("models", Words("NPU model", "NPU 型号"), DRIFT),
    ),
)
