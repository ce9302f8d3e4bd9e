"""What an environment can show to be wrong."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import READS, RESTART, step


def cause_of(
    slug: str,
    title: Words,
    meaning: Words,
    effect: Words,
    command: str = "",
    before: Words | None = None,
) -> Cause:
    """A cause with one step: a command that shows more, or what to do at the next start."""
    before = before or (READS if command else RESTART)
    return Cause(slug, title, meaning, (step(effect.en, effect.zh, command, before=before),))


MISSPELT: Final = cause_of(
    "env-misspelt",
    Words("A variable that nobody reads", "变量名无人识别"),
    Words(
        "NCCL and HCCL ignore unknown names without a word: the setting has no effect.",
        "NCCL 与 HCCL 会静默忽略未知变量名：该设置不起作用。",
    ),
    Words(
        "Correct the name, or take it out. A site's own plugin: name its variables in "
        "commcheck_nccl_known.",
        "改正名称或删除。站点自有插件的变量前缀请写入 commcheck_nccl_known。",
    ),
)
NO_EFFECT: Final = cause_of(
    "env-no-effect",
    Words("A variable without effect", "变量不起作用"),
    Words(
        "The library in use does not know it (any more, or yet), or another setting makes it "
        "useless.",
        "当前库版本不认识它（已移除或尚未引入），或被其他设置抵消。",
    ),
    Words("Take it out, or use what replaced it.", "删除，或改用替代它的变量。"),
)
NOT_A_NUMBER: Final = cause_of(
    "env-not-a-number",
    Words("A number that is read otherwise", "数值被误读"),
    Words(
        "NCCL converts leading digits and takes 0 where there are none, without a complaint: "
        "'true' is 0, '8M' is 8, '010' is 8.",
        "NCCL 只转换开头的数字，没有数字则取 0，且不报错：'true' 为 0，'8M' 为 8，'010' 为 8。",
    ),
    Words("Write a plain decimal number.", "写成普通十进制数。"),
)
OUT_OF_RANGE: Final = cause_of(
    "env-out-of-range",
    Words("A value that is too small or too large", "取值过小或过大"),
    Words(
        "The value is illegal, or gives up on a busy fabric long before it should.",
        "取值非法，或在繁忙网络上过早放弃。",
    ),
    Words("Unset it: the default fits.", "取消设置：默认值即可。"),
)
STRAY_TEXT: Final = cause_of(
    "env-stray-text",
    Words("A value with more in it than was meant", "取值中混入了多余内容"),
    Words(
        "Blanks, quotes, comments and carriage returns become a part of the value: a list matches "
        "less than it should, a name nothing at all.",
        "空格、引号、注释和回车都会成为取值的一部分：列表匹配变少，名称则完全不匹配。",
    ),
    Words(
        "Remove what is named here: the blank, the quotes, the comment, the DOS line end.",
        "删除此处指出的内容：空格、引号、注释或 DOS 换行。",
    ),
)
CONF_SYNTAX: Final = cause_of(
    "env-conf-syntax",
    Words("Not the syntax of a configuration file", "配置文件语法不对"),
    Words(
        "nccl.conf takes NAME=value and nothing else: no export, no blanks, quotes or comments "
        "behind a value, no DOS line ends.",
        "nccl.conf 只接受 NAME=value：不支持 export、空格、引号、行尾注释和 DOS 换行。",
    ),
    Words("Write the line as NAME=value.", "改写为 NAME=value。"),
)
OVERRIDDEN: Final = cause_of(
    "env-overridden",
    Words("NCCL uses another value than was set", "NCCL 实际使用的值与设置不同"),
    Words(
        "A file, the program or a plugin overrides what the job's environment says, or the value "
        "was read otherwise than it was meant.",
        "配置文件、程序或插件覆盖了作业环境变量，或该值的解析与本意不同。",
    ),
    Words("Set it in one place only.", "只在一处设置。"),
)
RANKS_DIFFER: Final = cause_of(
    "env-ranks-differ",
    Words("Ranks of one job have different settings", "同一作业各 rank 的设置不同"),
    Words(
        "Ranks choose algorithms and connections by these settings. Where they differ the job "
        "hangs, fails, or is as slow as the worst.",
        "各 rank 据此选择算法与连接方式；不一致会导致挂起、失败，或被最慢者拖累。",
    ),
    Words(
        "Set it once for all: in the job's template, or with mpirun -x for every rank.",
        "统一设置：写入作业模板，或用 mpirun -x 传给每个 rank。",
    ),
)
TCP_FORCED: Final = cause_of(
    "env-tcp-forced",
    Words("The environment forces TCP", "环境变量强制使用 TCP"),
    Words(
        "RDMA is switched off by a variable, though the hosts have it: a tenth of the bandwidth "
        "or less.",
        "主机支持 RDMA，却被环境变量关闭：带宽只剩十分之一甚至更低。",
    ),
    Words(
        "Unset it: it is mostly left over from a search for another fault.",
        "取消该变量：多为排查其他故障时遗留。",
    ),
)
NO_SUCH_NETWORK: Final = cause_of(
    "env-no-such-network",
    Words("NCCL_NET names no network", "NCCL_NET 指定的网络不存在"),
    Words(
        "NCCL knows IB (InfiniBand and RoCE), Socket and the names of plugins. Init fails.",
        "NCCL 只认识 IB（含 RoCE）、Socket 和插件名称。初始化会失败。",
    ),
    Words("Unset it, or set NCCL_NET=IB.", "取消设置，或设为 NCCL_NET=IB。"),
)
HCA_LIST: Final = cause_of(
    "env-hca-list",
    Words("The list of HCAs does not fit the host", "HCA 列表与主机不符"),
    Words(
        "NCCL_IB_HCA matches beginnings of names: too few NICs, a NIC that is no training rail, "
        "or NICs of two kinds are used.",
        "NCCL_IB_HCA 按前缀匹配：可能用少了网卡、用到非训练网卡，或混用两类网卡。",
    ),
    Words(
        "Name every rail of the host, exactly: NCCL_IB_HCA==mlx5_0,mlx5_1,... (one '=' more makes "
        "it exact).",
        "精确列出主机的每条轨：NCCL_IB_HCA==mlx5_0,mlx5_1,...（多一个 '=' 表示精确匹配）。",
    ),
)
GID: Final = cause_of(
    "env-gid-index",
    Words("The GID index does not fit the ports", "GID 索引与端口不符"),
    Words(
        "The index points to nothing, to RoCE v1 or to a link-local address on some port: "
        "connections fail, or the packets carry no DSCP.",
        "该索引在某些端口为空、为 RoCE v1 或链路本地地址：连接失败，或报文不带 DSCP。",
    ),
    Words(
        "NCCL 2.21 and newer: unset it. Older: the index of the RoCE v2 address, the same on all "
        "ports.",
        "NCCL 2.21 及以上：取消设置。更早版本：设为所有端口一致的 RoCE v2 地址索引。",
    ),
)
TRAFFIC_CLASS: Final = cause_of(
    "env-traffic-class",
    Words("The traffic class is not lossless", "流量类未进入无损队列"),
    Words(
        "The job's packets ride in a priority without PFC: they are dropped under load, and RDMA "
        "resends whole windows.",
        "作业报文所在优先级未启用 PFC：负载下丢包，RDMA 整窗重传。",
    ),
    Words(
        "NCCL_IB_TC is the DSCP times 4 (plus 2 for ECN): DSCP 26 is 106.",
        "NCCL_IB_TC 等于 DSCP 乘 4（ECN 再加 2）：DSCP 26 对应 106。",
    ),
)
GDR_OFF: Final = cause_of(
    "env-gdr-off",
    Words("The environment switches GPU Direct off", "环境变量关闭了 GPU Direct"),
    Words(
        "Data takes a detour over host memory, or over the link between the CPUs.",
        "数据绕行主机内存，或绕行 CPU 互联。",
    ),
    Words("Unset it.", "取消设置。"),
)
PATH_LEVEL: Final = cause_of(
    "env-path-level",
    Words("A path level that NCCL ignores", "NCCL 忽略的路径级别"),
    Words(
        "Levels are upper-case words (LOC NVL PIX PXB PHB SYS). Anything else is ignored without "
        "a word.",
        "级别必须是大写单词（LOC NVL PIX PXB PHB SYS），其他写法会被静默忽略。",
    ),
    Words("Write it in upper case, or unset it.", "改为大写，或取消设置。"),
)
LOCAL_PATH: Final = cause_of(
    "env-local-path-off",
    Words("The way inside a host is switched off", "主机内通路被关闭"),
    Words(
        "GPUs of one host talk through host memory or the NIC instead of NVLink.",
        "同一主机的 GPU 之间改走主机内存或网卡，而非 NVLink。",
    ),
    Words("Unset it.", "取消设置。"),
)
TUNING: Final = cause_of(
    "env-tuning-forced",
    Words("A tuning variable is left on", "遗留的调优变量"),
    Words(
        "NCCL's own choice by size and topology is switched off, or limited.",
        "NCCL 按消息大小与拓扑的自动选择被关闭或受限。",
    ),
    Words(
        "Unset it, unless a measurement on this fabric says otherwise.",
        "除非在本网络实测有益，否则取消设置。",
    ),
)
RAIL_ONLY: Final = cause_of(
    "env-rail-only",
    Words("Traffic would leave its rail", "流量会离开所属轨"),
    Words(
        "The fabric connects only NICs of the same rail, and this setting makes ranks cross.",
        "网络只连通同轨网卡，而该设置会让 rank 跨轨通信。",
    ),
    Words(
        "NCCL_CROSS_NIC=0 or 2, NCCL_PXN_DISABLE unset.",
        "NCCL_CROSS_NIC=0 或 2，不设 PXN_DISABLE。",
    ),
)
INTERFACE: Final = cause_of(
    "env-interface",
    Words("The interface's name does not fit", "网络接口名称不符"),
    Words(
        "Ranks find each other over this interface: they fail, hang, or use another one than was "
        "meant.",
        "各 rank 通过该接口互相发现：名称不符会失败、挂起或用错接口。",
    ),
    Words(
        "Shows the names. NCCL takes beginnings, gloo only whole names.",
        "查看接口名。NCCL 按前缀匹配，gloo 只接受完整名称。",
    ),
    "ip -br addr",
)
LOGGING: Final = cause_of(
    "env-logging",
    Words("NCCL's log is lost, or floods", "NCCL 日志丢失或泛滥"),
    Words(
        "Warnings are silenced, files overwrite each other, or gigabytes slow the job down.",
        "告警被静默、日志互相覆盖，或海量日志拖慢作业。",
    ),
    Words(
        "NCCL_DEBUG=WARN always, INFO for an audit; NCCL_DEBUG_FILE=/var/log/nccl.%h.%p.",
        "平时 NCCL_DEBUG=WARN，审计时用 INFO；NCCL_DEBUG_FILE=/var/log/nccl.%h.%p。",
    ),
)
TORCH: Final = cause_of(
    "env-torch",
    Words("PyTorch waits, blocks or hangs", "PyTorch 等待、阻塞或挂起"),
    Words(
        "The watchdog is off or waits in the host's thread: a fault hangs for ever, or "
        "communication no longer overlaps.",
        "看门狗被关闭或在主线程等待：故障时永久挂起，或通信无法重叠。",
    ),
    Words(
        "Unset it; the names begin with TORCH_NCCL_ since PyTorch 2.2.",
        "取消设置；自 PyTorch 2.2 起变量以 TORCH_NCCL_ 开头。",
    ),
)
IDENTITY: Final = cause_of(
    "env-job-identity",
    Words("Jobs or hosts cannot be told apart", "作业或主机无法区分"),
    Words(
        "A fixed meeting point or host id: jobs meet each other, or hosts pass for one.",
        "固定的汇合点或主机标识：不同作业会相互连接，或多台主机被当作一台。",
    ),
    Words("Unset it: the launcher sets what is needed.", "取消设置：启动器会自动设置。"),
)
OTHER_STACK: Final = cause_of(
    "env-stacks-differ",
    Words("UCX and NCCL use different rails or marks", "UCX 与 NCCL 使用的轨或标记不同"),
    Words(
        "Two stacks of one job ride on different NICs or traffic classes.",
        "同一作业的两套通信栈走不同网卡或流量类。",
    ),
    Words("Set both alike.", "两者保持一致。"),
)
LIBRARIES: Final = cause_of(
    "env-libraries-differ",
    Words("Hosts preload different NCCL libraries", "各主机预加载的 NCCL 库不同"),
    Words(
        "Ranks of one job run different releases: they hang or fail at init.",
        "同一作业的各 rank 运行不同版本：初始化时挂起或失败。",
    ),
    Words("One image for all hosts; no LD_PRELOAD.", "所有主机使用同一镜像；不使用 LD_PRELOAD。"),
)
SHARED_MEMORY: Final = cause_of(
    "env-shared-memory",
    Words("The container's /dev/shm is small", "容器 /dev/shm 太小"),
    Words(
        "The default of 64 MiB is too small for NCCL's buffers and PyTorch's data loaders.",
        "默认 64 MiB 不足以容纳 NCCL 缓冲区与 PyTorch 数据加载器。",
    ),
    Words(
        "Mount an emptyDir with medium: Memory at /dev/shm, or --shm-size=16g.",
        "将 medium: Memory 的 emptyDir 挂载到 /dev/shm，或使用 --shm-size=16g。",
    ),
)
MEMLOCK: Final = cause_of(
    "env-memlock",
    Words("The job's ranks may lock too little memory", "作业进程可锁定内存过小"),
    Words(
        "Buffers are locked when they are registered with a NIC: beyond the limit that fails, and "
        "NCCL with it.",
        "向网卡注册缓冲区需要锁定内存：超出限制即注册失败，NCCL 随之失败。",
    ),
    Words(
        "Shows the limit. Raise it where the job is started: LimitMEMLOCK=infinity of the "
        "scheduler's daemon, --ulimit memlock=-1 or IPC_LOCK of the container; then start anew.",
        "查看限制。在启动作业处放开：调度器守护进程的 LimitMEMLOCK=infinity、"
        "容器的 --ulimit memlock=-1 或 IPC_LOCK，然后重启作业。",
    ),
    "grep locked /proc/<PID>/limits",
)
TOPOLOGY_FILE: Final = cause_of(
    "env-topology-file",
    Words("The topology that NCCL is told does not fit", "提供给 NCCL 的拓扑与主机不符"),
    Words(
        "The file is missing where the rank looks, is no topology, or is another machine's: NCCL "
        "then pairs GPUs and NICs wrongly, or by guess, without a warning.",
        "文件在 rank 视角下缺失、不是拓扑文件，或属于另一种机型：NCCL 会错误配对或"
        "猜测 GPU 与网卡的邻近关系，且不告警。",
    ),
    Words(
        "Shows what NCCL itself sees. On bare metal unset NCCL_TOPO_FILE; in a virtual machine "
        "mount the provider's file of this machine type into the container.",
        "查看 NCCL 实际看到的拓扑。物理机请取消 NCCL_TOPO_FILE；"
        "虚拟机请将云厂商该机型的文件挂载进容器。",
    ),
    "NCCL_TOPO_DUMP_FILE=/tmp/topo.xml all_reduce_perf -b 8 -e 8 -g 8",
    Words(
        "No job on the GPUs: a run of eight bytes uses all of them.",
        "GPU 上没有作业：这次八字节的运行会用到全部 GPU。",
    ),
)
RAS_OPEN: Final = cause_of(
    "env-ras-open",
    Words("NCCL's RAS port is open to others", "NCCL RAS 端口对外开放"),
    Words(
        "The port asks for no password: whoever reaches it reads hosts, pids and settings of the "
        "job, and may change what it records.",
        "该端口无需口令：能访问者可读取作业的主机、进程与设置，并可更改其记录内容。",
    ),
    Words("Unset it: localhost:28028 is the default.", "取消设置：默认为 localhost:28028。"),
)
HCCL_VALUE: Final = cause_of(
    "env-hccl-value",
    Words("An HCCL value that does not fit", "HCCL 取值不符"),
    Words(
        "The value is outside of its range, or two settings that belong together do not agree.",
        "取值超出范围，或成对的设置不一致。",
    ),
    Words(
        "Set what is wanted here, alike on all ranks. Time-outs of a large job are there for a "
        "reason: unset, HCCL waits 120 s for all to connect.",
        "按此处要求设置，且所有 rank 一致。大规模作业放宽的超时自有其原因：取消设置后 HCCL "
        "仅等待 120 秒建链。",
    ),
)
RANK_TABLE: Final = cause_of(
    "env-rank-table",
    Words("The rank table contradicts itself", "rank table 自相矛盾"),
    Words(
        "Ranks find each other by this file. HCCL refuses one whose numbers do not fit (EI0004, "
        "EI0014); two ranks with one address reach the wrong NPU, and all wait until HCCL gives up "
        "connecting.",
        "各 rank 依此文件互相连接。编号或数量不符时 HCCL 拒绝启动（EI0004、EI0014）；"
        "地址重复会连到错误的 NPU，所有 rank 一直等到建链超时。",
    ),
    Words(
        "Shows the address that an NPU has. Write the file anew from all of them.",
        "查看 NPU 的实际地址；据此重新生成该文件。",
    ),
    "hccn_tool -i 0 -ip -g",
)
HCCL_TUNING: Final = cause_of(
    "env-hccl-tuning",
    Words("An HCCL debugging aid is left on", "遗留的 HCCL 调试设置"),
    Words(
        "Logs or checks slow every step, or hide the evidence of a fault.",
        "日志或检查会拖慢每一步，或掩盖故障证据。",
    ),
    Words("Unset it.", "取消设置。"),
)
