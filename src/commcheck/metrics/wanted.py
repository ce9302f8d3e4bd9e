"""What the inventory says about monitoring."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from commcheck.check import Key
from commcheck.metrics.catalog import SELECTOR as MATCHERS


def read_url(value: object) -> str:
    """A server's address, with the path below which it serves ``/api/v1``; no slash at its end.

    ``/api/v1`` itself, and ``/graph`` as a browser shows it, are left out.

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
    return text.removesuffix("/api/v1").removesuffix("/graph")


def read_selector(value: object) -> str:
    """Label matchers of PromQL, with or without the braces around them."""
    text = value.strip().removeprefix("{").removesuffix("}") if isinstance(value, str) else ""
    if not MATCHERS.fullmatch(text):
        raise ValueError(f'wanted label matchers like cluster="a", not {value!r}')
    return text


def read_names(value: object) -> tuple[str, ...]:
    """The names of a host in metrics: a list, or one text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    names = given if isinstance(given, list | tuple) else ()
    if not names or not all(isinstance(n, str) and 0 < len(n.strip()) <= 255 for n in names):
        raise ValueError(f"wanted the host's name in metrics, or several, not {value!r}")
    return tuple(name.strip() for name in names)


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
NAMES: Final[Key[tuple[str, ...] | None]] = Key(
    name="commcheck_prometheus_name",
    read=read_names,
    meaning="the host's name in metrics, where it is neither its inventory name nor its address; "
    "several where exporters call it differently",
)
