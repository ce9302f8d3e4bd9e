"""What HCCL's logs can show."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import DRAINED, RESTART, step

HCCL_CODE: Final = Cause(
    slug="hccl-error-code",
    title=Words("HCCL reports an error", "HCCL 上报错误码"),
    meaning=Words(
        "The first code by time is the one to follow; later ones are its consequences.",
        "按时间最早的错误码才是根因，其后的多为连带。",
    ),
    remedies=(
        step("Is the device's port up?", "检查设备端口。", "hccn_tool -i {device} -link -g"),
        step("Read the plog of the rank named.", "查看所列 rank 的 plog。"),
    ),
)
HCCL_MISSING: Final = Cause(
    slug="hccl-ranks-missing",
    title=Words("Ranks never connected to the root", "有 rank 未连上根节点"),
    meaning=Words(
        "The exchange over the hosts' network timed out: these ranks never started, or took "
        "another interface.",
        "主机网络上的信息交换超时：这些 rank 未启动或用了其他接口。",
    ),
    remedies=(
        step("Are their processes there?", "确认进程是否存在。", "pgrep -af python"),
        step(
            "Set HCCL_SOCKET_IFNAME or HCCL_IF_IP alike on all hosts.",
            "在所有主机上统一 HCCL_SOCKET_IFNAME 或 HCCL_IF_IP。",
            before=RESTART,
        ),
    ),
)
HCCL_LINK: Final = Cause(
    slug="hccl-link-failed",
    title=Words("Ranks wait for one that does not answer", "多个 rank 在等待同一个无应答的 rank"),
    meaning=Words(
        "Following who waits for whom ends at this rank: it is late, dead, or its device network "
        "is broken.",
        "沿等待链追到末端即为该 rank：迟到、退出或其设备网络故障。",
    ),
    remedies=(
        step("Link of the device.", "查看设备链路。", "hccn_tool -i {device} -link -g"),
        step(
            "Can a waiting device reach it?",
            "从等待方设备测试可达性。",
            "hccn_tool -i {device} -ping -g address {address}",
        ),
        step(
            "TLS must be equal on both ends.",
            "两端 TLS 开关须一致。",
            "hccn_tool -i {device} -tls -g",
        ),
    ),
)
HCCL_NO_RDMA: Final = Cause(
    slug="hccl-no-rdma",
    title=Words("A link between servers is not RoCE", "跨服务器链路未走 RoCE"),
    meaning=Words(
        "Two ranks on different servers are connected without RDMA.",
        "不同服务器的两个 rank 之间未使用 RDMA。",
    ),
    remedies=(
        step("Is the device's address there?", "检查设备 IP。", "hccn_tool -i {device} -ip -g"),
    ),
)
HCCL_HEARTBEAT: Final = Cause(
    slug="hccl-heartbeat",
    title=Words("The heartbeat names a rank", "心跳指认了某个 rank"),
    meaning=Words(
        "LOST: the process died. STUCK: it does not move. ERROR CQE: its RoCE link lost packets.",
        "LOST：进程退出；STUCK：停滞；ERROR CQE：RoCE 链路丢包。",
    ),
    remedies=(
        step("Link of the device.", "查看设备链路。", "hccn_tool -i {device} -link -g"),
        step("Read this rank's own plog.", "查看该 rank 自身的 plog。"),
    ),
)
HCCL_LATE: Final = Cause(
    slug="hccl-late-rank",
    title=Words("A rank came too late", "有 rank 到达过晚"),
    meaning=Words(
        "The ranks' errors lie further apart than they wait for each other: the last one was late.",
        "各 rank 报错时间差超过等待时限：最后一个 rank 迟到。",
    ),
    remedies=(
        step(
            "What did it do before? Loading data or checkpoints, compiling.",
            "查看它此前在做什么：加载数据、检查点或编译。",
        ),
    ),
)
HCCL_TLS: Final = Cause(
    slug="hccl-tls-differs",
    title=Words("TLS is on only on some devices", "仅部分设备启用 TLS"),
    meaning=Words(
        "Devices with TLS on and off cannot connect.",
        "TLS 开启与关闭的设备之间无法建链。",
    ),
    remedies=(
        step("Shows the switch.", "查看开关。", "hccn_tool -i {device} -tls -g"),
        step(
            "Switches it off.",
            "关闭 TLS。",
            "hccn_tool -i {device} -tls -s enable 0",
            before=DRAINED,
            who="security owner",
        ),
    ),
)
HCCL_DESYNC: Final = Cause(
    slug="hccl-desync",
    title=Words("Ranks fail in different operators", "各 rank 失败于不同算子"),
    meaning=Words(
        "At the same place of one group the ranks ran different operators: the program diverged.",
        "同一通信域的同一位置上各 rank 执行了不同算子：程序分叉。",
    ),
    remedies=(
        step("Look for a branch that depends on data or rank.", "检查依赖数据或 rank 的分支。"),
    ),
)
