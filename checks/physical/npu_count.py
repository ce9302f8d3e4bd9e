"""All NPUs of the host are listed by the driver.

Why: A job asks for all chips of a host. One that fell off the bus, or that the driver gave up,
ends every job that is placed there, and a smaller world changes the ring of all others.
Reads: ``npu-smi info``. One verdict for the host.
By hand: ``npu-smi info``; ``lspci -d 19e5:``; ``ls /dev/davinci*``.
Mend: look at the BMC's log and at ``dmesg``; a cold restart brings back what only hangs.
Healthy though odd: ids may have gaps. A module of an A3 is two chips, so that a host has 16. In a
container only the chips that were given to it are seen.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, passed, reads, undecidable
from commcheck.expect import NPU_COUNT
from commcheck.formats.npu_smi import NPU_SMI, NpuSmi
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, READS
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The NPUs that the driver lists."""

    smi: NpuSmi = reads(NPU_SMI)


@dataclass(frozen=True, slots=True)
class Want:
    """How many there should be."""

    count: Wanted[int | None] = expects(NPU_COUNT)


LOST = Cause(
    slug="npu-lost",
    title=Words("An NPU is missing", "缺少 NPU"),
    meaning=Words(
        "The driver lists fewer NPUs than there should be: one fell off the bus or did not start.",
        "驱动列出的 NPU 少于应有数量：有芯片掉卡或未能启动。",
    ),
    remedies=(
        Remedy(
            command="lspci -d 19e5:",
            effect=Words(
                "Shows which are on the bus. Look at BMC and dmesg, then restart the host cold.",
                "显示总线上的设备。查看 BMC 与 dmesg，再对主机冷重启。",
            ),
            precondition=READS,
        ),
    ),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """As many as declared; undeclared, as many as PCI or the device files show."""
    got = len(seen.smi.chips)
    found = sum(each.vendor == "ascend" for each in machine.accelerators)
    wanted = want.count.value if want.count.value is not None else found
    # A module of Atlas A3 has two chips, and each of them an id of its own.
    ids = sorted(chip.physical for chip in seen.smi.chips)
    measured = {"npus": got, "npu_ids": ids}
    if got < wanted:
        of = want.count.origin if want.count.value is not None else "what the host itself shows"
        shown = ", ".join(map(str, ids))
        reason = f"npu-smi lists {many(got, 'NPU')} ({shown}), want {wanted}: {of}"
        return failed(LOST, reason, measured=measured)
    if found < got:
        return undecidable(
            f"npu-smi lists {many(got, 'NPU')}, and {found} are found in /dev and on PCI: the "
            "ports of the others are not judged",
            turn_on="give the session /dev/davinci*, or ask the host and not a container",
        )
    return passed(f"npu-smi lists {many(got, 'NPU')}, {seen.smi.chips[0].name}", measured=measured)


CHECK = Check(
    id="physical.npu-count",
    title=Words("All NPUs are listed", "NPU 数量正确"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(LOST,),
    platforms=ASCEND,
)
