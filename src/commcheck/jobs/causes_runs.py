"""Why a run says nothing of the wire: it did not start or end, or was not the one asked for."""

from __future__ import annotations

from typing import Final

from commcheck.jobs.remedies import BUILDS, COUNTERS, NETWORK_LINES, look, mend
from commcheck.model import Cause, Words

BROKEN_RUN: Final = Cause(
    slug="collective-run-broken",
    title=Words("The run did not end", "测试未正常结束"),
    meaning=Words(
        "The benchmark crashed, hung or was cut: its numbers are not judged.",
        "测试程序崩溃、挂起或输出被截断：其数据不予判定。",
    ),
    remedies=(*NETWORK_LINES, *COUNTERS),
)
NOT_LAUNCHED: Final = Cause(
    slug="collective-not-launched",
    title=Words("The benchmark did not start", "测试程序未能启动"),
    meaning=Words(
        "The launcher or the program stopped before a result: nothing is known of the wire.",
        "启动器或程序在得到首个结果前就停止：对网络一无所知。",
    ),
    remedies=(
        look(
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
        mend(
            "make -C <NCCL-TESTS> MPI=1 MPI_HOME=<MPI>",
            "Builds it with MPI, against the MPI that launches it.",
            "启用 MPI 重新编译，且与启动所用的 MPI 一致。",
            BUILDS,
            accelerator="gpu",
        ),
        mend(
            "make -C <CANN>/tools/hccl_test MPI_HOME=<MPI> ASCEND_DIR=<CANN>",
            "Ascend: builds hccl_test against the MPI that launches it.",
            "昇腾：用启动所用的 MPI 编译 hccl_test。",
            BUILDS,
            accelerator="npu",
        ),
    ),
)
OTHER_RUN: Final = Cause(
    slug="collective-not-as-asked",
    title=Words("It is not the run that was asked for", "不是所要求的那次测试"),
    meaning=Words(
        "Other ranks or hosts took part than were asked for, or another test ran: the launcher's "
        "list of hosts, its slots or its number of processes say otherwise.",
        "参与的 rank、主机或测试与要求不符：启动器的主机列表、slots 或进程数另有规定。",
    ),
    remedies=(
        look(
            "",
            "Compare the hostfile (its slots), -np and --ntasks with the ranks and hosts named in "
            "the reason.",
            "将 hostfile（及其 slots）、-np、--ntasks 与原因中列出的 rank 和主机对照。",
        ),
    ),
)
