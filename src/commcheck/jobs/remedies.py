"""Steps that several causes of collectives have in common, the ones that only read first."""

from __future__ import annotations

from typing import Final

from commcheck.model import Remedy, Words

READS: Final = Words("None, it only reads.", "无，只读。")
DRAINED: Final = Words("The host is drained.", "主机已排空。")
BUILDS: Final = Words(
    "None: it writes into the benchmark's own folder.", "无：只写入测试程序自己的目录。"
)
IDLE: Final = Words(
    "No job on these hosts: it fills their links meanwhile.",
    "相关主机上没有作业：期间会占满其链路。",
)


def look(command: str, en: str, zh: str, who: str = "operator", *, accelerator: str = "") -> Remedy:
    """A step that only reads. ``accelerator``: "gpu" or "npu" where it knows only those."""
    return Remedy(
        command=command,
        effect=Words(en, zh),
        precondition=READS,
        who=who,
        accelerator=accelerator,
    )


def mend(
    command: str,
    en: str,
    zh: str,
    before: Words = DRAINED,
    who: str = "operator",
    *,
    accelerator: str = "",
) -> Remedy:
    """A step that changes or loads something; ``before``: what must hold first."""
    return Remedy(
        command=command,
        effect=Words(en, zh),
        precondition=before,
        who=who,
        accelerator=accelerator,
    )


COUNTERS: Final = (
    look(
        "grep . /sys/class/infiniband/*/ports/1/hw_counters/*",
        "Read before and after a run: numbers that grow confirm loss, numbers that stand rule it "
        "out.",
        "在运行前后各读一次：数值增长则证实丢包，不变则排除丢包。",
        accelerator="gpu",
    ),
    look(
        "hccn_tool -i <NPU> -stat -g",
        "Ascend, before and after a run: roce_new_pkt_rty_num and roce_out_of_order_num that grow "
        "confirm loss, numbers that stand rule it out.",
        "昇腾：在运行前后各读一次，roce_new_pkt_rty_num 与 roce_out_of_order_num "
        "增长则证实丢包，不变则排除丢包。",
        accelerator="npu",
    ),
)
NETWORK_LINES: Final = (
    look(
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET",
        "Set it for the run: the lines NET/IB, NET/Socket and GDRDMA say which path each channel "
        "took.",
        "在运行时设置：NET/IB、NET/Socket 与 GDRDMA 行会说明每个通道走的路径。",
        accelerator="gpu",
    ),
    look(
        "commcheck analyze log ~/ascend/log",
        "Ascend: reads HCCL's own logs of every host; HCCL_ENTRY_LOG_ENABLE=1, set for the run, "
        "adds each call.",
        "昇腾：读取各主机的 HCCL 日志；运行时设置 HCCL_ENTRY_LOG_ENABLE=1 会记录每次调用。",
        accelerator="npu",
    ),
)
PER_RAIL: Final = (
    mend(
        "ib_write_bw -d <HCA> -x <GID> -F --report_gbits -s 8388608 -n 5000 <PARTNER>",
        "One rail at a time between two hosts: the slow one shows. It loads the link for seconds.",
        "在两台主机间逐轨测试：慢的轨会显现。会占满链路数秒。",
        IDLE,
        accelerator="gpu",
    ),
    mend(
        "hccn_tool -i <NPU> -roce_test ib_send_bw -s 8388608 -n 1000 address <PARTNER-NPU-IP> -tcp",
        "Ascend, one NPU's port at a time: the slow one shows. Start it on the partner first, "
        "without the address. It loads the link for seconds.",
        "昇腾：逐个 NPU 网口测试，慢的会显现。先在对端启动（不带 address）。会占满链路数秒。",
        IDLE,
        accelerator="npu",
    ),
)
BELOW: Final = look(
    "commcheck run -i <INVENTORY> -t 'physical.*'",
    "Judges links, PCIe, PFC and GPUDirect of the hosts: the sweep's cause usually stands there.",
    "检查主机的链路、PCIe、PFC 与 GPUDirect：带宽问题的原因通常就在其中。",
)
REPEAT_ALONE: Final = mend(
    "commcheck run -i <INVENTORY> --allow load -t physical.collective-pairs",
    "Repeats the pair with nothing beside it. It loads the fabric for a minute.",
    "单独重测该主机对。会使网络满载约一分钟。",
    IDLE,
)
