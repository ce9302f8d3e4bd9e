"""Accelerators compute while their links work: the job is not bound by communication.

Why: A job may pass every check below and still spend its time in collectives: too little overlap,
too small a batch, a network that is simply too narrow for it. Monitoring has watched the whole
fleet all along, so nothing has to be started to know.
Reads: the Prometheus server that the inventory names (``commcheck_prometheus_url``), once for all
of its hosts: SM activity, NVLink and PCIe by dcgm-exporter, RDMA ports by node_exporter, or NPUs
and their ports by npu-exporter, over the last half hour by the minute. One verdict for each host.
By hand: in the server's expression browser, ``avg by (Hostname)
(avg_over_time(DCGM_FI_PROF_SM_ACTIVE[5m])) < 0.2``, and of the same host
``rate(node_infiniband_port_data_transmitted_bytes_total[5m]) /
node_infiniband_rate_bytes_per_second > 0.8``.
Mend: climb down first; a slow rail or lost packets make the same picture. Then profile a few steps.
Communication bound: more overlap, larger micro batches, less on the wire. Waiting: find the late
rank, look at input and launches. TCP instead of RDMA: the log of NCCL says why.
Between 20 and 50 % of SM activity neither can be told: profile a few steps.
Healthy though odd: a checkpoint over a storage NIC at line rate is no bottleneck, so only training
NICs count. GPU_UTIL is 100 % while NCCL only waits and decides nothing. Five-minute means hide
bursts. On one host, or inside a rack of NVLink, the NIC is silent and NVLink says more. With TCPX
the RDMA series are missing, and plain sockets are the fast path; EFA's ports are told by AWS's fork
of node_exporter (``node_amazonefa_tx_bytes``), and their rate by ``commcheck_line_rate_gbits``.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import FLEET, Check, Unread, expects, not_applicable, tries
from commcheck.errors import Unjudgeable
from commcheck.expect import LINE_RATE_GBITS
from commcheck.lazy import dataclass
from commcheck.metrics import quadrant
from commcheck.metrics.causes import BOUND, CHECK_ID, RDMA_UNUSED, TITLE, WAITING
from commcheck.metrics.limits import Limits
from commcheck.metrics.reading import LOAD_METRICS, Metrics
from commcheck.metrics.wanted import NAMES, SELECTOR, URL
from commcheck.model import Machine, Verdict, Wanted


@dataclass(frozen=True, slots=True)
class Seen:
    """What monitoring knows."""

    metrics: Metrics | Unread = tries(LOAD_METRICS, at=FLEET)


@dataclass(frozen=True, slots=True)
class Want:
    """Where monitoring is, and what it may not know."""

    url: Wanted[str | None] = expects(URL)
    selector: Wanted[str | None] = expects(SELECTOR)
    names: Wanted[tuple[str, ...] | None] = expects(NAMES)
    line_rate_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)


_NO_RDMA: Final = {
    "gpu-tcp": "its network is TCP, whose ports are not judged: commcheck analyze trace DIR",
    "gpu-efa": "node_exporter tells nothing of EFA's ports, only AWS's fork of it does (efa node "
    "exporter); without it: commcheck analyze trace DIR",
}
"""By platform what to do where its NICs are no RDMA ports that node_exporter knows."""


def judge(seen: Seen, machine: Machine, want: Want, limits: Limits) -> Verdict:
    """The matrix, of the rails that carry training where that is known."""
    if want.url.value is None:
        return not_applicable("the inventory names no server: commcheck_prometheus_url")
    if isinstance(seen.metrics, Unread):
        unread = seen.metrics
        raise Unjudgeable(unread.reason, unread.remedy, type_name=unread.error)
    rails = {rail.label: len(rail.ports) for rail in machine.rails if rail.present and rail.fabric}
    rate, no_rdma = want.line_rate_gbits.value, _NO_RDMA.get(machine.platform, "")
    return quadrant.judge(seen.metrics, rails or None, rate, limits, no_rdma)


CHECK = Check(
    id=CHECK_ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    causes=(BOUND, WAITING, RDMA_UNUSED),
)
