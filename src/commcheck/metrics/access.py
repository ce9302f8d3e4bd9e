"""The way to a Prometheus server: proofs of identity from the environment, TLS, no redirects.

A token is sent to nobody but the address that the operator gave, and stands in no message.
"""

from __future__ import annotations

import base64
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import field
from http.client import HTTPMessage
from typing import IO, Final
from urllib.parse import urlsplit

from commcheck.errors import UsageError
from commcheck.lazy import dataclass, regex

TOKEN: Final = "COMMCHECK_PROMETHEUS_TOKEN"  # noqa: S105 - a variable's name
USER: Final = "COMMCHECK_PROMETHEUS_USER"
PASSWORD: Final = "COMMCHECK_PROMETHEUS_PASSWORD"  # noqa: S105 - a variable's name
TENANT: Final = "COMMCHECK_PROMETHEUS_TENANT"
CA: Final = "COMMCHECK_PROMETHEUS_CA"
CERT: Final = "COMMCHECK_PROMETHEUS_CERT"
KEY: Final = "COMMCHECK_PROMETHEUS_KEY"

_PRINTABLE: Final = regex(r"[\x20-\x7e\x80-\xff]*")
_LOOPBACK: Final = regex(r"localhost|127(?:\.\d+){3}|::1")


@dataclass(frozen=True, slots=True)
class Access:
    """What is sent with every question, and how the server's certificate is proven."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str = ""
    cert: str = ""
    key: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Access:
        """Raises ``UsageError`` where what is set there cannot be sent."""
        given = {name: environment.get(name, "").strip() for name in
                 (TOKEN, USER, PASSWORD, TENANT, CA, CERT, KEY)}  # fmt: skip
        headers = {}
        if given[TOKEN] and given[USER]:
            raise UsageError(f"error: {TOKEN} and {USER} are both set: which one? [metrics]")
        if given[TOKEN]:
            headers["Authorization"] = f"Bearer {given[TOKEN]}"
        elif given[USER]:
            pair = f"{given[USER]}:{given[PASSWORD]}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        if given[TENANT]:
            headers["X-Scope-OrgID"] = given[TENANT]
        for name in (TOKEN, TENANT):
            if not _PRINTABLE.fullmatch(given[name]):
                raise UsageError(f"error: {name} holds characters that no header may [metrics]")
        return cls(headers, given[CA], given[CERT], given[KEY])

    def opener(self, url: str) -> urllib.request.OpenerDirector:
        """What opens this address. Raises ``UsageError`` where a certificate cannot be read."""
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if _LOOPBACK.fullmatch(urlsplit(url).hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))
        if url.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=self._context()))
        return urllib.request.build_opener(*handlers)

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(filter(None, (self.ca, self.cert, self.key)))
            raise UsageError(f"{files}: error: no certificate to use: {error} [metrics]") from None
        return context


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would carry the token along to wherever the server points."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        return None
