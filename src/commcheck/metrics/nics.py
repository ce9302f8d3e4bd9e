"""How full the RDMA ports of a host were, and where it is not known, why. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.metrics.curves import Curve, highest, mean
from commcheck.metrics.reading import Line, Metrics


@dataclass(frozen=True, slots=True)
class Link:
    """How full one kind of link was: the fullest one at each instant, as a share of its rate.

    ``sure``: False where it may be another's traffic, of storage say.
    """

    name: str  # "NIC mlx5_0", "NVLink"
    share: Curve
    gbytes: float  # GB/s, mean of the fullest
    rate_gbytes: float
    sure: bool = True


def fullest(
    metrics: Metrics, rails: Mapping[str, int] | None, rate_gbits: float | None
) -> tuple[Link | None, str]:
    """The fullest rail at each instant, and why there is none. As ``load_of`` takes the rest."""
    rates = {
        _port(line): line.seen[-1] for line in metrics.of("nic_rate") if line.seen and line.seen[-1]
    }
    found: dict[str, tuple[float, list[Curve]]] = {}
    others: set[str] = set()
    for name in ("nic_tx", "nic_rx"):
        for line in metrics.of(name):
            port = _port(line)
            rate = _rate(port, rates.get(port), rate_gbits, (rails or {}).get(port, 0))
            if rails is not None and port not in rails:
                others.add(port)
            elif rate and line.seen:
                found.setdefault(port, (rate, []))[1].append(line.values)
    if not found:
        return None, _no_nic(metrics, rails, others)
    shares = {
        port: tuple(None if v is None else v / rate for v in highest(both))
        for port, (rate, both) in found.items()
    }
    port = max(sorted(shares), key=lambda each: mean([shares[each]]) or 0.0)
    rate = found[port][0]
    means = [mean([share]) or 0.0 for share in shares.values()]
    curve = highest(list(shares.values()))
    # Rails of one job are alike; one full port among idle ones may as well write a checkpoint.
    sure = rails is not None or min(means) > max(means) / 2
    lacks = "" if sure else "which NICs carry training? name them in commcheck_nics"
    return Link(f"NIC {port}", curve, max(means) * rate / 1e9, rate / 1e9, sure), lacks


_BOND: Final = regex(r"bond", re.IGNORECASE)


def _rate(port: str, told: float | None, declared_gbits: float | None, ports: int) -> float:
    """Bytes/s that a rail can carry; 0 where nobody tells.

    A bond of a card's ports (RoCE LAG, mlx5_bond_0) counts what all of them carry and tells the
    rate of one (deepseek-ai/DeepEP pull request 671: 200 Gb/s told, 372 carried). What is declared
    is that of one, too.
    """
    ports = ports or (2 if _BOND.search(port) else 1)
    declared = (declared_gbits or 0) * 1e9 / 8
    return (declared or told or 0) * ports if ports > 1 else told or declared


def _no_nic(metrics: Metrics, known: Collection[str] | None, others: Collection[str]) -> str:
    """What to turn on where no rail has both traffic and a rate."""
    if metrics.of("nic_tx", "nic_rx"):
        if others and known is not None:
            return (
                f"node_exporter has no series of {', '.join(sorted(known)) or 'any rail'}, only of "
                f"{', '.join(sorted(others)[:8])}: name the training NICs in commcheck_nics"
            )
        return "set commcheck_line_rate_gbits: node_exporter does not tell the NICs' rate"
    if metrics.of("nic_rate"):
        return (
            "have node_exporter scraped every two minutes or more often: a rate takes two samples "
            "in five minutes"
        )
    return metrics.elsewhere("NICs") or (
        "run node_exporter with its infiniband collector on the host"
    )


def _port(line: Line) -> str:
    """A port as rails are labelled."""
    device, port = line.labels.get("device", "?"), line.labels.get("port", "1")
    return device if port == "1" else f"{device}/{port}"
