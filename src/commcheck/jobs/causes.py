"""What a collective benchmark can show, with remedies, the least drastic first.

Shared by the checks that launch and by the offline analysis. A sweep alone never proves why it is
slow: the first remedy of a signature reads the fact that settles it.
"""

from __future__ import annotations

from typing import Final

from commcheck.jobs.causes_runs import BROKEN_RUN as BROKEN_RUN
from commcheck.jobs.causes_runs import NO_MPI as NO_MPI
from commcheck.jobs.causes_runs import NOT_LAUNCHED as NOT_LAUNCHED
from commcheck.jobs.causes_runs import OTHER_RUN as OTHER_RUN
from commcheck.jobs.remedies import (
    BELOW,
    COUNTERS,
    IDLE,
    NETWORK_LINES,
    PER_RAIL,
    REPEAT_ALONE,
    look,
    mend,
)
from commcheck.model import Cause, Words

WRONG_DATA: Final = Cause(
    slug="collective-wrong-data",
    title=Words("Wrong data in a collective", "集合通信结果数据错误"),
    meaning=Words(
        "Elements arrived with wrong values: memory, link or library is at fault, and a training "
        "run on these hosts learns from garbage. Its bandwidth proves nothing.",
        "有元素的值错误：显存、链路或通信库有故障，在这些主机上训练会学到错误数据。其带宽不说明任何问题。",
    ),
    remedies=(
        look(
            "nvidia-smi -q -d ECC,ROW_REMAPPER; dmesg | grep -i xid",
            "Shows memory errors and driver faults of each GPU.",
            "显示各 GPU 的内存错误与驱动故障。",
            accelerator="gpu",
        ),
        mend(
            "dcgmi diag -r 3",
            "Tests memory and links for minutes; the GPUs must be idle.",
            "对显存与链路做数分钟测试，GPU 必须空闲。",
            accelerator="gpu",
        ),
        look(
            "npu-smi info -t ecc -i <NPU> -c <CHIP>; npu-smi info -t health -i <NPU> -c <CHIP>",
            "Ascend: shows memory errors and alarms of each NPU; the ranks that told of wrong data "
            "say which to ask first.",
            "昇腾：显示各 NPU 的内存错误与告警；先查报告数据错误的 rank 所在 NPU。",
            accelerator="npu",
        ),
        mend(
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
        *NETWORK_LINES,
        look(
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
        *COUNTERS,
        BELOW,
        look(
            "",
            "Have PFC, DSCP mapping and discards checked on every switch of the path.",
            "请检查路径上每台交换机的 PFC、DSCP 映射与丢包计数。",
            who="network team",
        ),
    ),
)
SLOW_RAIL: Final = Cause(
    slug="collective-slow-rail",
    title=Words("One slow rail holds all back", "一条慢轨拖慢全部"),
    meaning=Words(
        "A clean, steady curve at a fraction of the bound. Traffic is spread evenly, so the "
        "slowest rail times their number is what all reach: a NIC that linked up slower fits.",
        "曲线平稳，但只有上限的一部分。流量均分到各轨，整体等于最慢轨乘以轨数：符合某网卡以较低速率协商的情形。",
    ),
    remedies=(BELOW, *PER_RAIL),
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
    remedies=(BELOW, *PER_RAIL, *NETWORK_LINES),
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
        *NETWORK_LINES,
        look(
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
        BELOW,
        mend(
            "modprobe nvidia_peermem",
            "Loads the module that lets NICs reach GPU memory; running jobs do not notice.",
            "加载让网卡访问显存的模块；不影响运行中的作业。",
            Words("Root; the RDMA stack is loaded.", "需要 root；RDMA 协议栈已加载。"),
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
        look(
            "nvidia-smi nvlink -s; nvidia-smi topo -m; systemctl status nvidia-fabricmanager",
            "Shows links, the paths between GPUs and the service that NVSwitch needs.",
            "显示链路、GPU 间路径以及 NVSwitch 所需服务的状态。",
        ),
        mend(
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
        look(
            "nvidia-smi nvlink -s; nvidia-smi -q -d PERFORMANCE",
            "Shows inactive links and reasons for throttling.",
            "显示失效链路与降频原因。",
            accelerator="gpu",
        ),
        look(
            "npu-smi info -t topo; npu-smi info -t health -i <NPU> -c <CHIP>",
            "Ascend: shows the links between NPUs, and alarms of each.",
            "昇腾：显示 NPU 间的链路以及各 NPU 的告警。",
            accelerator="npu",
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
        look(
            "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS",
            "The line 'NVLS multicast support' says why; NCCL_NVLS_ENABLE=0 turns it off.",
            "“NVLS multicast support” 行会说明原因；NCCL_NVLS_ENABLE=0 会将其关闭。",
        ),
        look(
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
        REPEAT_ALONE,
        look(
            "grep . /sys/class/infiniband/*/ports/1/hw_counters/*cnp*",
            "Grows where the fabric marks congestion.",
            "网络标记拥塞时该计数增长。",
            accelerator="gpu",
        ),
        look(
            "hccn_tool -i <NPU> -stat -g",
            "Ascend: roce_rx_cnp_pkt_num grows where the fabric marks congestion.",
            "昇腾：网络标记拥塞时 roce_rx_cnp_pkt_num 增长。",
            accelerator="npu",
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
    remedies=(BELOW, *NETWORK_LINES, *PER_RAIL),
)
UNSTEADY: Final = Cause(
    slug="collective-unsteady",
    title=Words("Results differ from repeat to repeat", "多次结果差异大"),
    meaning=Words(
        "Repeats of one size differ by more than healthy fabrics do.",
        "同一大小的多次结果差异超过正常范围。",
    ),
    remedies=(*COUNTERS, REPEAT_ALONE),
)
SLOW_ITERATION: Final = Cause(
    slug="collective-slow-iteration",
    title=Words("Single slow iterations", "个别迭代变慢"),
    meaning=Words(
        "One iteration took much longer than the others: a hiccup of one process or link.",
        "某次迭代明显慢于其他：某个进程或链路出现瞬时停顿。",
    ),
    remedies=(
        look(
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
    remedies=(REPEAT_ALONE,),
)
LATENCY: Final = Cause(
    slug="collective-latency-high",
    title=Words("Small messages are slow", "小消息延迟高"),
    meaning=Words(
        "Small messages take several times what this kind of run takes: TCP, CPU power states or a "
        "NIC far from its GPU.",
        "小消息耗时是同类运行的数倍：可能是 TCP、CPU 节能状态，或网卡与 GPU 距离过远。",
    ),
    remedies=(*NETWORK_LINES,),
)
RDMA_SLOW: Final = Cause(
    slug="rdma-pair-slow",
    title=Words("A NIC pair is below its line rate", "网卡对低于线速"),
    meaning=Words(
        "perftest between two NICs does not reach the payload share of the line.",
        "两块网卡间的 perftest 未达到线速的有效载荷比例。",
    ),
    remedies=(BELOW, *COUNTERS),
)
RDMA_FALLS: Final = Cause(
    slug="rdma-pair-falls",
    title=Words("A NIC pair slows down with large messages", "网卡对在大消息下变慢"),
    meaning=Words(
        "Smaller messages fill the line and larger ones do not: packets are lost or paused on the "
        "way, or the far memory cannot take them. One QP alone may dip at 1 MiB.",
        "较小的消息可达线速而较大的不能：途中丢包或被暂停，或对端内存来不及接收。"
        "单个 QP 在 1 MiB 处可能略有下降。",
    ),
    remedies=(
        *COUNTERS,
        mend(
            "ib_write_bw -d <HCA> -x <GID> -F --report_gbits -q 8 -s 8388608 -n 5000 <PARTNER>",
            "Several QPs: full speed now clears the wire. It loads the link for seconds.",
            "使用多个 QP：若恢复全速则链路正常。会占满链路数秒。",
            IDLE,
        ),
        BELOW,
    ),
)
RDMA_PCIE: Final = Cause(
    slug="rdma-pair-pcie-limited",
    title=Words("A NIC pair at half of its line", "网卡对只有线速一半"),
    meaning=Words(
        "Steady at what PCIe Gen4 x16 or Gen5 x8 carries: the slot, not the wire, is the limit.",
        "稳定在 PCIe Gen4 x16 或 Gen5 x8 的能力：瓶颈是插槽而不是链路。",
    ),
    remedies=(
        look(
            "lspci -vv -s <PCI> | grep -E 'LnkCap|LnkSta'",
            "Shows width and speed of the slot beside what the card can do.",
            "显示插槽实际宽度与速率，并与网卡能力对比。",
        ),
        mend(
            "",
            "Reseat the card or riser, or move it to a full slot.",
            "重新插拔网卡或转接卡，或换到全速插槽。",
            who="vendor",
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
    OTHER_RUN,
    BROKEN_RUN,
    NOT_LAUNCHED,
)
"""What one sweep can show; the checks declare them as their causes."""
