"""What a NCCL log can show to have gone wrong while the job ran."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import DRAINED, RESTART, step

RETRY_EXCEEDED: Final = Cause(
    slug="nccl-ib-retry-exceeded",
    title=Words("RDMA packets got no answer", "RDMA 报文无应答"),
    meaning=Words(
        "Status 12: the NIC sent again and again and got no acknowledgement. At the start the path "
        "does not work (GID, VLAN, MTU, ACL, route); after hours a link flapped, PFC paused too "
        "long, or the peer died.",
        "状态 12：网卡反复重传仍未收到确认。启动时出现说明路径不通（GID、VLAN、MTU、ACL、路由）；"
        "运行数小时后出现则为链路抖动、PFC 风暴或对端退出。",
    ),
    remedies=(
        step("Was the link down?", "检查链路是否断过。", "rdma link show"),
        step(
            "Does RDMA work between the two, with the same GID?",
            "用相同 GID 测试两端 RDMA。",
            "ib_write_bw -d {hca} -x {gid_index} {peer}",
            before=Words(
                "Host drained: it loads the link; a server side runs on the peer.",
                "主机已排空：会产生负载；对端需先启动服务端。",
            ),
        ),
        step("Errors and pauses of the port.", "查看端口错误与暂停计数。", "ethtool -S {netdev}"),
    ),
)
COMPLETION: Final = Cause(
    slug="nccl-ib-completion-error",
    title=Words("An RDMA operation failed", "RDMA 操作失败"),
    meaning=Words(
        "4 and 10: memory keys, often ACS, IOMMU or a buffer freed too early. 9: the ranks "
        "disagree on sizes. 11: the remote side broke. 13: the receiver hung.",
        "4、10：内存键问题，常见于 ACS、IOMMU 或缓冲区过早释放；9：两端大小不一致；"
        "11：对端故障；13：接收端挂起。",
    ),
    remedies=(
        step("Read the peer's log of the same moment.", "查看对端同一时刻的日志。"),
        step("Is ACS on between GPU and NIC?", "检查 GPU 与网卡间是否启用 ACS。", "lspci -vvv"),
    ),
)
QP_SETUP: Final = Cause(
    slug="nccl-qp-setup-failed",
    title=Words("An RDMA connection was not set up", "RDMA 连接建立失败"),
    meaning=Words(
        "22: the GID at this index is empty. 19, 61: there is no such index. A link-local GID of "
        "the peer: its index is not the one of RoCE v2.",
        "22：该索引的 GID 为空；19、61：索引不存在；对端 GID 为链路本地地址：索引不是 RoCE v2 的。",
    ),
    remedies=(
        step("Which GIDs does the port have?", "查看端口的 GID 表。", "show_gids {hca}"),
        step(
            "Unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer choose by themselves), or set the index "
            "that is right on every port.",
            "取消 NCCL_IB_GID_INDEX（2.21 起自动选择），或设为每个端口都正确的索引。",
            before=RESTART,
        ),
    ),
)
UNREACHED: Final = Cause(
    slug="nccl-rdma-peer-unreachable",
    title=Words("A RoCE address cannot be reached", "RoCE 地址不可达"),
    meaning=Words(
        "110, 113, 101 when a connection is set up: no route, a wrong VLAN, or two rails of a "
        "fabric that connects only equal ones. Trees and point-to-point cross rails where rings "
        "do not, so the start may work.",
        "建立连接时出现 110、113、101：无路由、VLAN 错误，或网络只互通同号轨。"
        "树形与点对点通信会跨轨而环不会，因此启动可能正常。",
    ),
    remedies=(
        step(
            "From this NIC's address: does the peer's NIC answer?",
            "从本网卡地址测试对端网卡是否应答。",
            "ping -c3 -I {address} {peer_address}",
        ),
        step("Which GIDs does the port have?", "查看端口的 GID 表。", "show_gids {hca}"),
        step(
            "Where only rails of one number reach each other: NCCL_CROSS_NIC=0.",
            "若仅同号轨互通：设置 NCCL_CROSS_NIC=0。",
            before=RESTART,
        ),
    ),
)
MEMLOCK: Final = Cause(
    slug="nccl-memlock",
    title=Words("Memory could not be registered", "内存注册失败"),
    meaning=Words(
        "The process may not lock enough memory for RDMA, or uses too many queue pairs.",
        "进程可锁定的内存不足，或队列对过多。",
    ),
    remedies=(
        step(
            "Shows the limit of the process.",
            "查看进程的限制。",
            "grep -i locked /proc/{pid}/limits",
        ),
        step(
            "memlock unlimited in limits.conf or the container (--ulimit memlock=-1).",
            "在 limits.conf 或容器中设置 memlock 无限制（--ulimit memlock=-1）。",
            before=RESTART,
        ),
    ),
)
GPU_UNREGISTERED: Final = Cause(
    slug="nccl-gpu-memory-unregistered",
    title=Words("The NIC cannot register GPU memory", "网卡无法注册 GPU 显存"),
    meaning=Words(
        "GPU Direct RDMA is tried and refused: nvidia-peermem is missing or of another driver, the "
        "NIC's driver knows no DMA-BUF, or the GPU has no GPU Direct (GeForce).",
        "尝试 GPU Direct RDMA 被拒绝：缺少 nvidia-peermem 或与驱动版本不符，网卡驱动不支持 "
        "DMA-BUF，或该 GPU 不支持 GPU Direct（GeForce）。",
    ),
    remedies=(
        step(
            "Is the module there, and of the running driver?",
            "检查模块是否加载、是否与当前驱动一致。",
            "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; dmesg -T | grep -i peer",
        ),
        step(
            "With NCCL_NET_GDR_LEVEL=LOC the job runs through host memory, slower: if it does, GPU "
            "Direct is what is refused. NCCL_DMABUF_ENABLE=0 leaves DMA-BUF alone out.",
            "设置 NCCL_NET_GDR_LEVEL=LOC 后作业经主机内存运行（较慢）：若能运行，说明被拒绝的是 "
            "GPU Direct。NCCL_DMABUF_ENABLE=0 只关闭 DMA-BUF。",
            before=RESTART,
        ),
    ),
)
ASYNC_EVENT: Final = Cause(
    slug="nccl-ib-async-event",
    title=Words("The NIC reported an event", "网卡上报异步事件"),
    meaning=Words(
        "A port went down and up, or the device failed: cable, transceiver, switch port; news of "
        "the subnet manager or of an address alone is mostly harmless.",
        "端口断通或设备故障：线缆、光模块、交换机端口；仅子网管理器或地址变化通常无害。",
    ),
    remedies=(
        step("When did the port change?", "查看端口变化时间。", "dmesg -T"),
        step(
            "Check cable and transceiver.", "检查线缆与光模块。", who="network team", before=DRAINED
        ),
    ),
)
SHM: Final = Cause(
    slug="nccl-shm-too-small",
    title=Words("Shared memory is too small", "共享内存空间不足"),
    meaning=Words(
        "A container has 64 MiB by default; stale files of killed jobs fill it, too.",
        "容器默认 64 MiB；被终止作业的残留文件也会占满。",
    ),
    remedies=(
        step("How full is it, and with what?", "查看占用情况。", "df -h /dev/shm"),
        step(
            "--shm-size=16g, or an emptyDir of medium Memory; --ipc=host.",
            "--shm-size=16g 或 Memory 类型 emptyDir；--ipc=host。",
            before=RESTART,
        ),
    ),
)
DUPLICATE_GPU: Final = Cause(
    slug="nccl-duplicate-gpu",
    title=Words("Two ranks on one GPU", "两个 rank 使用同一 GPU"),
    meaning=Words(
        "LOCAL_RANK was not used to choose the device, or CUDA_VISIBLE_DEVICES is wrong.",
        "未按 LOCAL_RANK 选择设备，或 CUDA_VISIBLE_DEVICES 有误。",
    ),
    remedies=(
        step(
            "torch.cuda.set_device(LOCAL_RANK) before init_process_group.",
            "在 init_process_group 之前调用 torch.cuda.set_device(LOCAL_RANK)。",
            before=RESTART,
        ),
    ),
)
CUDA: Final = Cause(
    slug="nccl-cuda-failure",
    title=Words("A CUDA call failed", "CUDA 调用失败"),
    meaning=Words(
        "A failed GPU, or an error of the program that NCCL only met.",
        "GPU 故障，或程序自身错误被 NCCL 遇到。",
    ),
    remedies=(
        step("Is there an Xid at that time?", "查看当时是否有 Xid。", "dmesg -T"),
        step("How is the GPU?", "查看 GPU 状态。", "nvidia-smi -q -d ECC,PAGE_RETIREMENT"),
    ),
)
GPU_MEMORY: Final = Cause(
    slug="nccl-gpu-memory-full",
    title=Words("No GPU memory was left for NCCL", "GPU 显存不足"),
    meaning=Words(
        "The program, or another process on the same GPU, took what NCCL needs for its buffers: "
        "some for each communicator and channel.",
        "程序本身或同一 GPU 上的其他进程占满显存，NCCL 无法分配缓冲区（随通信域与通道数增长）。",
    ),
    remedies=(
        step(
            "Who holds memory on the GPU? One left over from an earlier job?",
            "查看占用显存的进程，是否有上个作业的残留。",
            "nvidia-smi --query-compute-apps=gpu_bus_id,pid,used_memory --format=csv",
        ),
        step(
            "Leave room: a smaller batch, fewer communicators, or a smaller NCCL_BUFFSIZE or "
            "NCCL_MAX_NCHANNELS, which costs bandwidth.",
            "预留显存：减小 batch、减少通信域，或减小 NCCL_BUFFSIZE、NCCL_MAX_NCHANNELS"
            "（会降低带宽）。",
            before=RESTART,
        ),
    ),
)
MISMATCH: Final = Cause(
    slug="nccl-collective-mismatch",
    title=Words("Ranks call different collectives", "各 rank 调用的集合通信不一致"),
    meaning=Words(
        "Sizes or settings differ: another collective, NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, or "
        "another version.",
        "大小或设置不同：集合通信不同、NCCL_ALGO、NCCL_PROTO、NCCL_BUFFSIZE 或版本不同。",
    ),
    remedies=(
        step("Compare the NCCL_* settings of the ranks.", "比较各 rank 的 NCCL_* 设置。"),
        step(
            "TORCH_DISTRIBUTED_DEBUG=DETAIL for one run shows the first call that differs.",
            "用 TORCH_DISTRIBUTED_DEBUG=DETAIL 运行一次，定位首个不一致的调用。",
            before=RESTART,
        ),
    ),
)
NVLS: Final = Cause(
    slug="nccl-nvls-failed",
    title=Words("NVLink SHARP does not work", "NVLink SHARP 不可用"),
    meaning=Words(
        "Multicast memory over NVSwitch could not be set up, or only on some ranks: Fabric "
        "Manager, a virtual machine without it, or, where it says out of memory, all multicast "
        "slots of the switches are taken by communicators.",
        "无法建立 NVSwitch 组播，或只有部分 rank 可用：Fabric Manager 异常、虚拟机不支持；"
        "若提示 out of memory，则交换机的组播槽位已被各通信域占满。",
    ),
    remedies=(
        step(
            "Is each GPU registered with the fabric (Completed, Success)?",
            "检查各 GPU 是否已注册到 NVLink 网络（Completed、Success）。",
            "nvidia-smi --query-gpu=index,fabric.state,fabric.status --format=csv",
        ),
        step("Does the manager run?", "检查是否运行。", "systemctl status nvidia-fabricmanager"),
        step(
            "NCCL_NVLS_ENABLE=0 lets the job run without it, over NVLink alone and slower.",
            "NCCL_NVLS_ENABLE=0 可让作业绕过该功能，仅用 NVLink，速度较慢。",
            before=RESTART,
        ),
        step(
            "Only where one of the first two says no: restart the manager.",
            "仅当前两项异常时：重启该服务。",
            "systemctl restart nvidia-fabricmanager",
            before=DRAINED,
        ),
    ),
)
TOPOLOGY_FILE: Final = Cause(
    slug="nccl-topology-file",
    title=Words("The topology is not what it should be", "拓扑信息有误"),
    meaning=Words(
        "NCCL_TOPO_FILE cannot be read or is of another machine; NCCL guesses instead, in silence.",
        "NCCL_TOPO_FILE 无法读取或属于其他机型；NCCL 会静默自行猜测。",
    ),
    remedies=(
        step(
            "Mount the file of this machine type in the container, or unset NCCL_TOPO_FILE.",
            "在容器中挂载本机型的文件，或取消 NCCL_TOPO_FILE。",
            before=RESTART,
        ),
    ),
)
MNNVL: Final = Cause(
    slug="nccl-mnnvl-broken",
    title=Words("NVLink between hosts does not work", "跨主机 NVLink 不可用"),
    meaning=Words(
        "The rack has multi-node NVLink, and the IMEX domain is not up.",
        "机柜具备跨主机 NVLink，但 IMEX 域未就绪。",
    ),
    remedies=(step("Is IMEX running everywhere?", "检查各节点 IMEX。", "nvidia-imex-ctl -N"),),
)
NODES: Final = Cause(
    slug="nccl-nodes-miscounted",
    title=Words("NCCL counts the hosts wrongly", "NCCL 识别的主机数不对"),
    meaning=Words(
        "Containers with other host names on one machine count as several and talk over the "
        "network; cloned NCCL_HOSTID counts as one.",
        "同机的多个容器主机名不同会被当作多台并走网络；NCCL_HOSTID 相同则被当作一台。",
    ),
    remedies=(
        step(
            "One container a host, or one NCCL_HOSTID for all containers of a machine.",
            "一台主机一个容器，或为同机容器设置相同的 NCCL_HOSTID。",
            before=RESTART,
        ),
    ),
)
SLOW_INIT: Final = Cause(
    slug="nccl-slow-init",
    title=Words("Init is slow", "初始化缓慢"),
    meaning=Words(
        "A large bootstrap share: a slow or wrong interface, or a late rank; connections: queue "
        "pair set-up.",
        "bootstrap 占比大：接口慢或选错，或有 rank 迟到；connections 占比大：队列对建立慢。",
    ),
    remedies=(
        step(
            "Set NCCL_SOCKET_IFNAME to a fast interface.",
            "将 NCCL_SOCKET_IFNAME 设为高速接口。",
            before=RESTART,
        ),
    ),
)
TIMEOUT: Final = Cause(
    slug="nccl-collective-timeout",
    title=Words("A collective did not end", "集合通信超时"),
    meaning=Words(
        "All ranks but some reached the same collective: the late ones hang or died; or the fabric "
        "lost it.",
        "除个别外所有 rank 都到达同一集合通信：迟到者挂起或已退出，或网络丢失。",
    ),
    remedies=(
        step("Where does the late rank stand?", "查看迟到 rank 停在何处。", "py-spy dump -p {pid}"),
        step(
            "Collect the flight recorder dumps of all ranks.",
            "收集所有 rank 的 flight recorder 转储。",
        ),
    ),
)
DESYNC: Final = Cause(
    slug="nccl-collective-desync",
    title=Words("Ranks wait in different collectives", "各 rank 停在不同的集合通信"),
    meaning=Words(
        "The program took different ways on different ranks: no fault of the network.",
        "程序在不同 rank 上走了不同分支：并非网络问题。",
    ),
    remedies=(
        step(
            "Look for a branch that depends on data or rank between collectives.",
            "检查集合通信之间依赖数据或 rank 的分支。",
        ),
    ),
)
FORCED: Final = Cause(
    slug="nccl-forced-algorithm",
    title=Words("NCCL's choice is overridden", "强制指定了算法或协议"),
    meaning=Words(
        "NCCL_ALGO or NCCL_PROTO is set in a training job, mostly left over from a benchmark.",
        "训练作业中设置了 NCCL_ALGO 或 NCCL_PROTO，多为基准测试遗留。",
    ),
    remedies=(step("Unset them.", "取消设置。", before=RESTART),),
)
UNNAMED: Final = Cause(
    slug="nccl-unnamed-error",
    title=Words("NCCL reports an error of no known kind", "NCCL 报告了未归类的错误"),
    meaning=Words(
        "The text is all there is. Steps '-> N' are the same error on its way up: 1 CUDA, 2 "
        "system, 3 internal, 4 argument, 5 usage, 6 remote, 8 time-out.",
        "只有日志原文可供判断。“-> N”是同一错误逐层返回：1 CUDA，2 系统，3 内部，4 参数，"
        "5 用法，6 远端，8 超时。",
    ),
    remedies=(
        step(
            "What do the lines in front of the first one say, on this host and on its peer?",
            "查看本机及对端首个错误之前的日志。",
        ),
        step(
            "A system error (2): do the limits of the process suffice (open files, locked memory)?",
            "系统错误（2）：检查进程限制（打开文件数、锁定内存）。",
            "cat /proc/{pid}/limits",
        ),
        step(
            "Search for the text in NCCL's issues; start once with NCCL_DEBUG=INFO if it was less.",
            "在 NCCL 的 issue 中搜索该文本；若日志级别较低，用 NCCL_DEBUG=INFO 重新运行一次。",
            before=RESTART,
        ),
    ),
)
