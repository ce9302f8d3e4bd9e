"""What a collective benchmark can find, with remedies, the least drastic first.

Shared by the checks that launch and by the offline analysis. A sweep alone never proves why it is
slow: the first remedy of a signature reads the fact that settles it.
"""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Remedy, Words

_READS: Final = Words("None, it only reads.", "无，只读。")
_IDLE: Final = Words("No training job on these hosts.", "这些主机上没有训练作业。")
_DRAINED: Final = Words("The host is drained.", "主机已排空。")


def _look(command: str, en: str, zh: str, who: str = "operator") -> Remedy:
    return Remedy(command=command, effect=Words(en, zh), precondition=_READS, who=who)


def _mend(
    command: str, en: str, zh: str, before: Words = _DRAINED, who: str = "operator"
) -> Remedy:
    return Remedy(command=command, effect=Words(en, zh), precondition=before, who=who)


_COUNTERS: Final = _look(
    "grep . /sys/class/infiniband/*/ports/1/hw_counters/*",
    "Read before and after a run: numbers that grow confirm loss, numbers that stand rule it out.",
    "在运行前后各读一次：数值增长则证实丢包，不变则排除丢包。",
)
_NETWORK_LINES: Final = _look(
    "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET",
    "Set it for the run: the lines NET/IB, NET/Socket and GDRDMA say which path each channel took.",
    "在运行时设置：NET/IB、NET/Socket 与 GDRDMA 行会说明每个通道走的路径。",
)
_PER_RAIL: Final = _look(
    "ib_write_bw -d <HCA> -x <GID> -F --report_gbits -s 8388608 -n 5000 <PARTNER>",
    "One rail at a time between two hosts: the slow one shows. It loads the link for seconds.",
    "在两台主机间逐条轨道测试：慢的轨道会显现。会占满链路数秒。",
)
_BELOW: Final = _look(
    "commcheck run -i <INVENTORY> -t 'physical.*'",
    "Judges links, PCIe, PFC and GPUDirect of the hosts: the sweep's cause usually stands there.",
    "检查主机的链路、PCIe、PFC 与 GPUDirect：带宽问题的原因通常就在其中。",
)
_REPEAT_ALONE: Final = _look(
    "commcheck run -i <INVENTORY> --allow load -t physical.collective-pairs",
    "Repeats the pair with nothing beside it. It loads the fabric for a minute.",
    "单独重测该主机对。会使网络满载约一分钟。",
)

WRONG_DATA: Final = Cause(
    slug="collective-wrong-data",
    title=Words("Wrong data in a collective", "集合通信结果数据错误"),
    meaning=Words(
        "Elements arrived with wrong values: memory, link or library is at fault, and a training "
        "run on these hosts learns from garbage. Its bandwidth proves nothing.",
        "有元素的值错误：显存、链路或通信库有故障，在这些主机上训练会学到错误数据。其带宽不说明任何问题。",
    ),
    remedies=(
        _look(
            "nvidia-smi -q -d ECC,ROW_REMAPPER; dmesg | grep -i xid",
            "Shows memory errors and driver faults of each GPU.",
            "显示各 GPU 的内存错误与驱动故障。",
        ),
        _mend(
            "dcgmi diag -r 3",
            "Tests memory and links for minutes; the GPUs must be idle.",
            "对显存与链路做数分钟测试，GPU 必须空闲。",
        ),
        _mend(
            "",
            "Keep the host out of training until it is explained.",
            "查明前不要让该主机参与训练。",
        ),
    ),
)
TCP: Final = Cause(
    slug="collective-tcp-fallback",
    title=Words("Fell back to TCP", "回退到 TCP"),
    meaning=Words(
        "A few GB/s whatever the line, half of it reached by 1 MiB, high latency: the shape of "
        "TCP sockets. The library found no usable RDMA device.",
        "无论线速多少都只有几 GB/s，约 1 MiB 即达一半，且延迟高：这是 TCP 套接字的特征。"
        "通信库没有找到可用的 RDMA 设备。",
    ),
    remedies=(
        _NETWORK_LINES,
        _look(
            "ibv_devinfo; env | grep -E 'NCCL_IB_DISABLE|NCCL_IB_HCA|NCCL_NET'",
            "Shows devices, and variables that turn RDMA off or name devices that are not there.",
            "显示设备，以及关闭 RDMA 或指向不存在设备的变量。",
        ),
    ),
)
LOSS: Final = Cause(
    slug="collective-packet-loss",
    title=Words("Bandwidth falls as messages grow", "消息越大带宽越低"),
    meaning=Words(
        "Normal up to some MiB, then lower the larger the message, and unsteady: the shape of "
        "packet loss with go-back-N, mostly PFC that is off or differs along the path.",
        "在若干 MiB 以内正常，之后消息越大带宽越低且不稳定：这是丢包重传的特征，"
        "多为 PFC 未启用或沿途配置不一致。",
    ),
    remedies=(
        _COUNTERS,
        _BELOW,
        _look(
            "",
            "Have PFC, DSCP mapping and discards checked on every switch of the path.",
            "请检查路径上每台交换机的 PFC、DSCP 映射与丢包计数。",
            who="network team",
        ),
    ),
)
SLOW_RAIL: Final = Cause(
    slug="collective-slow-rail",
    title=Words("One slow rail holds all back", "一条慢轨道拖慢全部"),
    meaning=Words(
        "A clean, steady curve at a fraction of the bound. Traffic is spread evenly, so the "
        "slowest rail times their number is what all reach: a NIC that linked up slower fits.",
        "曲线平稳，但只有上限的一部分。流量均分到各轨道，整体等于最慢轨道乘以轨道数：符合某网卡以较低速率协商的情形。",
    ),
    remedies=(_BELOW, _PER_RAIL),
)
HALF: Final = Cause(
    slug="collective-half-bandwidth",
    title=Words("About half of the bound", "约为上限的一半"),
    meaning=Words(
        "A clean curve at half: a NIC is absent and two rings share one, or the NICs have half of "
        "their PCIe width, or data passes through the CPU (no GPUDirect, ACS on). The curve cannot "
        "tell these apart.",
        "曲线平稳且为一半：缺少一块网卡而两个环共用一块，或网卡 PCIe 只有一半宽度，"
        "或数据经过 CPU（无 GPUDirect、ACS 开启）。仅凭曲线无法区分。",
    ),
    remedies=(_BELOW, _PER_RAIL, _NETWORK_LINES),
)
FEW_NICS: Final = Cause(
    slug="collective-few-nics",
    title=Words("Only some of the NICs are used", "只使用了部分网卡"),
    meaning=Words(
        "A flat plateau at one or a few NICs' worth: the library's device list is shorter than the "
        "host's.",
        "平台期只相当于一块或几块网卡：通信库的设备列表比主机实有的短。",
    ),
    remedies=(
        _NETWORK_LINES,
        _look(
            "env | grep NCCL_IB_HCA",
            "A list that names too few devices, or matches by prefix without '='.",
            "检查列表是否列出过少设备，或缺少“=”而按前缀匹配。",
        ),
    ),
)
NO_GPUDIRECT: Final = Cause(
    slug="collective-no-gpudirect",
    title=Words("RDMA without GPUDirect", "RDMA 未使用 GPUDirect"),
    meaning=Words(
        "NCCL's lines show IB without GDRDMA: every byte passes through host memory.",
        "NCCL 日志显示使用 IB 但无 GDRDMA：每个字节都要经过主机内存。",
    ),
    remedies=(
        _BELOW,
        _mend(
            "modprobe nvidia_peermem",
            "Loads the module that lets NICs reach GPU memory; running jobs do not notice.",
            "加载让网卡访问显存的模块；不影响运行中的作业。",
            _READS,
        ),
    ),
)
NVLINK_DOWN: Final = Cause(
    slug="collective-nvlink-down",
    title=Words("NVLink is not used", "未使用 NVLink"),
    meaning=Words(
        "Inside one host at PCIe speed: NVLink is down, peer access is off, or fabric manager is "
        "not running.",
        "单机内只有 PCIe 速度：NVLink 断开、P2P 关闭，或 fabric manager 未运行。",
    ),
    remedies=(
        _look(
            "nvidia-smi nvlink -s; nvidia-smi topo -m; systemctl status nvidia-fabricmanager",
            "Shows links, the paths between GPUs and the service that NVSwitch needs.",
            "显示链路、GPU 间路径以及 NVSwitch 所需服务的状态。",
        ),
        _mend(
            "systemctl restart nvidia-fabricmanager",
            "Sets the switches up anew; ends every CUDA job of the host.",
            "重新配置交换芯片；会中断该主机上的所有 CUDA 作业。",
        ),
    ),
)
NVLINK_DEGRADED: Final = Cause(
    slug="collective-node-slow",
    title=Words("Slow inside the host", "主机内部带宽偏低"),
    meaning=Words(
        "Below what this platform reaches inside a host: lanes of a link are down, clocks or power "
        "are capped, or another process uses the accelerators.",
        "低于该平台的单机水平：部分链路失效、频率或功耗受限，或有其他进程占用加速卡。",
    ),
    remedies=(
        _look(
            "nvidia-smi nvlink -s; nvidia-smi -q -d PERFORMANCE",
            "Shows inactive links and reasons for throttling. Ascend: npu-smi info -t health.",
            "显示失效链路与降频原因。昇腾：npu-smi info -t health。",
        ),
    ),
)
NVLS_OFF: Final = Cause(
    slug="collective-nvls-off",
    title=Words("NVLink SHARP is not used", "未使用 NVLink SHARP"),
    meaning=Words(
        "A healthy ring, about a fifth below what this platform reaches when the switch reduces.",
        "环算法正常，但比交换芯片参与归约时低约五分之一。",
    ),
    remedies=(
        _look(
            "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS",
            "The line 'NVLS multicast support' says why; NCCL_NVLS_ENABLE=0 turns it off.",
            "“NVLS multicast support” 行会说明原因；NCCL_NVLS_ENABLE=0 会将其关闭。",
        ),
        _look(
            "systemctl status nvidia-fabricmanager",
            "NVLS needs the service, and a driver of the same version.",
            "NVLS 需要该服务，且与驱动版本一致。",
        ),
    ),
)
CONGESTION: Final = Cause(
    slug="collective-congestion",
    title=Words("Unsteady and below the bound", "带宽不稳定且低于上限"),
    meaning=Words(
        "A reduced plateau that differs from repeat to repeat: flows share a spine link (ECMP), or "
        "somebody else's traffic is in the way.",
        "平台期降低且各次不同：多条流经 ECMP 挤到同一上行链路，或与他人流量相互争抢。",
    ),
    remedies=(
        _REPEAT_ALONE,
        _look(
            "grep . /sys/class/infiniband/*/ports/1/hw_counters/*cnp*",
            "Grows where the fabric marks congestion.",
            "网络标记拥塞时该计数增长。",
        ),
    ),
)
SLOW: Final = Cause(
    slug="collective-slow",
    title=Words("Below the bound", "低于带宽上限"),
    meaning=Words(
        "The bandwidth does not reach what the hardware allows, and the curve fits no known fault.",
        "带宽未达到硬件应有水平，曲线也不符合任何已知故障。",
    ),
    remedies=(_BELOW, _NETWORK_LINES, _PER_RAIL),
)
UNSTEADY: Final = Cause(
    slug="collective-unsteady",
    title=Words("Results differ from repeat to repeat", "多次结果差异大"),
    meaning=Words(
        "Repeats of one size differ by more than healthy fabrics do.",
        "同一大小的多次结果差异超过正常范围。",
    ),
    remedies=(_COUNTERS, _REPEAT_ALONE),
)
SLOW_ITERATION: Final = Cause(
    slug="collective-slow-iteration",
    title=Words("Single slow iterations", "个别迭代变慢"),
    meaning=Words(
        "One iteration took much longer than the others: a hiccup of one process or link.",
        "某次迭代明显慢于其他：某个进程或链路出现瞬时停顿。",
    ),
    remedies=(
        _look(
            "-I 1 -J FILE.json",
            "Options of nccl-tests 2.19 and newer: the file names the process that was late.",
            "nccl-tests 2.19 及以上的选项：文件中会指出迟到的进程。",
        ),
    ),
)
DIP: Final = Cause(
    slug="collective-dip",
    title=Words("A dip in the middle of the sweep", "曲线中部下陷"),
    meaning=Words(
        "One size is slower than both neighbours by more than a change of algorithm explains.",
        "某一大小比相邻两点都慢，超过算法切换所能解释的程度。",
    ),
    remedies=(_REPEAT_ALONE,),
)
LATENCY: Final = Cause(
    slug="collective-latency-high",
    title=Words("Small messages are slow", "小消息延迟高"),
    meaning=Words(
        "Small messages take several times what this kind of run takes: TCP, CPU power states or a "
        "NIC far from its GPU.",
        "小消息耗时是同类运行的数倍：可能是 TCP、CPU 节能状态，或网卡与 GPU 距离过远。",
    ),
    remedies=(_NETWORK_LINES,),
)
RDMA_SLOW: Final = Cause(
    slug="rdma-pair-slow",
    title=Words("A NIC pair is below its line rate", "网卡对低于线速"),
    meaning=Words(
        "perftest between two NICs does not reach the payload share of the line.",
        "两块网卡间的 perftest 未达到线速的有效载荷比例。",
    ),
    remedies=(_BELOW, _COUNTERS),
)
RDMA_PCIE: Final = Cause(
    slug="rdma-pair-pcie-limited",
    title=Words("A NIC pair at half of its line", "网卡对只有线速一半"),
    meaning=Words(
        "Steady at what PCIe Gen4 x16 or Gen5 x8 carries: the slot, not the wire, is the limit.",
        "稳定在 PCIe Gen4 x16 或 Gen5 x8 的能力：瓶颈是插槽而不是链路。",
    ),
    remedies=(
        _look(
            "lspci -vv -s <PCI> | grep -E 'LnkCap|LnkSta'",
            "Shows width and speed of the slot beside what the card can do.",
            "显示插槽实际宽度与速率，并与网卡能力对比。",
        ),
        _mend(
            "",
            "Reseat the card or riser, or move it to a full slot.",
            "重新插拔网卡或转接卡，或换到全速插槽。",
            who="vendor",
        ),
    ),
)

BROKEN_RUN: Final = Cause(
    slug="collective-run-broken",
    title=Words("The run did not end", "测试未正常结束"),
    meaning=Words(
        "The benchmark crashed, hung or was cut: its numbers are not judged.",
        "测试程序崩溃、挂起或输出被截断：其数据不予判定。",
    ),
    remedies=(_NETWORK_LINES, _COUNTERS),
)
NOT_LAUNCHED: Final = Cause(
    slug="collective-not-launched",
    title=Words("The benchmark did not start", "测试程序未能启动"),
    meaning=Words(
        "The launcher or the program stopped before a result: nothing is known of the wire.",
        "启动器或程序在得到首个结果前就停止：对网络一无所知。",
    ),
    remedies=(
        _look(
            "",
            "The line quoted in the reason says what is missing; mend that and run again.",
            "原因中引用的那一行说明缺什么；修复后重试。",
        ),
    ),
)
NO_MPI: Final = Cause(
    slug="collective-built-without-mpi",
    title=Words("The benchmark was built without MPI", "测试程序编译时未启用 MPI"),
    meaning=Words(
        "Every process believes it is rank 0 of its own run: nothing crossed the network, however "
        "good the numbers look.",
        "每个进程都以为自己是独立运行的 0 号进程：无论数据多好看，都没有经过网络。",
    ),
    remedies=(
        _mend(
            "make -C <NCCL-TESTS> MPI=1 MPI_HOME=<MPI>",
            "Builds it with MPI, against the MPI that launches it.",
            "启用 MPI 重新编译，且与启动所用的 MPI 一致。",
            _READS,
        ),
    ),
)

# --- where the fault is -------------------------------------------------------------------------

_KEEP_OUT: Final = _mend(
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
    remedies=(_BELOW, _KEEP_OUT),
)
BAD_RAIL: Final = Cause(
    slug="collective-bad-rail",
    title=Words("One rail of a host is slow", "主机的一条轨道慢"),
    meaning=Words(
        "Its other rails are good, and so is the partner's rail with others: NIC, cable or switch "
        "port of that rail.",
        "其余轨道正常，伙伴的同一轨道与他人也正常：问题在该轨道的网卡、线缆或交换机端口。",
    ),
    remedies=(_BELOW, _PER_RAIL),
)
BAD_PLANE: Final = Cause(
    slug="collective-bad-plane",
    title=Words("One rail is slow on all hosts", "所有主机的同一轨道都慢"),
    meaning=Words(
        "The rail fails on every host tried, and other rails do not: its switches, not the hosts.",
        "该轨道在所有被测主机上都失败，而其他轨道正常：问题在该轨道的交换机而非主机。",
    ),
    remedies=(
        _look(
            "",
            "Have the switches of this rail checked.",
            "请检查该轨道的交换机。",
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
        _look(
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
        _look(
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
    remedies=(_BELOW, _NETWORK_LINES),
)
PARALLEL_ONLY: Final = Cause(
    slug="collective-slow-in-parallel",
    title=Words("Slow only beside others", "仅在并行时变慢"),
    meaning=Words(
        "Alone the pair is good: pairs that run at once share links (ECMP, oversubscription).",
        "单独测试正常：并行的主机对共用链路（ECMP 或收敛比）。",
    ),
    remedies=(
        _look(
            "",
            "Have ECMP hashing and uplink use checked.",
            "请检查 ECMP 散列与上行链路使用率。",
            who="network team",
        ),
    ),
)

SIGNATURES: Final = (
    WRONG_DATA,
    TCP,
    LOSS,
    SLOW_RAIL,
    HALF,
    FEW_NICS,
    NO_GPUDIRECT,
    NVLINK_DOWN,
    NVLINK_DEGRADED,
    NVLS_OFF,
    CONGESTION,
    SLOW,
    UNSTEADY,
    SLOW_ITERATION,
    DIP,
    LATENCY,
    NO_MPI,
    BROKEN_RUN,
    NOT_LAUNCHED,
)
"""What one sweep can show; the checks declare them as their causes."""

RDMA: Final = (RDMA_SLOW, RDMA_PCIE)
PLACES: Final = (BAD_HOST, BAD_RAIL, BAD_PLANE, BAD_PATH, BAD_LEAF, FLEET, PARALLEL_ONLY)
"""What locating can show."""
