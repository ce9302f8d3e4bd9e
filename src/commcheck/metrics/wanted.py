"""What the inventory says about monitoring."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from commcheck.check import Key
from commcheck.metrics.catalog import SELECTOR as MATCHERS


def read_url(value: object) -> str:
    """A server's address, with the path below which it serves ``/api/v1``; no slash at its end.

    Raises ``ValueError`` where it is none, or where it holds a password.
    """
    text = value.strip().rstrip("/") if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        shown = re.sub(r"//[^/@]*@", "//", text) or type(value).__name__
        raise ValueError(f"wanted an address like http://prometheus:9090, not {shown!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "wanted no user or password in it: set COMMCHECK_PROMETHEUS_USER and _PASSWORD"
        )
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError("wanted an address without blanks")
    return text.removesuffix("/api/v1")


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
