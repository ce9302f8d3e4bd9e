"""What a NCCL log can show to be wrong: where the traffic goes, and why it does not start."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Remedy, Words

READS: Final = Words("None, it only reads.", "无，只读。")
RESTART: Final = Words("At the next start of the job.", "下次启动作业时生效。")
DRAINED: Final = Words("Host drained.", "主机已排空。")


def step(
    en: str, zh: str, command: str = "", *, before: Words = READS, who: str = "operator"
) -> Remedy:
    """One remedy in both languages."""
    return Remedy(command=command, effect=Words(en, zh), precondition=before, who=who)


SOCKET_FALLBACK: Final = Cause(
    slug="nccl-socket-fallback",
    title=Words("NCCL runs over TCP sockets", "NCCL 退回到 TCP 套接字"),
    meaning=Words(
        "The hosts talk over plain TCP instead of RDMA: a tenth of the bandwidth or less.",
        "主机之间走普通 TCP 而非 RDMA：带宽只剩十分之一甚至更低。",
    ),
    remedies=(
        step(
            "Shows whether the RDMA devices are visible where the job runs (in its container).",
            "确认作业运行环境（容器内）能否看到 RDMA 设备。",
            "ibv_devinfo -l",
        ),
        step(
            "Look for NCCL_IB_DISABLE=1, NCCL_NET=Socket or an NCCL_IB_HCA that matches nothing.",
            "检查是否设置了 NCCL_IB_DISABLE=1、NCCL_NET=Socket 或匹配不到设备的 NCCL_IB_HCA。",
            before=RESTART,
        ),
    ),
)
LIBFABRIC_TCP: Final = Cause(
    slug="nccl-libfabric-over-tcp",
    title=Words("Libfabric runs over TCP", "Libfabric 退回到 TCP"),
    meaning=Words(
        "The plugin of EFA and Slingshot was loaded, but found no such device and took libfabric's "
        "TCP provider. 'Using network AWS Libfabric' looks the same either way.",
        "EFA/Slingshot 插件已加载，但未找到设备，改用 libfabric 的 TCP provider。"
        "两种情况下都显示 Using network AWS Libfabric。",
    ),
    remedies=(
        step(
            "Which providers work where the job runs (in its container)? efa or cxi is wanted.",
            "确认作业运行环境（容器内）可用的 provider，应有 efa 或 cxi。",
            "fi_info",
        ),
        step(
            "Give the container the devices (/dev/infiniband for EFA, /dev/cxi* for Slingshot), "
            "attach EFA interfaces to the instance, and unset FI_PROVIDER=tcp.",
            "为容器提供设备（EFA：/dev/infiniband；Slingshot：/dev/cxi*），为实例挂载 EFA 网卡，"
            "并取消 FI_PROVIDER=tcp。",
            before=RESTART,
        ),
    ),
)
NO_DEVICE: Final = Cause(
    slug="nccl-no-rdma-device",
    title=Words("NCCL found no RDMA device", "NCCL 未找到 RDMA 设备"),
    meaning=Words(
        "Driver not loaded, ports down, device not passed into the container, rdma-core missing, "
        "or NCCL_IB_HCA filters all of them out.",
        "驱动未加载、端口未激活、设备未传入容器、缺少 rdma-core，或 NCCL_IB_HCA 把设备全部过滤。",
    ),
    remedies=(
        step(
            "In the container: are there devices, and are their ports ACTIVE?",
            "在容器内确认设备存在且端口为 ACTIVE。",
            "ibv_devinfo",
        ),
        step(
            "Give the container the devices (device plugin, or --device=/dev/infiniband), and "
            "rdma-core with the provider library in the image.",
            "为容器提供设备（设备插件或 --device=/dev/infiniband），"
            "镜像内安装 rdma-core 与驱动库。",
            before=RESTART,
        ),
    ),
)
PLUGIN_MISSING: Final = Cause(
    slug="nccl-plugin-missing",
    title=Words("The network plugin is not used", "未使用网络插件"),
    meaning=Words(
        "This site's fast network needs a plugin. It was not found, or could not be loaded.",
        "本站点的高速网络需要插件，但未找到或加载失败。",
    ),
    remedies=(
        step(
            "Put libnccl-net.so on LD_LIBRARY_PATH in the image, in a version for this NCCL.",
            "在镜像的 LD_LIBRARY_PATH 中放入与此 NCCL 版本匹配的 libnccl-net.so。",
            before=RESTART,
        ),
    ),
)
MIXED_NETWORKS: Final = Cause(
    slug="nccl-mixed-networks",
    title=Words("Ranks use different networks", "各 rank 使用了不同的网络"),
    meaning=Words(
        "Some ranks chose RDMA and others TCP: they cannot talk, init fails or hangs.",
        "部分 rank 选择 RDMA，另一些选择 TCP：无法互通，初始化失败或挂起。",
    ),
    remedies=(
        step(
            "On the hosts that chose Socket: why is there no RDMA device?",
            "在选择 Socket 的主机上排查为何没有 RDMA 设备。",
            "ibv_devinfo -l",
        ),
    ),
)
NIC_LIST: Final = Cause(
    slug="nccl-nic-list-differs",
    title=Words("NCCL sees fewer NICs than it should", "NCCL 看到的网卡数量不对"),
    meaning=Words(
        "A rail is missing, or a NIC that is none of the rails is used.",
        "缺少某条轨的网卡，或使用了不属于训练网络的网卡。",
    ),
    remedies=(
        step("Which ports are down?", "检查哪些端口未激活。", "ibv_devinfo"),
        step(
            "Name the rails exactly: NCCL_IB_HCA==mlx5_0,mlx5_1,...",
            "精确指定各轨的网卡：NCCL_IB_HCA==mlx5_0,mlx5_1,...",
            before=RESTART,
        ),
    ),
)
LINK_TYPE: Final = Cause(
    slug="nccl-link-type",
    title=Words("NICs of the wrong link type", "网卡链路类型不对"),
    meaning=Words(
        "InfiniBand and RoCE ports are mixed, or the type is not what the fabric is: they cannot "
        "talk to each other.",
        "InfiniBand 与 RoCE 端口混用，或类型与网络不符：彼此无法通信。",
    ),
    remedies=(
        step(
            "Shows the configured link type of the port.",
            "查看端口配置的链路类型。",
            "mlxconfig -d {device} query LINK_TYPE_P1",
        ),
        step(
            "Leave other NICs out with NCCL_IB_HCA.",
            "用 NCCL_IB_HCA 排除其他网卡。",
            before=RESTART,
        ),
    ),
)
WRONG_INTERFACE: Final = Cause(
    slug="nccl-wrong-interface",
    title=Words("Bootstrap uses a wrong interface", "引导网络用错了接口"),
    meaning=Words(
        "NCCL_SOCKET_IFNAME matches nothing, or NCCL picked a container bridge, loopback or "
        "link-local address: ranks on other hosts cannot reach it.",
        "NCCL_SOCKET_IFNAME 匹配不到接口，或 NCCL 选中了容器网桥、回环或链路本地地址。",
    ),
    remedies=(
        step("Which interfaces does this host have?", "查看主机有哪些接口。", "ip -br addr"),
        step(
            "Set NCCL_SOCKET_IFNAME to the routable interface, as a prefix all hosts share.",
            "将 NCCL_SOCKET_IFNAME 设为可路由的接口（所有主机通用的前缀）。",
            before=RESTART,
        ),
    ),
)
CONNECT_FAILED: Final = Cause(
    slug="nccl-connect-failed",
    title=Words("A rank could not be connected to", "无法连接到某个 rank"),
    meaning=Words(
        "Refused: the process there is dead or never listened. Timed out or no route: a firewall, "
        "or an interface that others cannot reach.",
        "被拒绝：对端进程已退出或未监听。超时或无路由：防火墙，或接口不可达。",
    ),
    remedies=(
        step("Is the peer reachable from here?", "从本机测试能否到达对端。", "ping -c3 {peer}"),
        step("Read the peer's own log: it failed first.", "查看对端日志：它先出错。"),
    ),
)
RANKS_MISSING: Final = Cause(
    slug="nccl-ranks-missing",
    title=Words("Ranks never arrived", "有 rank 从未到达"),
    meaning=Words(
        "All others wait in init for ranks that were never started, crashed before NCCL, or "
        "belong to another job.",
        "其余 rank 都在初始化中等待：缺席的 rank 未启动、提前崩溃或属于其他作业。",
    ),
    remedies=(
        step(
            "On the hosts named: is the process there, and what does its own log say?",
            "在所列主机上确认进程是否存在，并查看其自身日志。",
            "pgrep -af python",
        ),
    ),
)
INIT_STUCK: Final = Cause(
    slug="nccl-init-stuck",
    title=Words("Init began and did not end", "初始化开始后未完成"),
    meaning=Words(
        "Ranks wait in init: for a path between them that does not work, or for a rank that does "
        "not ask for the same communicator.",
        "部分 rank 停在初始化：它们之间的某条路径不通，或某个 rank 没有创建同一通信域。",
    ),
    remedies=(
        step(
            "Where does the stuck process stand?",
            "查看卡住的进程停在何处。",
            "py-spy dump -p {pid}",
        ),
        step(
            "Test the pair with RDMA alone.", "单独用 RDMA 测试这两台主机。", "rping -c -a {peer}"
        ),
    ),
)
WORLD_SIZE: Final = Cause(
    slug="nccl-world-size",
    title=Words("Ranks disagree on the job's size", "各 rank 对作业规模不一致"),
    meaning=Words(
        "Two jobs share one id or port, a rank was started twice, or the launcher gives different "
        "world sizes.",
        "两个作业共用同一标识或端口、某个 rank 启动了两次，或启动器给出的规模不同。",
    ),
    remedies=(
        step(
            "One rendezvous id and port per job; kill what is left of the last one; no "
            "NCCL_COMM_ID.",
            "每个作业使用独立的会合标识与端口；清理残留进程；不要设置 NCCL_COMM_ID。",
            before=RESTART,
        ),
    ),
)
VERSIONS: Final = Cause(
    slug="nccl-versions-differ",
    title=Words("NCCL versions differ in one job", "同一作业中 NCCL 版本不同"),
    meaning=Words(
        "Ranks of one communicator run different NCCL libraries: they refuse each other or crash.",
        "同一通信域内的 rank 使用了不同的 NCCL 库：会互相拒绝或崩溃。",
    ),
    remedies=(
        step(
            "Which library does the process load?",
            "查看进程加载的是哪个库。",
            "grep -m1 libnccl /proc/{pid}/maps",
        ),
        step(
            "One image on all hosts; no older libnccl in front on LD_LIBRARY_PATH.",
            "所有主机使用同一镜像；LD_LIBRARY_PATH 中不要有更旧的 libnccl。",
            before=RESTART,
        ),
    ),
)
DRIVER_OLD: Final = Cause(
    slug="nccl-driver-too-old",
    title=Words("The CUDA driver is too old", "CUDA 驱动版本过旧"),
    meaning=Words(
        "NCCL was built for a newer CUDA major version than this driver supports.",
        "NCCL 所用的 CUDA 主版本高于驱动所支持的版本。",
    ),
    remedies=(
        step(
            "Shows the driver.",
            "查看驱动版本。",
            "nvidia-smi --query-gpu=driver_version --format=csv",
        ),
        step("Update the driver, or use an older image.", "升级驱动或改用旧镜像。", before=DRAINED),
    ),
)
SAME_HOST_NET: Final = Cause(
    slug="nccl-same-host-over-net",
    title=Words("GPUs of one host talk over the NIC", "同机 GPU 之间走网卡"),
    meaning=Words(
        "Neither peer access nor shared memory works between ranks of one host: switched off by "
        "NCCL_P2P_DISABLE, NCCL_P2P_LEVEL or NCCL_SHM_DISABLE, or each GPU sits in a container of "
        "its own.",
        "同机 rank 之间既不能 P2P 也不能共享内存：被环境变量关闭，或每块 GPU 在独立容器中。",
    ),
    remedies=(
        step(
            "Unset NCCL_P2P_DISABLE, NCCL_P2P_LEVEL and NCCL_SHM_DISABLE.",
            "取消 NCCL_P2P_DISABLE、NCCL_P2P_LEVEL、NCCL_SHM_DISABLE。",
            before=RESTART,
        ),
        step(
            "One container for all GPUs of a host, or a shared IPC namespace and /dev/shm.",
            "一台主机的 GPU 放在同一容器，或共享 IPC 命名空间与 /dev/shm。",
            before=RESTART,
        ),
    ),
)
SAME_HOST_SHM: Final = Cause(
    slug="nccl-same-host-over-shm",
    title=Words("NVLink GPUs talk over host memory", "NVLink GPU 之间走主机内存"),
    meaning=Words(
        "Peer access between GPUs is refused: ACS or IOMMU, NCCL_P2P_DISABLE, or a container "
        "without IPC.",
        "GPU 间 P2P 被拒绝：ACS 或 IOMMU、NCCL_P2P_DISABLE，或容器缺少 IPC。",
    ),
    remedies=(
        step("Can the GPUs reach each other?", "检查 GPU 间能否互访。", "nvidia-smi topo -p2p n"),
        step("Unset NCCL_P2P_DISABLE.", "取消 NCCL_P2P_DISABLE。", before=RESTART),
    ),
)
P2P_REFUSED: Final = Cause(
    slug="nccl-p2p-refused",
    title=Words("GPU peer access is broken", "GPU 点对点访问异常"),
    meaning=Words(
        "NCCL found the link between two GPUs, and access over it is refused or goes a detour.",
        "NCCL 发现两块 GPU 间有链路，但访问被拒绝或绕路。",
    ),
    remedies=(
        step("Are the NVLinks up?", "检查 NVLink 状态。", "nvidia-smi nvlink --status"),
        step("Can the GPUs reach each other?", "检查 GPU 间能否互访。", "nvidia-smi topo -p2p n"),
    ),
)
ZIGZAG: Final = Cause(
    slug="nccl-zigzag-ring",
    title=Words("The ring crosses hosts too often", "环跨主机次数过多"),
    meaning=Words(
        "Ranks are not placed host by host: every visit too many costs two more passes through a "
        "NIC for each byte.",
        "rank 未按主机连续排列：每多进出一次主机，每字节就多经过两次网卡。",
    ),
    remedies=(
        step(
            "Let the launcher fill one host after the other (mpirun --map-by ppr:8:node, srun "
            "--distribution=block, a sorted hostfile), and do not shuffle CUDA_VISIBLE_DEVICES.",
            "让启动器逐台填满主机（mpirun --map-by ppr:8:node、srun --distribution=block、"
            "排序的 hostfile），不要打乱 CUDA_VISIBLE_DEVICES。",
            before=RESTART,
        ),
    ),
)
UNEVEN_RAILS: Final = Cause(
    slug="nccl-rails-uneven",
    title=Words("NICs are used unevenly", "网卡负载不均"),
    meaning=Words(
        "Some NICs carry no channel or far fewer than others: their bandwidth is lost.",
        "部分网卡没有通道或远少于其他网卡：带宽被浪费。",
    ),
    remedies=(
        step(
            "Which GPU is next to which NIC?", "查看 GPU 与网卡的邻接关系。", "nvidia-smi topo -m"
        ),
        step(
            "Check NCCL_IB_HCA, NCCL_TOPO_FILE and NCCL_MAX_NCHANNELS.",
            "检查 NCCL_IB_HCA、NCCL_TOPO_FILE 与 NCCL_MAX_NCHANNELS。",
            before=RESTART,
        ),
    ),
)
GDR_OFF: Final = Cause(
    slug="nccl-gdr-off",
    title=Words("GPU Direct RDMA is off", "GPU Direct RDMA 未启用"),
    meaning=Words(
        "NIC traffic is copied through host memory: nvidia-peermem or DMA-BUF missing, or the NIC "
        "is too far from the GPU.",
        "网卡数据经主机内存中转：缺少 nvidia-peermem 或 DMA-BUF，或网卡离 GPU 太远。",
    ),
    remedies=(
        step("Is the module there?", "检查模块是否加载。", "lsmod | grep nvidia_peermem"),
        step(
            "Loads it; harmless for running jobs.",
            "加载模块，不影响运行中的作业。",
            "modprobe nvidia-peermem",
            before=Words("Root rights.", "需要 root 权限。"),
        ),
        step(
            "How far are NIC and GPU apart? PXB or nearer is wanted. In a virtual machine give the "
            "job the provider's topology file (NCCL_TOPO_FILE).",
            "查看网卡与 GPU 的距离，应为 PXB 或更近。虚拟机中请为作业提供云厂商的拓扑文件"
            "（NCCL_TOPO_FILE）。",
            "nvidia-smi topo -m",
        ),
    ),
)
CROSS_RAIL: Final = Cause(
    slug="nccl-cross-rail",
    title=Words("Traffic leaves its rail", "流量跨轨"),
    meaning=Words(
        "Sender and receiver use different rails on a fabric that only connects equal ones.",
        "在只连接同号轨的网络上，收发两端使用了不同轨。",
    ),
    remedies=(
        step(
            "Set NCCL_CROSS_NIC=0, and name the NICs alike on all hosts.",
            "设置 NCCL_CROSS_NIC=0，并在所有主机上统一网卡命名。",
            before=RESTART,
        ),
    ),
)
CHANNELS_DIFFER: Final = Cause(
    slug="nccl-channels-differ",
    title=Words("Ranks use different channel counts", "各 rank 通道数不同"),
    meaning=Words(
        "NCCL settings differ between the ranks of one communicator.",
        "同一通信域内各 rank 的 NCCL 设置不一致。",
    ),
    remedies=(
        step(
            "Set NCCL_MIN/MAX_NCHANNELS and CTAS alike everywhere, or nowhere.",
            "统一或取消 NCCL_MIN/MAX_NCHANNELS 与 CTAS 设置。",
            before=RESTART,
        ),
    ),
)
