"""All NPUs of the fleet have TLS on, or all have it off.

Why: An NPU with TLS and one without cannot connect: HCCL ends with EI0016 (EI0014 in CANN 8.5), and
with drivers before 25.2 with a plain timeout that says nothing of TLS.
Reads: ``hccn_tool -i N -tls -g``. One verdict for the host; hosts are compared.
By hand: ``hccn_tool -i N -tls -g | grep switch`` (root). The words in brackets are a legend;
"No certificate found" means off.
Mend: set the odd ones as the fleet and the site's policy are: ``-tls -s enable V``.
Healthy though odd: off everywhere is as consistent as on; which it is, the site decides. Declare it
with ``commcheck_npu_tls``.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, expects, failed, reads, to_compare
from commcheck.expect import NPU_TLS
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import TLS
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.npu import ASCEND, named


@dataclass(frozen=True, slots=True)
class Seen:
    """Every NPU's switch."""

    tls: PerNpu[int] = reads(TLS)


@dataclass(frozen=True, slots=True)
class Want:
    """The site's policy, where it is declared."""

    tls: Wanted[int | None] = expects(NPU_TLS)


MIXED = Cause(
    slug="npu-tls-mixed",
    title=Words("TLS differs between NPUs", "NPU 的 TLS 开关不一致"),
    meaning=Words(
        "NPUs with TLS and NPUs without cannot connect: HCCL ends at its start.",
        "TLS 开启与关闭的 NPU 无法互连：HCCL 在初始化时报错。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -tls -s enable VALUE",
            effect=Words(
                "Sets the switch; VALUE as on the rest of the fleet. 0 ends encryption.",
                "设置 TLS 开关，取值与其余节点一致。0 表示关闭加密。",
            ),
            precondition=Words(
                "The site's policy allows it; no job runs.", "符合安全策略，且没有作业运行。"
            ),
            who="security owner",
        ),
    ),
)


def judge(seen: Seen, machine: Machine, want: Want, _limits: Nothing) -> Verdict:
    """One value on the host and, where it is declared, that one; hosts are compared."""
    npus: dict[int, list[int]] = {}
    for each in machine.accelerators:
        npus.setdefault(seen.tls.of(each.index), []).append(each.index)
    odd = min(npus.values(), key=len)[0]
    if len(npus) > 1:
        parts = ", ".join(f"{_word(tls)} on {named(ids)}" for tls, ids in sorted(npus.items()))
        return failed(MIXED, f"TLS is {parts}; want one value", npu=odd)
    (tls,) = npus
    if want.tls.value not in (None, tls):
        reason = f"TLS is {_word(tls)} on all NPUs, want {want.tls.value}: {want.tls.origin}"
        return failed(MIXED, reason, measured={"tls": tls}, npu=odd)
    return to_compare({"tls": _word(tls), "npu": odd})


def _word(tls: int) -> str:
    return "on" if tls else "off"


CHECK = Check(
    id="physical.npu-tls-consistent",
    title=Words("NPUs agree on TLS", "NPU 的 TLS 开关一致"),
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(MIXED,),
    platforms=ASCEND,
    peers=(Trait("tls", Words("TLS", "TLS"), MIXED, fails=True),),
)
