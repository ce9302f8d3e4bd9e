"""The HTTP API of Prometheus, which Thanos, Mimir and VictoriaMetrics speak too.

Asked is by POST with a form, so that a long query fits. Every answer has an end: in bytes, in
seconds, in series; what is no answer of this API is said in one line and never guessed at.
"""

from __future__ import annotations

import http.client
import json
import math
import ssl
import time
import urllib.error
import urllib.request
from array import array
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import IO, Any, Final
from urllib.parse import urlencode

from commcheck.errors import Unjudgeable
from commcheck.lazy import dataclass
from commcheck.metrics.access import PASSWORD, TENANT, TOKEN, USER, Access

MOST_BYTES: Final = 192 << 20
"""Of one answer: 10,000 hosts with eight series of 31 points have some 75 MB."""

_MINUTE_S: Final = 60.0
_BLOCK: Final = 1 << 18
_TELLING_BYTES: Final = 16_384

Labels = Mapping[str, str]


class ServerRefused(Unjudgeable):
    """The server answered, but not with the data that it was asked for."""


class ServerSilent(Unjudgeable):
    """The server could not be reached, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The instants of a range query, in s since 1970: ``points`` of them, ``step_s`` apart."""

    start: float
    step_s: float
    points: int

    @property
    def end(self) -> float:
        """The last instant."""
        return self.start + self.step_s * (self.points - 1)

    @classmethod
    def until(cls, now: float, step_s: float, points: int) -> Grid:
        """The grid that ends at the last whole minute before ``now``: equal for all who ask then.

        Not at the last whole step: what broke a few minutes ago is what is asked about.
        """
        end = math.floor(now / _MINUTE_S) * _MINUTE_S
        return cls(end - step_s * (points - 1), step_s, points)


@dataclass(frozen=True, slots=True)
class Series:
    """One series on a grid. ``samples`` are packed, for there are many; NaN where there is none."""

    labels: Labels
    samples: array[float]

    @property
    def values(self) -> tuple[float | None, ...]:
        """The samples; None where there is none."""
        return tuple(None if math.isnan(value) else value for value in self.samples)


@dataclass(frozen=True, slots=True)
class Answer:
    """The series of a query, and what the server says about them (parts that did not answer)."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Server:
    """A server at ``url``, asked with patience ``timeout_s`` a question."""

    url: str
    access: Access
    timeout_s: float = 15.0
    clock: Callable[[], float] = time.monotonic
    _opener: urllib.request.OpenerDirector = field(init=False, repr=False)
    _is_victoria: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Read certificates; nothing is sent yet."""
        self._opener = self.access.opener(self.url)

    def now(self) -> float:
        """The server's own time, in s since 1970. Raises ``ServerRefused``, ``ServerSilent``."""
        data = self._ask("query", {"query": "time()"})
        try:
            result = data["data"]["result"]
            # VictoriaMetrics alone answers a scalar with a vector of one.
            self._is_victoria = data["data"]["resultType"] != "scalar"
            pair = result[0]["value"] if self._is_victoria else result
            now = float(pair[1])
        except (LookupError, TypeError, ValueError):
            raise _no_api(self.url) from None
        if not math.isfinite(now):
            raise _no_api(self.url)
        return now

    def query_range(self, expr: str, grid: Grid) -> Answer:
        """All series of an expression on a grid. Raises ``ServerRefused``, ``ServerSilent``."""
        form = {
            "query": expr,
            "start": f"{grid.start:.3f}",
            "end": f"{grid.end:.3f}",
            "step": f"{grid.step_s:g}",
            "timeout": f"{self.timeout_s:g}s",
        }
        if self._is_victoria:
            # It else moves a grid of 50 points and more to whole steps, and the newest quarter of
            # an hour out of it (its issue 563). Others may refuse a word that they do not know.
            form["nocache"] = "1"
        return read_matrix(self._ask("query_range", form), grid, self.url)

    def _ask(self, what: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - read_url lets only http and https in
            f"{self.url}/api/v1/{what}",
            data=urlencode(form).encode(),
            headers={
                **self.access.headers,
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
                "User-Agent": "commcheck",
            },
        )
        ends = self.clock() + self.timeout_s
        try:
            with self._opener.open(request, timeout=self.timeout_s) as response:
                body = self._read(response, ends)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(self.url, error) from None
        except (TimeoutError, OSError, http.client.HTTPException) as error:
            raise _silent(self.url, error, self.timeout_s) from None
        return _document(body, self.url)

    def _read(self, response: IO[bytes] | http.client.HTTPResponse, ends: float) -> bytes:
        blocks, size = [], 0
        # read1: what has arrived, so that a server that drips cannot hold us beyond the end.
        while block := response.read1(_BLOCK):  # type: ignore[union-attr] # HTTPResponse has it
            blocks.append(block)
            size += len(block)
            if size > MOST_BYTES:
                raise ServerRefused(
                    f"{self.url} answers with more than {MOST_BYTES >> 20} MiB",
                    "set commcheck_prometheus_selector to the labels of this fleet",
                )
            if self.clock() > ends:
                raise TimeoutError
        return b"".join(blocks)


def read_matrix(document: Mapping[str, Any], grid: Grid, url: str) -> Answer:
    """The series of a range query's answer, laid on the grid. Raises ``ServerRefused``."""
    data = document.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        raise _no_api(url)
    try:
        series = tuple(_series(each, grid) for each in data["result"])
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise _no_api(url) from None
    warnings = document.get("warnings")
    told = warnings if isinstance(warnings, list) else []
    return Answer(series, tuple(str(each)[:200] for each in told[:8]))


def _series(each: Mapping[str, Any], grid: Grid) -> Series:
    samples = array("d", [math.nan]) * grid.points
    values = each.get("values", ())
    first, last = (_place(values[at][0], grid) if values else 0 for at in (0, -1))
    if first >= 0 and last < grid.points and last - first == len(values) - 1:
        # Without a gap, as nearly all are: times ascend, so that no place need be computed.
        samples[first : last + 1] = array("d", [float(text) for _, text in values])
    else:
        for when, text in values:
            place = _place(when, grid)
            if 0 <= place < grid.points:
                samples[place] = float(text)
    for infinite in (math.inf, -math.inf):
        while infinite in samples:
            samples[samples.index(infinite)] = math.nan
    labels = {str(name): str(value) for name, value in each["metric"].items()}
    return Series(labels, samples)


def _place(when: float, grid: Grid) -> int:
    return round((when - grid.start) / grid.step_s)


# --- what went wrong ----------------------------------------------------------------------------


def _document(body: bytes, url: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise _no_api(url) from None
    if not isinstance(document, dict) or "status" not in document:
        raise _no_api(url)
    if document["status"] != "success":
        raise ServerRefused(f"{url} refuses: {_told(document)}")
    return document


def _no_api(url: str) -> ServerRefused:
    return ServerRefused(
        f"{url} does not answer as Prometheus does",
        "is the path right? Mimir serves below /prometheus, VictoriaMetrics' cluster below "
        "/select/0/prometheus, Thanos at its Querier",
    )


def _refused(url: str, error: urllib.error.HTTPError) -> ServerRefused:
    code = error.code
    if code in (401, 403):
        word = "wants to know who asks" if code == 401 else "does not let us ask"
        return ServerRefused(
            f"{url} {word} (HTTP {code})",
            f"set {TOKEN}, or {USER} and {PASSWORD}, and {TENANT} where there are tenants",
        )
    if 300 <= code < 400:
        return ServerRefused(
            f"{url} sends us elsewhere (HTTP {code}), where we do not follow",
            "name the address that answers itself: behind a login page there is none",
        )
    if code == 404:
        return _no_api(url)
    try:
        document = json.loads(error.read(_TELLING_BYTES))
    except (ValueError, RecursionError, OSError, http.client.HTTPException):
        document = None
    told = f": {_told(document)}" if isinstance(document, dict) else ""
    # Too many samples or series, too slow: Prometheus says 422 and 503, proxies 504, Mimir 422.
    remedy = "set commcheck_prometheus_selector to the labels of this fleet, if there are others"
    return ServerRefused(
        f"{url} refuses (HTTP {code}){told}", remedy if code in (422, 503, 504) else ""
    )


def _told(document: Mapping[str, Any]) -> str:
    words = [str(document[key]) for key in ("errorType", "error") if document.get(key)]
    return " ".join(": ".join(words).split())[:300] or "without saying why"


def _silent(url: str, error: Exception, timeout_s: float) -> ServerSilent:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return ServerSilent(f"{url} does not answer within {timeout_s:g} s")
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ServerSilent(
            f"the certificate of {url} is not to be trusted: {reason.verify_message}",
            "set COMMCHECK_PROMETHEUS_CA to the file of its authority",
        )
    told = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return ServerSilent(f"{url} cannot be reached: {told or type(reason).__name__}"[:300])
