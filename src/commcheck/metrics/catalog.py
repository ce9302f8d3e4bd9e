"""Which metrics are asked for: names, units and how a window is summed, exporter by exporter.

Sources: dcgm-exporter default-counters.csv and dcp-metrics-included.csv; node_exporter's
infiniband and netdev collectors; npu-exporter of Ascend MindCluster; the EFA node exporter of
awslabs/awsome-distributed-ai.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from commcheck.lazy import dataclass, regex

GPU: Final = "gpu"
NPU: Final = "npu"
EFA: Final = "efa"
"""Whose exporter has a metric."""

MEAN: Final = "avg_over_time({metric}[5m])"
RATE: Final = "rate({metric}[5m])"
"""Five minutes hold four scrapes also where one is made every minute; fewer make rate() guess."""

LAST: Final = "{metric}"
MOST: Final = "max_over_time({metric}[15m])"

_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*(?:=~|!~|!=|=)"[^"\\\n]*"'
_EACH: Final = regex(_MATCHER)
SELECTOR: Final = regex(rf"{_MATCHER}(?:,{_MATCHER})*")
"""Label matchers as within the braces of PromQL."""

_OF_A_JOB: Final = regex(
    r"(?:(?:exported_)?(?:pod|namespace|container)|(?:pod|container)_name|hpc_job"
    r"|gpu|UUID|modelName|GPU_I_ID|GPU_I_PROFILE|id|model_name)[=!]"
)
"""Labels that tell accelerators of a job. Of NICs they tell at most the pod of the exporter."""


@dataclass(frozen=True, slots=True)
class Query:
    """One metric of the whole fleet: ``name`` is ours, ``metric`` the exporter's."""

    name: str
    metric: str
    form: str = LAST
    family: str = GPU
    only: str = ""  # matchers of its own

    def expr(self, selector: str) -> str:
        """The query. ``selector``: label matchers that tell this fleet from others, or ""."""
        matchers = ",".join(filter(None, (self.only, *self._of(selector))))
        return self.form.format(metric=f"{self.metric}{{{matchers}}}" if matchers else self.metric)

    def _of(self, selector: str) -> Iterator[str]:
        """What of a selector this metric can be asked by: no port belongs to a job."""
        for matcher in _EACH.findall(selector):
            if not (self.metric.startswith("node_") and _OF_A_JOB.match(matcher)):
                yield matcher


_REAL: Final = (
    'device!~"lo|veth.*|docker.*|cali.*|cni.*|flannel.*|br-.*|virbr.*|tunl.*|dummy.*'
    '|lxc.*|cilium.*|eni[0-9a-f]{11}|azv.*|gke[0-9a-f]{11}"'
)
"""Not the ends of pods, of which a node has a hundred (Calico, Cilium, EKS, AKS, GKE): what passes
there passes a real one, too, and with them the answer for a thousand nodes would be too long."""

_EFA_ENDS: Final = ("", "_total")
"""Of the names of AWS's fork of node_exporter, whose newer releases write the second."""

LOAD: Final = (
    Query("sm", "DCGM_FI_PROF_SM_ACTIVE", MEAN),
    Query("engine", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", MEAN),
    Query("tensor", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", MEAN),
    Query("util_percent", "DCGM_FI_DEV_GPU_UTIL", MEAN),
    # Gauges in bytes/s, though old lists of the exporter call them counters.
    Query("nvlink_tx", "DCGM_FI_PROF_NVLINK_TX_BYTES", MEAN),
    Query("nvlink_rx", "DCGM_FI_PROF_NVLINK_RX_BYTES", MEAN),
    Query("pcie_tx", "DCGM_FI_PROF_PCIE_TX_BYTES", MEAN),
    Query("pcie_rx", "DCGM_FI_PROF_PCIE_RX_BYTES", MEAN),
    Query("nic_tx", "node_infiniband_port_data_transmitted_bytes_total", RATE),
    Query("nic_rx", "node_infiniband_port_data_received_bytes_total", RATE),
    Query("nic_rate", "node_infiniband_rate_bytes_per_second"),
    *(
        Query(f"nic_{way}", f"node_amazonefa_{way}_bytes{end}", RATE, EFA)
        for way in ("tx", "rx")
        for end in _EFA_ENDS
    ),
    Query("net_tx", "node_network_transmit_bytes_total", RATE, only=_REAL),
    Query("net_rx", "node_network_receive_bytes_total", RATE, only=_REAL),
    Query("npu_percent", "npu_chip_info_utilization", MEAN, NPU),
    Query("vector_percent", "npu_chip_info_vector_utilization", MEAN, NPU),
    Query("npu_tx_mbytes", "npu_chip_info_bandwidth_tx", MEAN, NPU),
    Query("npu_rx_mbytes", "npu_chip_info_bandwidth_rx", MEAN, NPU),
    Query("npu_rate_mbits", "npu_chip_link_speed", family=NPU),
)
"""How busy accelerators and links are."""

COUNTERS: Final[Mapping[str, str]] = {
    "link_downed": "node_infiniband_link_downed_total",
    "link_error_recovery": "node_infiniband_link_error_recovery_total",
    "symbol_error": "node_infiniband_symbol_error_total",
    "port_rcv_errors": "node_infiniband_port_errors_received_total",
    "rx_icrc_encapsulated": "node_infiniband_rx_icrc_encapsulated_errors_total",
    "local_ack_timeout_err": "node_infiniband_local_ack_timeout_errors_total",
    "packet_seq_err": "node_infiniband_packet_sequence_errors_total",
    "out_of_sequence": "node_infiniband_out_of_sequence_packets_received_total",
    "implied_nak_seq_err": "node_infiniband_implied_nak_seq_errors_total",
    "roce_adp_retrans": "node_infiniband_roce_adp_retransmits_total",
    "roce_adp_retrans_to": "node_infiniband_roce_adp_retransmits_timeout_total",
}
"""The kernel's name of a counter (ports/N/counters and hw_counters), and node_exporter's."""

NPU_COUNTERS: Final[Mapping[str, str]] = {
    "link_up_num": "npu_chip_link_up_num",
    "mac_rx_bad_pkt_num": "npu_chip_mac_rx_bad_pkt_num",
    "mac_tx_bad_pkt_num": "npu_chip_mac_tx_bad_pkt_num",
    "roce_new_pkt_rty_num": "npu_chip_roce_new_pkt_rty_num",
    "roce_out_of_order_num": "npu_chip_roce_out_of_order_num",
}
"""hccn_tool's name of a counter, and npu-exporter's."""

EFA_COUNTERS: Final = (
    "rx_drops",
    "retrans_timeout_events",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
)
"""The kernel's names (hw/efa/efa_verbs.c). Every release of the exporter has the first, newer ones
what Nitro v4 and later count."""

FAULTS: Final = (
    Query("xid", "DCGM_FI_DEV_XID_ERRORS"),  # the code of the last one, not how many there were
    # What stood there between two instants, before the next report took its place (45 after 79).
    Query("xid_most", "DCGM_FI_DEV_XID_ERRORS", MOST),
    *(Query(name, metric) for name, metric in COUNTERS.items()),
    *(Query(name, metric, family=NPU) for name, metric in NPU_COUNTERS.items()),
    *(
        Query(name, f"node_amazonefa_{name}{end}", family=EFA)
        for name in EFA_COUNTERS
        for end in _EFA_ENDS
    ),
)
"""What should not grow."""


KINDS: Final[Mapping[str, Sequence[str]]] = {
    "accelerators": ("sm", "engine", "util_percent", "npu_percent"),
    "NICs": ("nic_tx", "nic_rate", "npu_tx_mbytes"),
}
"""The queries that tell whether the server has such a thing of a host that trains."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked in one go: the metrics, and the instants at which."""

    name: str
    queries: Sequence[Query]
    step_s: float
    points: int


SUBJECTS: Final[Mapping[str, Subject]] = {
    "load": Subject("load", LOAD, 60.0, 31),
    "faults": Subject("faults", FAULTS, 900.0, 97),
}
"""The last half hour by the minute, and the last day by the quarter of an hour."""
