"""What ranks are not given by their launcher, their container or their cluster."""

from __future__ import annotations

from typing import Final

from commcheck.model import Words
from commcheck.nccl.environment.causes import cause_of

NOT_HANDED_ON: Final = cause_of(
    "env-not-handed-on",
    Words("Settings that the launcher does not hand on", "启动器未传递的设置"),
    Words(
        "srun --export without ALL gives the ranks only what it names, and #SBATCH --export holds "
        "for every step of the job. The list is cut at every comma.",
        "srun --export 不含 ALL 时只向各 rank 传递所列变量，#SBATCH --export 对作业的每个 step "
        "同样生效。列表在每个逗号处断开。",
    ),
    Words(
        "Export them in the script and launch with srun --export=ALL; behind #SBATCH --export=NONE "
        "also: export SLURM_EXPORT_ENV=ALL.",
        "在脚本中 export，并以 srun --export=ALL 启动；若有 #SBATCH --export=NONE，"
        "还需 export SLURM_EXPORT_ENV=ALL。",
    ),
)
NO_RDMA_DEVICE: Final = cause_of(
    "env-no-rdma-device",
    Words("The container is given no RDMA device", "容器未获得 RDMA 设备"),
    Words(
        "Nothing in the pod asks for one: NCCL finds no device there and takes TCP between hosts, "
        "without a warning, whatever NCCL_IB_HCA says.",
        "Pod 未申请任何 RDMA 设备：NCCL 在容器内找不到设备，主机间静默回退到 TCP，"
        "与 NCCL_IB_HCA 的取值无关。",
    ),
    Words(
        "Shows the resource's name. Ask for it beside the GPUs (rdma/..., or what the SR-IOV "
        "network names), with IPC_LOCK. A webhook that adds it shows in the running pod: give that "
        "(kubectl get pod -o yaml).",
        "查看资源名称。在 GPU 之外一并申请（rdma/... 或 SR-IOV 网络给出的名称），并加 IPC_LOCK。"
        "若由 webhook 注入，则在运行中的 Pod 可见：请提供 kubectl get pod -o yaml。",
    ),
    "kubectl describe nodes | grep -A 15 ^Allocatable",
)
RANK_TABLE_BEGUN: Final = cause_of(
    "env-rank-table-begun",
    Words("The rank table is not filled in yet", "rank table 尚未填写完成"),
    Words(
        "MindCluster (Ascend Operator, formerly hccl-controller) writes who takes part when every "
        "pod of the job has its NPUs. No rank can begin before; while pods start that is right.",
        "MindCluster（Ascend Operator，旧版为 hccl-controller）在作业的每个 Pod 都分到 NPU 后"
        "才写入成员列表。在此之前所有 rank 都无法开始；Pod 启动期间属正常。",
    ),
    Words(
        "Shows the pods that do not run: describe those of the job. Where all run, look whether "
        "each has the annotation ascend.kubectl.kubernetes.io/ascend-910-configuration, which the "
        "device plugin writes, and read the writer's log: kubectl logs -n mindx-dl "
        "deploy/ascend-operator-manager.",
        "查看未运行的 Pod，并 describe 其中属于该作业的。若全部运行，检查每个 Pod 是否有 device "
        "plugin 写入的注解 ascend.kubectl.kubernetes.io/ascend-910-configuration，并查看写入者"
        "日志：kubectl logs -n mindx-dl deploy/ascend-operator-manager。",
    ),
    "kubectl get pods -A -o wide | grep -v Running",
)
