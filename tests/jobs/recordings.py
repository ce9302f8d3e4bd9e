"""The recordings of collectives, and what each must yield: facts, and the verdict on it.

``facts`` are attributes of the run; ``told`` is what its text does not say. Several outputs of one
file are parted by lines ``### case NAME``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from commcheck.jobs.offline import Told

RECORDED = Path(__file__).parents[1] / "recorded" / "collectives"
GPU = Told(nic_gbits=400, rails=8)
TWO = ("gpu-a01", "gpu-a02")


@dataclass(frozen=True)
class Case:
    state: str = "complete"
    ranks: int | None = 16
    hosts: tuple[str, ...] = TWO
    rows: int = 0
    collective: str | None = "all_reduce"
    peak: float | None = None
    first: tuple[float, float] | None = None  # times of the first row
    last: tuple[float, float] | None = None
    average: float | None = None
    bounds: int | None = 0
    version: str = ""
    told: Told = GPU
    verdict: str = "pass"
    cause: str = ""
    also: tuple[str, ...] = ()  # causes of warnings beside it
    says: tuple[str, ...] = ()  # parts of the reason
    facts: dict[str, object] = field(default_factory=dict)


def case(name: str, **kw: object) -> tuple[str, Case]:
    return name, Case(**kw)  # type: ignore[arg-type] # passed on as they are


def hccl(collective: str, ranks: int, hosts: int, reference: float | None = None) -> Told:
    return Told(
        nic_gbits=200,
        rails=8,
        reference_gbytes=reference,
        collective=collective,
        nranks=ranks,
        hosts=hosts,
    )


H100 = {"ranks": 8, "hosts": ("gpu-a01",)}
NPU = {"hosts": (), "average": None}
HCCL8 = hccl("all_reduce", 8, 1, 150)
HCCL16 = hccl("all_reduce", 16, 2, 130)

SWEEPS = dict(
    (
        case(
            "01_allreduce_1node_8xh100_good.txt",
            **H100,
            rows=31,
            peak=479.54,
            average=147.77,
            version="2.17.9",
            first=(12.95, 13.28),
            last=(31588.96, 31513.33),
            says=("102% of 470 GB/s",),
        ),
        case(
            "02_allreduce_2node_16xh100_400g_ring_good.txt",
            rows=11,
            peak=375.4,
            average=241.258,
            first=(315.92, 320.19),
            last=(42904.06, 43387.06),
            says=("94% of 400 GB/s", "8 NICs x 400 Gb/s / 8", "NCCL_ALGO=Ring"),
        ),
        case(
            "03_allreduce_2node_default_algo_above_line_rate.txt",
            rows=12,
            peak=486.61,
            average=316.753,
            says=("a tree may hide",),
        ),
        case(
            "04_allgather_2node_16xh100_400g_good.txt",
            collective="all_gather",
            rows=11,
            peak=363.36,
            average=219.99,
        ),
        case(
            "05_allreduce_2node_tcp_fallback.txt",
            rows=21,
            peak=2.81,
            average=1.3952,
            verdict="fail",
            cause="collective-tcp-fallback",
            says=("1 MiB already", "400 GB/s"),
        ),
        case(
            "06_allreduce_2node_pfc_broken.txt",
            rows=17,
            peak=70.97,
            average=26.1171,
            verdict="fail",
            cause="collective-packet-loss",
            says=("71.0 GB/s at 32 MiB", "both placements differ"),
        ),
        case(
            "07_allreduce_1node_wrong_data.txt",
            ranks=8,
            hosts=("gpu-a03",),
            rows=12,
            peak=472.78,
            average=294.953,
            bounds=6,
            version="2.17.5",
            verdict="fail",
            cause="collective-wrong-data",
            says=("64 MiB, 128 MiB, 1 GiB",),
            facts={
                "wrong": {
                    67108864: (3, 0),
                    134217728: (0, 1),
                    1073741824: (2097150, 524288),  # printed as 2.09715e+06
                }
            },
        ),
        case(
            "08_allreduce_2node_crash_mid_table.txt",
            state="crashed",
            rows=8,
            peak=226.6,
            bounds=None,
            verdict="error",
            cause="collective-run-broken",
            says=("8 of 14 sizes", "gpu-a02", "status=12"),
            facts={"expected_rows": 14},
        ),
        case(
            "09_allreduce_2node_nccl_info_interleaved.txt",
            rows=6,
            peak=362.84,
            average=269.768,
            version="2.17.5",
            says=("carried on",),
            facts={"library": "2.27.7"},
        ),
        case("10_allreduce_2node_v1.json", rows=7, peak=360.91, average=287.971),
        case(
            "10_allreduce_2node_v1.stdout.txt",
            rows=7,
            peak=360.91,
            average=287.971,
            version="2.17.5",
            facts={"json_path": "/tmp/ar.json.0"},
        ),
        case(
            "11_allreduce_2node_per_iter.txt",
            rows=3,
            peak=362.7,
            average=333.876,
            version="2.19.6",
            also=("collective-slow-iteration",),
        ),
        case(
            "11_allreduce_2node_v3_per_iter.json",
            rows=3,
            peak=362.7,
            average=333.876,
            also=("collective-slow-iteration",),
        ),
        case(
            "12_allreduce_1node_timestamps.txt",
            **H100,
            rows=5,
            peak=472.95,
            average=445.972,
            version="2.17.9",
        ),
        case(
            "13_allreduce_1node_unchecked.txt",
            **H100,
            rows=5,
            peak=476.41,
            average=446.011,
            says=("the data was not checked",),
            facts={"validation": False},
        ),
        case(
            "14_alltoall_2node_good.txt",
            collective="alltoall",
            rows=6,
            peak=89.67,
            average=78.1713,
            says=("93.75 GB/s",),
        ),
        case(
            "15_sendrecv_one_rail_good.txt",
            collective="sendrecv",
            ranks=2,
            rows=11,
            peak=47.2,
            average=38.1269,
            says=("one NIC of 400 Gb/s / 8 = 50 GB/s",),
        ),
        case(
            "16_allreduce_2node_one_rail_at_100g.txt",
            hosts=("gpu-a01", "gpu-a04"),
            rows=11,
            peak=95.34,
            average=74.6795,
            verdict="fail",
            cause="collective-slow-rail",
            says=("8 rails at 100 Gb/s", "2 NICs instead of 8"),
        ),
        case(
            "17_allreduce_2node_one_nic_absent.txt",
            hosts=("gpu-a01", "gpu-a05"),
            rows=11,
            peak=188.31,
            average=135.166,
            verdict="fail",
            cause="collective-half-bandwidth",
        ),
        case(
            "18_allreduce_1node_nvlink_down.txt",
            ranks=8,
            hosts=("gpu-a06",),
            rows=13,
            peak=21.57,
            average=17.4828,
            verdict="fail",
            cause="collective-nvlink-down",
        ),
        case(
            "19_allreduce_1node_nvls_off.txt",
            ranks=8,
            hosts=("gpu-a07",),
            rows=14,
            peak=364.37,
            average=246.697,
            verdict="warn",
            cause="collective-nvls-off",
            says=("81% of 450 GB/s",),
        ),
        case(
            "20_allreduce_1node_a100_old_layout_2_9.txt",
            ranks=8,
            hosts=("dgx-01",),
            rows=28,
            peak=227.71,
            average=54.5393,
        ),
        case(
            "21_allgather_1node_a100_old_layout_2_9.txt",
            collective="all_gather",
            ranks=8,
            hosts=("dgx-01",),
            rows=11,
            peak=216.19,
            average=121.58,
        ),
        case(
            "22_allreduce_v1_0_layout_ms.txt",
            ranks=4,
            hosts=("node0",),
            rows=8,
            peak=9.51,
            average=7.95173,
            first=(317, 316),
            told=Told(reference_gbytes=10),
        ),
        case(
            "23_mpirun_of_binary_built_without_mpi.txt",
            state="not_multi_rank",
            collective=None,
            ranks=1,
            average=0,
            verdict="error",
            cause="collective-built-without-mpi",
            facts={"tables": 4, "rows": ()},
        ),
        case("24_allreduce_srun_label.txt", rows=3, peak=358.28, average=336.123),
        case("24_allreduce_tag_output.txt", rows=3, peak=358.28, average=336.123),
        case(
            "25_allreduce_2node_test_timeout.txt",
            state="timeout",
            rows=3,
            peak=122.43,
            bounds=None,
            verdict="error",
            cause="collective-run-broken",
            says=("3 of 11 sizes", "gpu-a02"),
        ),
        case(
            "27_rccl_allreduce_1node_mi300x.txt",
            ranks=8,
            hosts=("mi300-01",),
            rows=8,
            peak=317.69,
            average=289.56,
            version="develop:ae3e635",
            facts={"tool": "rccl-tests"},
        ),
        case(
            "27_rccl_allreduce_in_place_only.txt",
            ranks=8,
            hosts=("mi300-01",),
            rows=3,
            peak=307.85,
            average=294.688,
            version="develop:ae3e635",
        ),
        case(
            "30_hccl_allreduce_1node_8npu_good.txt", **NPU, ranks=8, rows=18, peak=146.7, told=HCCL8
        ),
        case(
            "31_hccl_allreduce_2node_16npu_200g_good.txt", **NPU, rows=18, peak=129.2, told=HCCL16
        ),
        case(
            "32_hccl_allgather_2node_16npu_good.txt",
            **NPU,
            collective="all_gather",
            rows=18,
            peak=121.29,
            told=hccl("all_gather", 16, 2, 130),
        ),
        case(
            "33_hccl_allreduce_2node_bad_bandwidth.txt",
            **NPU,
            rows=18,
            peak=6.16,
            told=HCCL16,
            verdict="fail",
            cause="collective-slow",
        ),
        case(
            "34_hccl_allreduce_check_failed.txt",
            **NPU,
            rows=9,
            peak=115.65,
            bounds=2,
            told=HCCL16,
            verdict="fail",
            cause="collective-wrong-data",
            facts={"failed_ranks": (0, 8, 9)},
        ),
        case(
            "35_hccl_allreduce_unchecked_null.txt",
            **NPU,
            ranks=128,
            rows=4,
            peak=99.92,
            told=hccl("all_reduce", 128, 16),
            verdict="skip",
            facts={"validation": False},
        ),
        case(
            "36_hccl_allreduce_doc_layout_gib.txt",
            **NPU,
            ranks=8,
            rows=14,
            peak=41.18,
            told=hccl("all_reduce", 8, 1),
            verdict="skip",
            facts={"layout": "GiB/s build"},
        ),
        case(
            "37_hccl_retcode7_residual_process.txt",
            **NPU,
            state="launch_failed",
            told=HCCL16,
            verdict="error",
            cause="collective-not-launched",
            says=("left over",),
        ),
        case(
            "38_hccl_root_info_failed.txt",
            **NPU,
            state="launch_failed",
            told=HCCL16,
            verdict="error",
            cause="collective-not-launched",
            says=("HCCL_SOCKET_IFNAME",),
        ),
    )
)

# slug, host and detail of the failure that is told first
FAILURES: dict[str, dict[str, tuple[str, str | None, dict[str, object]]]] = {
    "26_init_failures.txt": {
        "unhandled_system_error": ("bootstrap-connect", "gpu-a02", {"peer": "172.17.0.1"}),
        "cuda_oom": ("cuda-out-of-memory", "gpu-a01", {}),
        "fabric_manager_down": ("fabric-manager-down", "gpu-a06", {}),
        "too_many_gpus": ("too-many-gpus", None, {"requested": 16, "found": 8}),
        "missing_library": ("library-missing", None, {"library": "libnccl.so.2"}),
        "driver_mismatch": ("driver-mismatch", "gpu-a01", {}),
    },
    "39_hccl_mpich_failures.txt": {
        "gethostbyname": ("hostname-unknown", "npu-01", {}),
        "libmpi_missing": ("library-missing", None, {"library": "libmpi.so.12"}),
        "exe_missing": ("binary-missing", "npu-02", {}),
        "npu_oom": ("acl-error", None, {"retcode": 207001}),
    },
    "40_mpirun_host_key.txt": {"": ("ssh-host-key", None, {})},
    "41_mpirun_binary_missing.txt": {
        "": ("binary-missing", "gpu-a02", {"executable": "/opt/nccl-tests/build/all_reduce_perf"})
    },
    "42_mpirun_not_enough_slots.txt": {"": ("not-enough-slots", None, {"requested": 16})},
    "43_mpirun_orted_missing.txt": {"": ("remote-mpi-missing", None, {"program": "orted"})},
    "44_mpirun_permission_and_network.txt": {
        "ssh_auth": ("ssh-auth", "gpu-a02", {}),
        "unreachable": ("unreachable", "gpu-a09", {}),
        "unresolved": ("unresolved", "gpu-a99", {}),
        "root_refused": ("root-refused", None, {}),
        "daemon_lost": ("daemon-lost", "gpu-a02", {}),
        "mpirun_timeout": ("launcher-timeout", None, {"seconds": 300}),
        "signal": ("killed-by-signal", "gpu-a02", {"signal": 9}),
        "srun_no_pmi": ("srun-no-pmi", None, {}),
        "hostfile_missing": ("hostfile-missing", None, {"path": "/tmp/commcheck/hostfile"}),
    },
    "54_perftest_failures.txt": {
        "no_server": ("server-not-listening", "gpu-a02", {"port": 18515}),
        "port_in_use": ("port-in-use", None, {"port": 18515}),
        "no_device": ("no-device", None, {"device": "mlx5_9"}),
        "retry_exceeded": ("qp-error", None, {"status": 12, "syndrome": "0x81"}),
        "no_cuda_build": ("no-gpu-build", None, {}),
    },
}

_CASE = re.compile(r"^### case (\w+).*\n", re.MULTILINE)


def text_of(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def cases_of(name: str) -> dict[str, str]:
    """The outputs in a file, by the name of their case; "" where it holds one."""
    parts = _CASE.split(text_of(name))
    if len(parts) == 1:
        return {"": parts[0]}
    return dict(zip(parts[1::2], parts[2::2], strict=True))
