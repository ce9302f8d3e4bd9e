"""What a NCCL log can show to be wrong with a cloud's own network plugin."""

from __future__ import annotations

from typing import Final

from commcheck.model import Cause, Words
from commcheck.nccl.causes import RESTART, step

EFA_GDR_OFF: Final = Cause(
    slug="nccl-efa-gdr-off",
    title=Words("EFA does not reach GPU memory", "EFA 无法直接访问 GPU 显存"),
    meaning=Words(
        "NIC traffic is copied through host memory. EFA uses DMA-BUF or its own module "
        "efa_nv_peermem, never nvidia-peermem; one of them is missing, or the container hides it.",
        "网卡数据经主机内存中转。EFA 使用 DMA-BUF 或自带的 efa_nv_peermem 模块，"
        "不使用 nvidia-peermem；两者均缺失，或容器内不可见。",
    ),
    remedies=(
        step(
            "Which driver of EFA, and is its module for GPU memory there?",
            "查看 EFA 驱动版本及其 GPU 显存模块是否加载。",
            "cat /sys/module/efa/version /sys/module/efa_nv_peermem/version",
        ),
        step(
            "Are the GPU's kernel modules the open ones? DMA-BUF wants them.",
            "确认 GPU 内核模块为开源版本，DMA-BUF 需要它。",
            "cat /proc/driver/nvidia/version",
        ),
        step(
            "Install the current EFA installer on the host; images need its libfabric and plugin.",
            "在主机上安装最新 EFA installer；镜像内需包含其 libfabric 与插件。",
            before=Words("Host drained, then rebooted.", "主机已排空，安装后重启。"),
        ),
    ),
)
EFA_FEWER: Final = Cause(
    slug="nccl-efa-devices-fewer",
    title=Words("A host uses fewer EFA devices", "主机使用的 EFA 设备偏少"),
    meaning=Words(
        "The job sees fewer EFA devices there than on its other hosts, and the ring goes at that "
        "host's pace: devices not attached or not opened, or a pod that asked for fewer.",
        "该主机上作业可见的 EFA 设备少于其他主机，整个环受其拖累：设备未挂载、无法打开，"
        "或 Pod 申请的数量偏少。",
    ),
    remedies=(
        step(
            "Which devices does libfabric open where the job runs (in its container)?",
            "查看作业运行环境（容器内）libfabric 可打开的设备。",
            "fi_info -p efa",
        ),
        step(
            "The same number of vpc.amazonaws.com/efa in all pods, --device=/dev/infiniband in all "
            "containers, and all interfaces in the instance's launch template.",
            "所有 Pod 申请相同数量的 vpc.amazonaws.com/efa，所有容器带 "
            "--device=/dev/infiniband，启动模板挂载全部接口。",
            before=RESTART,
        ),
    ),
)
EFA_PEER: Final = Cause(
    slug="nccl-efa-peer-unresponsive",
    title=Words("An EFA peer does not answer", "EFA 对端无响应"),
    meaning=Words(
        "The peer's process had ended or hangs (handshake failed), or nothing lets EFA through "
        "between the two instances (never established, unreachable).",
        "对端进程已退出或挂起（handshake failed），或两台实例间的 EFA 流量未被放行"
        "（never established、unreachable）。",
    ),
    remedies=(
        step(
            "Read the log of the peer named in the line first: mostly it failed before.",
            "先查看该行所指对端的日志：多数情况下对端先出错。",
        ),
        step(
            "Where it never worked: the security group must let all traffic of its own members in "
            "and out, and all instances must be in one zone (EFA is not routed between zones).",
            "若从未连通：安全组须放行组内全部出入流量，"
            "且所有实例位于同一可用区（EFA 不跨可用区）。",
            before=Words("The account's owner agrees.", "已获账号负责人同意。"),
            who="network team",
        ),
    ),
)
SETTING_REFUSED: Final = Cause(
    slug="nccl-setting-refused",
    title=Words("The provider's plugin refuses a setting", "云厂商插件拒绝了某项设置"),
    meaning=Words(
        "Google's plugins compare the job's NCCL variables with those of the machine type, and end "
        "a job that differs in one that they enforce.",
        "谷歌云插件会将作业的 NCCL 变量与机型要求比对，若强制项不符则终止作业。",
    ),
    remedies=(
        step(
            "Take the value that the line expects out of the provider's own profile "
            "(/usr/local/gib/scripts/set_nccl_env.sh, nccl-env-profile.sh), and set no other.",
            "采用厂商环境脚本给出的期望值（/usr/local/gib/scripts/set_nccl_env.sh、"
            "nccl-env-profile.sh），不要另行设置。",
            before=RESTART,
        ),
    ),
)
