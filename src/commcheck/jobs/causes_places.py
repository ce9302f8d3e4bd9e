"""What locating can show: the object at fault, host, rail, path, leaf or the whole fabric."""

from __future__ import annotations

from typing import Final

from commcheck.jobs.remedies import (
    BELOW,
    NETWORK_LINES,
    PER_RAIL,
    look,
    mend,
)
from commcheck.model import Cause, Words

_KEEP_OUT: Final = mend(
    "scontrol update nodename={host} state=drain reason=commcheck",
    "Keeps new jobs off the host; running ones end by themselves.",
    "不再向该主机调度新作业；运行中的作业不受影响。",
    Words(
        "Slurm; elsewhere cordon it by the scheduler's own means.",
        "适用于 Slurm；其他调度器请用其自身方式隔离。",
    ),
)
BAD_HOST: Final = Cause(
    slug="collective-bad-host",
    title=Words("A host is slow with every partner", "某主机与任何伙伴通信都慢"),
    meaning=Words(
        "It failed with two partners that are good with others: the fault is on the host or its "
        "own links.",
        "它与两个在别处正常的伙伴都失败：故障在该主机或其自身链路上。",
    ),
    remedies=(BELOW, _KEEP_OUT),
)
BAD_RAIL: Final = Cause(
    slug="collective-bad-rail",
    title=Words("One rail of a host is slow", "主机的一条轨慢"),
    meaning=Words(
        "Its other rails are good, and so is the partner's rail with others: NIC, cable or switch "
        "port of that rail.",
        "其余轨正常，伙伴的同一条轨与他人也正常：问题在该轨的网卡、线缆或交换机端口。",
    ),
    remedies=(BELOW, *PER_RAIL),
)
BAD_PLANE: Final = Cause(
    slug="collective-bad-plane",
    title=Words("One rail is slow on all hosts", "所有主机的同一条轨都慢"),
    meaning=Words(
        "The rail fails on every host tried, and other rails do not: its switches, not the hosts.",
        "该轨在所有被测主机上都失败，而其他轨正常：问题在该轨的交换机而非主机。",
    ),
    remedies=(
        look(
            "",
            "Have the switches of this rail checked.",
            "请检查该轨的交换机。",
            who="network team",
        ),
    ),
)
BAD_PATH: Final = Cause(
    slug="collective-bad-path",
    title=Words("A path between two good hosts is slow", "两台正常主机间的路径慢"),
    meaning=Words(
        "Both ends are good with others, and the pair fails again alone: something between them.",
        "两端与其他主机通信都正常，而该主机对单独重测仍失败：问题在两者之间。",
    ),
    remedies=(
        look(
            "tracepath <PARTNER>",
            "Shows the hops; have counters and ECMP of the switches between them checked.",
            "显示路径跳数；请检查途经交换机的计数与 ECMP。",
            who="network team",
        ),
    ),
)
BAD_LEAF: Final = Cause(
    slug="collective-bad-leaf",
    title=Words("A leaf switch or its uplinks are slow", "叶交换机或其上行链路慢"),
    meaning=Words(
        "What fails has one leaf in common: the switch or its uplinks, not the hosts.",
        "所有失败都与同一台叶交换机有关：问题在交换机或其上行链路，而不是主机。",
    ),
    remedies=(
        look(
            "",
            "Have the leaf's uplinks, optics, PFC and discards checked.",
            "请检查该叶交换机的上行链路、光模块、PFC 与丢包。",
            who="network team",
        ),
    ),
)
FLEET: Final = Cause(
    slug="collective-fleet-slow",
    title=Words("Nobody reaches the bound", "没有任何主机达到上限"),
    meaning=Words(
        "No pair passes, so no host can be blamed: image, driver, environment, PFC on switches, "
        "or an expectation that is too high.",
        "没有任何主机对通过，因此不能归咎于某台主机："
        "应查镜像、驱动、环境变量、交换机 PFC，或预期值过高。",
    ),
    remedies=(BELOW, *NETWORK_LINES),
)
PARALLEL_ONLY: Final = Cause(
    slug="collective-slow-in-parallel",
    title=Words("Slow only beside others", "仅在并行时变慢"),
    meaning=Words(
        "Alone the pair is good: pairs that run at once share links (ECMP, oversubscription).",
        "单独测试正常：并行的主机对共用链路（ECMP 或收敛比）。",
    ),
    remedies=(
        look(
            "",
            "Have ECMP hashing and uplink use checked.",
            "请检查 ECMP 散列与上行链路使用率。",
            who="network team",
        ),
    ),
)

PLACES: Final = (BAD_HOST, BAD_RAIL, BAD_PLANE, BAD_PATH, BAD_LEAF, FLEET, PARALLEL_ONLY)
"""What locating can show."""
