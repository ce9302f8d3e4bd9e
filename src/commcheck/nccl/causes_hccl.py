"""What HCCL's logs can show."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import DRAINED, RESTART, step

_PLOGS: Final = step(
    "Collect the plog folders (debug and run) of all ranks.",
    "收集所有 rank 的 plog 目录（debug 与 run）。",
)

HCCL_CODE: Final = Cause(
    slug="hccl-error-code",
    title=Words("HCCL reports an error", "HCCL 上报错误"),
    meaning=Words(
        "The first error by time is the one to follow; later ones are its consequences.",
        "按时间最早的错误才是根因，其后的多为连带。",
    ),
    remedies=(
        step(
            "Read the plog of the rank named, from this line on, and CANN's text on the code.",
            "从该行起查看所列 rank 的 plog，并查阅该错误码的 CANN 说明。",
        ),
        _PLOGS,
    ),
)
HCCL_PEER: Final = Cause(
    slug="hccl-peer-silent",
    title=Words("A rank waited for another in vain", "rank 等待对端超时"),
    meaning=Words(
        "Who reports this is the victim. At fault is a rank with another error, one with none, or "
        "the way between two that wait for each other.",
        "报错方是受害者。根因在于报其他错误的 rank、没有报错的 rank，"
        "或互等的两个 rank 之间的链路。",
    ),
    remedies=(
        _PLOGS,
        step("Link of the device.", "查看设备链路。", "hccn_tool -i {device} -link -g"),
    ),
)
HCCL_VARIABLE: Final = Cause(
    slug="hccl-bad-variable",
    title=Words("HCCL refuses a variable", "HCCL 环境变量取值无效"),
    meaning=Words(
        "HCCL names the variable, and what it may be.",
        "报错中给出了变量名及允许的取值。",
    ),
    remedies=(
        step(
            "Set the variable that the line names within its range, or unset it, on all hosts.",
            "在所有主机上将该变量改为允许的取值，或取消设置。",
            before=RESTART,
        ),
    ),
)
HCCL_RANK_TABLE: Final = Cause(
    slug="hccl-rank-table",
    title=Words("The rank table does not fit the devices", "rank table 与实际设备不符"),
    meaning=Words(
        "The rank table, or what the ranks gathered in place of one, has a field that is missing, "
        "is there twice, or is not what the device has.",
        "rank table（或由各 rank 协商得到的集群信息）中有字段缺失、重复，或与设备实际不一致。",
    ),
    remedies=(
        step("Shows the device's address.", "查看设备 IP。", "hccn_tool -i {device} -ip -g"),
        step(
            "Mend the field that the line names: device_ip as shown, super_device_id of each "
            "device once, as npu-smi info -t spod-info shows it.",
            "按报错修正对应字段：device_ip 与查询结果一致；super_device_id 不重复，"
            "以 npu-smi info -t spod-info 的输出为准。",
            before=RESTART,
        ),
    ),
)
HCCL_VERSIONS: Final = Cause(
    slug="hccl-versions-differ",
    title=Words("CANN differs between ranks", "各 rank 的 CANN 版本不一致"),
    meaning=Words(
        "Two ranks run different releases of HCCL. Often an image of another tag.",
        "两个 rank 的 HCCL 版本不同，常见于镜像标签不一致。",
    ),
    remedies=(
        step(
            "Shows the release, in the job's container on both hosts.",
            "在两台主机的作业容器内查看版本。",
            "cat /usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info",
        ),
        step("Start all ranks from one image.", "所有 rank 使用同一镜像启动。", before=RESTART),
    ),
)
HCCL_HOST_PORT: Final = Cause(
    slug="hccl-host-port-taken",
    title=Words("A port of the host is taken", "主机侧端口被占用"),
    meaning=Words(
        "HCCL binds ports of the host from HCCL_IF_BASE_PORT on (60000), and another process has "
        "one of them.",
        "HCCL 从 HCCL_IF_BASE_PORT（默认 60000）起绑定主机端口，其中有端口被其他进程占用。",
    ),
    remedies=(
        step("Shows who has the ports.", "查看占用端口的进程。", "ss -ltnp"),
        step(
            "Give each job on the host its own HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE, "
            "and reserve it in net.ipv4.ip_local_reserved_ports.",
            "为同一主机上的各作业设置不同的 HCCL_IF_BASE_PORT 或 HCCL_HOST_SOCKET_PORT_RANGE，"
            "并加入 net.ipv4.ip_local_reserved_ports。",
            before=RESTART,
        ),
    ),
)
HCCL_NPU_PORT: Final = Cause(
    slug="hccl-npu-port-taken",
    title=Words("A port of the NPU is taken", "NPU 侧端口被占用"),
    meaning=Words(
        "Every process binds port 16666 of its NPU, and two processes share this one. In a job "
        "that trains and serves on the same NPUs this is meant, and none of them is left over.",
        "每个进程默认绑定 NPU 的 16666 端口，而该 NPU 上有两个进程。"
        "训推共卡时这是预期行为，并非残留进程。",
    ),
    remedies=(
        step("Shows the processes on each NPU.", "查看各 NPU 上的进程。", "npu-smi info"),
        step(
            "Where they are meant to share: HCCL_NPU_SOCKET_PORT_RANGE=auto, or a range, for all "
            "ranks.",
            "若确需共卡：为所有 rank 设置 HCCL_NPU_SOCKET_PORT_RANGE=auto 或端口范围。",
            before=RESTART,
        ),
        step(
            "With a rank table: another device_port for each process of the NPU.",
            "使用 rank table 时：为同一 NPU 的各进程配置不同的 device_port。",
            before=RESTART,
        ),
    ),
)
HCCL_LEFT: Final = Cause(
    slug="hccl-process-left",
    title=Words("The last job still holds the NPU", "上一个作业仍占用 NPU"),
    meaning=Words(
        "HCCL's link process did not start, mostly since that of a job before still runs.",
        "HCCL 的建链进程未能启动，多因上一个作业的进程尚未退出。",
    ),
    remedies=(
        step("Shows the processes on each NPU.", "查看各 NPU 上的进程。", "npu-smi info"),
        step(
            "End what is left of the last job; start again 10 s after its last process is gone.",
            "结束上一个作业的残留进程，待全部退出 10 秒后再启动。",
            before=Words("No job that runs owns them.", "确认不属于正在运行的作业。"),
        ),
    ),
)
HCCL_LOSS: Final = Cause(
    slug="hccl-roce-loss",
    title=Words("RoCE between two NPUs lost packets", "两个 NPU 之间 RoCE 丢包"),
    meaning=Words(
        "The retries ran out without an answer: the network between them drops packets, or the "
        "other process ended before.",
        "重传次数用尽仍无应答：两端之间的网络丢包，或对端进程已提前退出。",
    ),
    remedies=(
        step("Did the link flap?", "查看链路是否闪断。", "hccn_tool -i {device} -link_stat -g"),
        step("Counters of the port.", "查看端口计数。", "hccn_tool -i {device} -stat -g"),
        step(
            "Does the way work now? From the server that got no answer.",
            "从无应答一侧测试当前连通性。",
            "ssh {waiter} hccn_tool -i {device} -ping -g address {address}",
        ),
        step("Did the other rank end first? Its plog.", "查看对端 plog，确认是否先退出。"),
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
            "Can a waiting device reach it? hccn_tool -ip -g on it shows its address.",
            "从等待方设备测试可达性（其 IP 用 hccn_tool -ip -g 查询）。",
            "ssh {waiter} hccn_tool -i {waiter_device} -ping -g address {address}",
        ),
        step(
            "TLS must be equal on both ends.",
            "两端 TLS 开关须一致。",
            "hccn_tool -i {device} -tls -g",
        ),
    ),
)
HCCL_PAIR: Final = Cause(
    slug="hccl-pair-cut",
    title=Words("Two ranks wait for each other in vain", "两个 rank 互相等待建链超时"),
    meaning=Words(
        "Both tried to make the link and neither reached the other: the network between their "
        "devices is cut, TLS differs, or one was too late.",
        "两端均已发起建链但互不可达：设备间网络不通、TLS 不一致，或其中一端过晚。",
    ),
    remedies=(
        step(
            "Does one device reach the other? hccn_tool -ip -g there shows its address.",
            "测试一端到另一端的连通性（对端 IP 用 hccn_tool -ip -g 查询）。",
            "ssh {waiter} hccn_tool -i {waiter_device} -ping -g address {address}",
        ),
        step(
            "And back?",
            "再测试反方向。",
            "ssh {peer} hccn_tool -i {device} -ping -g address {waiter_address}",
        ),
        step(
            "TLS must be equal on both ends.",
            "两端 TLS 开关须一致。",
            "hccn_tool -i {device} -tls -g",
        ),
        step(
            "Did both give up within HCCL_CONNECT_TIMEOUT? Else look at what the later one did.",
            "两端报错时间差是否小于 HCCL_CONNECT_TIMEOUT？否则排查较晚一端此前在做什么。",
        ),
    ),
)
HCCL_SUPER_POD: Final = Cause(
    slug="hccl-super-pod-id",
    title=Words("One super pod is declared, there are two", "不同物理超节点被配置为同一逻辑超节点"),
    meaning=Words(
        "HCCL takes HCCS for ranks of one logical super pod, and between two physical ones there "
        "is none.",
        "同一逻辑超节点内 HCCL 选用 HCCS 建链，而两个物理超节点之间没有 HCCS。",
    ),
    remedies=(
        step(
            "Shows the physical super pod.",
            "查看物理超节点 ID。",
            "npu-smi info -t spod-info -i <NPU> -c <CHIP>",
        ),
        step(
            "Unset HCCL_LOGIC_SUPERPOD_ID, or give each physical super pod its own.",
            "取消 HCCL_LOGIC_SUPERPOD_ID，或为每个物理超节点设置不同的值。",
            before=RESTART,
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
    title=Words("The heartbeat names a rank", "心跳异常定位到某个 rank"),
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
    title=Words("Ranks call different collectives", "各 rank 调用的集合通信算子不一致"),
    meaning=Words(
        "At the same place of one group the ranks ran different operators, or with different "
        "arguments: the program diverged.",
        "同一通信域的同一位置上，各 rank 的算子或参数不同：各 rank 执行流不一致。",
    ),
    remedies=(
        step("Look for a branch that depends on data or rank.", "检查依赖数据或 rank 的分支。"),
        step(
            "HCCL_ENTRY_LOG_ENABLE=1 writes each call into the run plogs: compare the ranks.",
            "设置 HCCL_ENTRY_LOG_ENABLE=1 后，每次调用会记录到 run plog，可逐 rank 对比。",
            before=RESTART,
        ),
    ),
)
