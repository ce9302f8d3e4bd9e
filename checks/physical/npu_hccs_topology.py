"""NPUs that HCCS joins are all joined with each other.

Why: Inside a host HCCL goes over HCCS. One pair that has to go over PCIe and the CPUs instead slows
the ring of the whole host, and with it all hosts of the job.
Reads: ``npu-smi info -t topo``. One verdict for the host.
By hand: ``npu-smi info -t topo``: HCCS everywhere but on the diagonal.
Mend: restart the host cold; a lane that stays away is a case for the vendor.
Healthy though odd: PCIe cards have no HCCS at all. Boards of 910A have two groups of four: HCCS
inside each, and PCIe between them.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, failed, not_applicable, passed, reads
from commcheck.formats.npu_smi import NPU_TOPO, NpuTopo
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.npu import ASCEND, READS


@dataclass(frozen=True, slots=True)
class Seen:
    """How the NPUs are linked."""

    topo: NpuTopo = reads(NPU_TOPO)


BROKEN = Cause(
    slug="npu-hccs-broken",
    title=Words("HCCS link is missing", "HCCS 链路缺失"),
    meaning=Words(
        "Two NPUs of one HCCS group reach each other only over PCIe: a lane is down.",
        "同一 HCCS 组内的两块 NPU 只能经 PCIe 互通：链路已断。",
    ),
    remedies=(
        Remedy(
            command="npu-smi info -t topo",
            effect=Words(
                "Shows the pairs. Restart the host cold; if it stays, ask the vendor.",
                "显示各对互连方式。先冷重启主机；仍异常则联系厂商。",
            ),
            precondition=READS,
            who="vendor",
        ),
    ),
)


JOINED = ("HCCS", "HCCS_SW", "SIO")
"""Direct, over the switches of a superpod, and inside a module of two chips."""


def judge(seen: Seen, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """Each group that HCCS makes is complete, and all groups are of one size."""
    topo = seen.topo
    word = {(one, other): said for one, other, said in topo.links}
    near = {
        npu: {other for other in topo.npus if word.get((npu, other)) in JOINED} for npu in topo.npus
    }
    if not any(near.values()):
        return not_applicable("no NPU has HCCS: PCIe cards")
    groups = _groups(near)
    far = [
        f"{one}-{other} {word[one, other]}"
        for group in groups
        for one in group
        for other in group
        if topo.npus.index(one) < topo.npus.index(other) and other not in near[one]
    ]
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        odd = min(groups, key=len)
        far.append(f"{', '.join(odd)} apart from the others")
    if far:
        return failed(BROKEN, f"{'; '.join(far)}, want HCCS", measured={"pairs": far})
    return passed(f"HCCS joins all NPUs in {len(groups)} group of {sizes[0]}")


def _groups(near: dict[str, set[str]]) -> list[list[str]]:
    groups: list[list[str]] = []
    left = list(near)
    while left:
        group, waiting = [], [left[0]]
        while waiting:
            npu = waiting.pop()
            if npu in left:
                left.remove(npu)
                group.append(npu)
                waiting += near[npu]
        groups.append(sorted(group, key=list(near).index))
    return groups


CHECK = Check(
    id="physical.npu-hccs-topology",
    title=Words("HCCS joins the NPUs", "NPU 间 HCCS 互连完整"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(BROKEN,),
    platforms=ASCEND,
)
