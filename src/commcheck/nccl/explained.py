"""Causes below, and in the job's environment, of which a finding in a log is a consequence.

Each explains only what it can lead to: a port that is down is no reason for a duplicate GPU. On
any host of the job, since ranks agree on one network, and an error shows on both ends.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Explained
from commcheck.nccl import causes, causes_errors, causes_hccl, causes_plugins

_NO_RDMA: Final = frozenset(
    cause.slug
    for cause in (
        causes.SOCKET_FALLBACK,
        causes.LIBFABRIC_TCP,
        causes.NO_DEVICE,
        causes.MIXED_NETWORKS,
        causes.NIC_LIST,
        causes.UNEVEN_RAILS,
        causes.CHANNELS_DIFFER,
    )
)
_ON_THE_WIRE: Final = frozenset(
    cause.slug
    for cause in (
        causes_errors.RETRY_EXCEEDED,
        causes_errors.COMPLETION,
        causes_errors.QP_SETUP,
        causes_errors.UNREACHED,
        causes_errors.ASYNC_EVENT,
        causes_errors.TIMEOUT,
    )
)
_NO_EFA: Final = frozenset(
    cause.slug for cause in (causes.SOCKET_FALLBACK, causes.LIBFABRIC_TCP, causes_plugins.EFA_FEWER)
)
_INSIDE: Final = frozenset(
    cause.slug
    for cause in (
        causes.SAME_HOST_SHM,
        causes.SAME_HOST_NET,
        causes.P2P_REFUSED,
        causes_errors.NVLS,
        causes_errors.CUDA,
    )
)
_NPU_LINK: Final = frozenset(
    cause.slug
    for cause in (
        causes_hccl.HCCL_LINK,
        causes_hccl.HCCL_LOSS,
        causes_hccl.HCCL_PAIR,
        causes_hccl.HCCL_PEER,
    )
)

JOB_WIDE: Final = _NO_RDMA | _ON_THE_WIRE
"""Causes that show on every host of a job, whichever of them is at fault."""

EXPLAINED: Final = (
    *(
        Explained(slug, "any-in-job", of=_NO_RDMA | _ON_THE_WIRE)
        for slug in (
            "gid-v1-only",
            "hca-missing",
            "link-down",
            "link-no-cable",
            "ib-manager-missing",
        )
    ),
    *(
        Explained(slug, "any-in-job", of=_NO_EFA)
        for slug in ("efa-not-usable", "efa-device-not-usable", "efa-devices-missing")
    ),
    Explained("env-tcp-forced", "any-in-job", of=_NO_RDMA),
    Explained("env-hca-list", "any-in-job", of=_NO_RDMA),
    Explained("env-gid-index", "any-in-job", of=_ON_THE_WIRE),
    *(
        Explained(slug, "any-in-job", by_loss=True, of=_ON_THE_WIRE)
        for slug in ("pfc-off", "pfc-wrong-priority", "trust-not-dscp", "nic-link-flaps")
    ),
    *(
        Explained(slug, "any-in-job", of=_NPU_LINK)
        for slug in ("npu-link-down", "npu-ip-unset", "npu-net-unreachable", "npu-tls-mixed")
    ),
    Explained("npu-tls-mixed", "any-in-job", of=frozenset({causes_hccl.HCCL_TLS.slug})),
    Explained(
        "gpudirect-unavailable",
        "any-in-job",
        of=frozenset({causes.GDR_OFF.slug, causes_errors.GPU_UNREGISTERED.slug}),
    ),
    Explained(
        "env-gdr-off",
        "any-in-job",
        of=frozenset({causes.GDR_OFF.slug, causes_plugins.EFA_GDR_OFF.slug}),
    ),
    *(
        Explained(slug, "any-in-job", of=_INSIDE)
        for slug in ("nvlink-none", "nvlink-lost", "gpu-lost", "fabric-manager-stopped")
    ),
    *(
        Explained(slug, "any-in-job", of=frozenset({causes_errors.NVLS.slug}))
        for slug in ("fabric-manager-not-running", "nvlink-fabric-not-ready")
    ),
    Explained("env-local-path-off", "any-in-job", of=_INSIDE),
    Explained("env-memlock", "any-in-job", of=frozenset({causes_errors.MEMLOCK.slug})),
    Explained("env-topology-file", "any-in-job", of=frozenset({causes_errors.TOPOLOGY_FILE.slug})),
)
