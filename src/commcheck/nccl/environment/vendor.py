"""Variables of PyTorch and HCCL that are known, and what HCCL's may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TORCH: Final = frozenset(
    f"TORCH_NCCL_{name}"
    for name in [
        "ASYNC_ERROR_HANDLING",
        "AVOID_RECORD_STREAMS",
        "BLOCKING_WAIT",
        "COORD_CHECK_MILSEC",
        "CUDA_EVENT_CACHE",
        "DEBUG_INFO_PIPE_FILE",
        "DEBUG_INFO_TEMP_FILE",
        "DESYNC_DEBUG",
        "DUMP_ON_TIMEOUT",
        "ENABLE_MONITORING",
        "ENABLE_TIMING",
        "HEARTBEAT_TIMEOUT_SEC",
        "HIGH_PRIORITY",
        "LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
        "NAN_CHECK",
        "PROPAGATE_ERROR",
        "RANKS_PER_ROOT",
        "RETHROW_CUDA_ERRORS",
        "SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
        "TRACE_BUFFER_SIZE",
        "TRACE_CPP_STACK",
        "USE_COMM_NONBLOCKING",
        "USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "WAIT_TIMEOUT_DUMP_MILSEC",
        "EXTRA_DUMP_ON_EXEC",
    ]
)
"""PyTorch's own variables (torch 2.2 to 2.13, ProcessGroupNCCL)."""

Range = tuple[int, int]

HCCL_RANGES: Final[Mapping[str, Range]] = {
    "HCCL_IF_BASE_PORT": (1024, 65520),
    "HCCL_CONNECT_TIMEOUT": (120, 7200),
    "HCCL_EXEC_TIMEOUT": (0, 2147483647),
    "HCCL_RDMA_TC": (0, 255),
    "HCCL_RDMA_SL": (0, 7),
    "HCCL_RDMA_TIMEOUT": (5, 24),
    "HCCL_RDMA_RETRY_CNT": (1, 7),
    "HCCL_RDMA_QPS_PER_CONNECTION": (1, 32),
    "HCCL_MULTI_QP_THRESHOLD": (1, 8192),
    "HCCL_INTRA_PCIE_ENABLE": (0, 1),
    "HCCL_INTRA_ROCE_ENABLE": (0, 1),
    "HCCL_BUFFSIZE": (1, 1 << 31),
    "HCCL_WHITELIST_DISABLE": (0, 1),
    "HCCL_ENTRY_LOG_ENABLE": (0, 1),
    "HCCL_DIAGNOSE_ENABLE": (0, 1),
    "ASCEND_GLOBAL_LOG_LEVEL": (0, 4),
}
"""Least and largest value (CANN environment variable reference)."""

HCCL_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "HCCL_SOCKET_FAMILY": ("AF_INET", "AF_INET6"),
    "HCCL_INTER_HCCS_DISABLE": ("TRUE", "FALSE"),
    "HCCL_DETERMINISTIC": ("false", "true", "strict"),
}
HCCL_ANY_CASE: Final = frozenset({"HCCL_INTER_HCCS_DISABLE", "HCCL_DETERMINISTIC"})
"""Of these the words may be in capitals or not (gitcode.com/cann/hccl, alg_env_config.cc)."""

HCCL_WITHOUT_BLANKS: Final = frozenset(
    {"HCCL_ALGO", "HCCL_DFS_CONFIG", "HCCL_OP_RETRY_ENABLE", "HCCL_OP_RETRY_PARAMS"}
)
"""HCCL takes blanks out of these before it reads them (the same file; CANN's and MindCluster's
documents write ``L1:1, L2:1``)."""

HCCL_LEVELS: Final = ("level0", "level1", "level2", "level3")
HCCL_ALGORITHMS: Final = (
    *("NA", "ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC"),
    *("pipeline", "pairwise", "fullmesh", "null"),
)
HCCL_OPERATIONS: Final = (
    *("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"),
    *("gather", "scatter", "send", "receive", "sendrecv"),
)
"""Words of HCCL_ALGO (envref_07_0079; gitcode.com/cann/hcomm, the parser of its variables)."""

HCCL: Final = frozenset(
    {
        *HCCL_RANGES,
        *HCCL_WORDS,
        "HCCL_IF_IP",
        "HCCL_SOCKET_IFNAME",
        "HCCL_HOST_SOCKET_PORT_RANGE",
        "HCCL_NPU_SOCKET_PORT_RANGE",
        "HCCL_ALGO",
        "HCCL_OP_EXPANSION_MODE",
        "HCCL_WHITELIST_FILE",
        "HCCL_DFS_CONFIG",
        "HCCL_OP_RETRY_ENABLE",
        "HCCL_OP_RETRY_PARAMS",
        "HCCL_LOGIC_SUPERPOD_ID",
        "HCCL_DEBUG_CONFIG",
    }
)
