"""Every NPU has its address, and gets it back when the host starts.

Why: HCCL connects the NPUs by the addresses of their own ports. One without, or with another's,
ends the job at its start. Settings are gone after a restart but for what /etc/hccn.conf keeps.
Reads: ``hccn_tool -i N -ip -g`` and ``/etc/hccn.conf``. Verdicts for the host.
By hand: ``hccn_tool -i N -ip -g`` (root); ``cat /etc/hccn.conf``.
Mend: ``hccn_tool -a -cfg recovery`` where the file is right; else ``-ip -s address A netmask M``.
Healthy though odd: in a container the file is there only where it is mounted. RoCE ports of an A3
that are not in use need none.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_conf import HCCN_CONF, HccnConf, kept
from commcheck.formats.hccn_port import ADDRESS, LINK, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Status, Verdict, Words
from commcheck.npu import ASCEND, DRAINED, RECOVER, named, unused

Addresses = dict[int, ipaddress.IPv4Interface | None]


@dataclass(frozen=True, slots=True)
class Seen:
    """Addresses as they are, and as they are kept."""

    address: PerNpu[ipaddress.IPv4Interface | None] = reads(ADDRESS)
    conf: HccnConf = reads(HCCN_CONF)
    link: PerNpu[NpuLink] | Unread = tries(LINK)


SET = Remedy(
    command="hccn_tool -i {npu} -ip -s address ADDRESS netmask NETMASK",
    effect=Words(
        "Sets the address and writes it to /etc/hccn.conf.",
        "设置地址并写入 /etc/hccn.conf。",
    ),
    precondition=DRAINED,
)

UNSET = Cause(
    slug="npu-ip-unset",
    title=Words("NPU has no address", "NPU 未配置 IP"),
    meaning=Words(
        "HCCL cannot connect this NPU. As a rule the settings were not restored after a restart.",
        "HCCL 无法连接该 NPU。通常是重启后未恢复配置。",
    ),
    remedies=(RECOVER, SET),
)
TWICE = Cause(
    slug="npu-ip-twice",
    title=Words("Two NPUs share an address", "NPU IP 重复"),
    meaning=Words(
        "Two NPUs of the host have the same address: connections end at the wrong one.",
        "同一主机的两块 NPU 地址相同：连接会到达错误的 NPU。",
    ),
    remedies=(SET,),
)
DIFFERS = Cause(
    slug="npu-ip-not-as-kept",
    title=Words("NPU address is not the kept one", "NPU IP 与配置文件不符"),
    meaning=Words(
        "The address differs from /etc/hccn.conf: one of them is wrong, and a restart changes it.",
        "当前地址与 /etc/hccn.conf 不一致：其中之一有误，重启后地址会改变。",
    ),
    remedies=(RECOVER, SET),
)
NOT_KEPT = Cause(
    slug="npu-ip-not-kept",
    title=Words("NPU address is not kept", "NPU IP 未持久化"),
    meaning=Words(
        "/etc/hccn.conf does not name the address: it is gone after the next restart.",
        "/etc/hccn.conf 中没有该地址：下次重启后将丢失。",
    ),
    remedies=(SET,),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> tuple[Verdict, ...]:
    """Each thing that is wrong, with the NPUs that it is wrong on."""
    npus = [each for each in machine.accelerators if each.vendor == "ascend"]
    addresses = {each.index: seen.address.of(each.index) for each in npus}
    for each in npus:
        if addresses[each.index] is None and unused(seen.link, each):
            del addresses[each.index]
    if npus and not addresses:
        return (not_applicable("all NPUs use HCCS: their RoCE links are down, without address"),)
    found = (*_now(addresses), *_kept(addresses, seen.conf, machine))
    measured = {f"npu{npu}": str(each) for npu, each in addresses.items()}
    if any(verdict.status is not Status.SKIP for verdict in found):
        return found
    return (*found, passed(f"{len(addresses)} NPUs have an address each", measured=measured))


def _now(addresses: Addresses) -> Iterator[Verdict]:
    if unset := [npu for npu, each in addresses.items() if each is None]:
        yield failed(UNSET, f"{named(unset)}: no address, want one", npu=unset[0])
    count = Counter(each.ip for each in addresses.values() if each is not None)
    for address, times in count.items():
        if times > 1:
            npus = [npu for npu, each in addresses.items() if each and each.ip == address]
            yield failed(TWICE, f"{named(npus)} have {address}, want one each", npu=npus[-1])


def _kept(addresses: Addresses, conf: HccnConf, machine: Machine) -> Iterator[Verdict]:
    if conf is None and machine.in_container:
        yield undecidable(
            "/etc/hccn.conf is not seen from this container", turn_on="mount it, or ask the host"
        )
        return
    set_ = {npu: each for npu, each in addresses.items() if each is not None}
    other = [npu for npu, each in set_.items() if kept(conf, npu).address not in (None, each.ip)]
    if other:
        one = other[0]
        reason = (
            f"{named(other)}: npu{one} has {set_[one].ip}, /etc/hccn.conf says "
            f"{kept(conf, one).address}"
        )
        yield failed(DIFFERS, reason, npu=one)
    missing = [npu for npu in set_ if kept(conf, npu).address is None]
    if missing:
        why = "does not name it" if conf is not None else "is not there"
        yield warned(NOT_KEPT, f"{named(missing)}: /etc/hccn.conf {why}", npu=missing[0])


CHECK = Check(
    id="physical.npu-ip",
    title=Words("NPUs have their addresses", "NPU IP 配置正确"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    causes=(UNSET, TWICE, DIFFERS, NOT_KEPT),
    platforms=ASCEND,
)
