"""What the inventory says about monitoring."""

from __future__ import annotations

from typing import Final

from commcheck.check import Key
from commcheck.metrics.access import read_url
from commcheck.metrics.catalog import SELECTOR as MATCHERS


def read_selector(value: object) -> str:
    """Label matchers of PromQL, with or without the braces around them."""
    text = value.strip().removeprefix("{").removesuffix("}") if isinstance(value, str) else ""
    if not MATCHERS.fullmatch(text):
        raise ValueError(f'wanted label matchers like cluster="a", not {value!r}')
    return text


def read_name(value: object) -> str:
    """A name of a host in metrics."""
    if not isinstance(value, str) or not value.strip() or len(value) > 255:
        raise ValueError(f"wanted the host's name in metrics, not {value!r}")
    return value.strip()


URL: Final[Key[str | None]] = Key(
    name="commcheck_prometheus_url",
    read=read_url,
    meaning="Prometheus, Thanos, Mimir or VictoriaMetrics that watches the host",
)
SELECTOR: Final[Key[str | None]] = Key(
    name="commcheck_prometheus_selector",
    read=read_selector,
    meaning="label matchers that tell this fleet from others on the server, or a job's GPUs",
)
NAME: Final[Key[str | None]] = Key(
    name="commcheck_prometheus_name",
    read=read_name,
    meaning="the host's name in metrics, where it is neither its inventory name nor its address",
)
