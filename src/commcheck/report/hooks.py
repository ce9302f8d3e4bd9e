"""One message about a run to a chat robot or a webhook, where one is configured.

A robot's message holds words of ours, names of hosts and causes: no output of a host, no address,
no secret. A webhook gets the head of ``results.json``, with a reason for each cause. A hook never
changes a verdict or an exit code: what goes wrong is one warning.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args
from urllib.parse import quote_plus, urlsplit

from commcheck.diagnose import Diagnosis, Group, diagnose
from commcheck.errors import UsageError
from commcheck.files import read_whole
from commcheck.lazy import dataclass
from commcheck.model import Status
from commcheck.report.cleaning import clean, cut, one_line
from commcheck.report.document import summary_of
from commcheck.report.events import plain
from commcheck.report.interface import known
from commcheck.report.record import JOB, Record
from commcheck.report.words import VERDICTS, Lang, folded, say

Type = Literal["slack", "feishu", "dingtalk", "wecom", "webhook"]
When = Literal["always", "fail", "change"]

TIMEOUT_S: Final = 5.0
MAX_CAUSES: Final = 10
MAX_HOSTS: Final = 300
"""Characters of the hosts of one cause."""

_LIMITS: Final[Mapping[Type, int]] = {
    # Bytes of a message: WeCom 4,096 (its manual), Slack 3,000 characters a section, Feishu 20 KB.
    "slack": 2_900,
    "feishu": 15_000,
    "dingtalk": 15_000,
    "wecom": 4_000,
    "webhook": 1 << 20,
}

_SECRET_MOST: Final = 1 << 16
_LANGS: Final = ("en", "zh")
_KEYS: Final = ("type", "url_file", "url_env", "secret_file", "secret_env", "when", "lang", "link")


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a message goes, and when. ``link``: the report's address, ``{run}`` being its id."""

    name: str
    type: Type
    url: str
    secret: str = ""
    when: When = "change"
    lang: Lang = "en"
    link: str = ""

    def __repr__(self) -> str:
        """Without address and secret: it may come into a log."""
        return f"Hook({self.name!r}, {self.type!r})"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: the address with its signature, and the body."""

    url: str
    body: bytes
    headers: Mapping[str, str]


# --- configuration ------------------------------------------------------------------------------


def hook_of(name: str, table: object, folder: Path, place: str) -> Hook:
    """A hook as ``[hooks.NAME]`` of the configuration describes it. Raises ``UsageError``.

    Address and secret are never in the configuration itself: a file or a variable holds them.
    """
    tables = table if isinstance(table, dict) else {}
    if name not in tables:
        there = ", ".join(sorted(tables)) or "none"
        raise UsageError(f"--notify {name}: error: no [hooks.{name}] ({there}) [unknown-hook]")
    told = tables[name]
    wrong = f"{place}: error: hooks.{name}"
    if not isinstance(told, dict) or not all(isinstance(each, str) for each in told.values()):
        raise UsageError(f"{wrong}: wanted a table of texts [type]")
    for key in told:
        if key not in _KEYS:
            raise UsageError(f"{wrong}: no key {key!r}, there are {', '.join(_KEYS)} [hook]")
    for key, choices in (("type", get_args(Type)), ("when", get_args(When)), ("lang", _LANGS)):
        if told.get(key, "" if key == "type" else choices[0]) not in choices:
            raise UsageError(f"{wrong}: {key} is none of {', '.join(choices)} [hook]")
    url = _secret(told, "url", folder, wrong)
    if not _is_address(url):
        raise UsageError(f"{wrong}: url_file or url_env must hold an http or https address [hook]")
    return Hook(
        name=name,
        type=cast("Type", told["type"]),
        url=url,
        secret=_secret(told, "secret", folder, wrong),
        when=cast("When", told.get("when", "change")),
        lang=cast("Lang", told.get("lang", "en")),
        link=told.get("link", ""),
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # half an IPv6 address, say
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _secret(told: Mapping[str, str], what: str, folder: Path, wrong: str) -> str:
    if path := told.get(f"{what}_file"):
        try:
            found = folder / Path(path).expanduser()
            return read_whole(found, _SECRET_MOST).decode().strip()
        except (OSError, ValueError) as error:
            raise UsageError(f"{wrong}: {what}_file cannot be read: {error} [hook]") from error
    if variable := told.get(f"{what}_env"):
        if variable not in os.environ:
            raise UsageError(f"{wrong}: {what}_env: {variable} is not set [hook]")
        return os.environ[variable].strip()
    return ""


# --- the message --------------------------------------------------------------------------------


def due(hook: Hook, record: Record, before: Mapping[str, Any] | None) -> bool:
    """True where the run is worth a message. ``before``: summary of the run before it, if any."""
    failing = diagnose(record).status in (Status.FAIL, Status.ERROR)
    match hook.when:
        case "always":
            return True
        case "fail":
            return failing
        case "change":
            if before is None:
                return failing
            return _told(summary_of(record)) != _told(before)


def _told(summary: Mapping[str, Any]) -> object:
    """What makes two runs different for a person: the verdict, and which hosts have which cause."""
    causes = [(each["check"], each["cause"], each["status"], sorted(each["hosts"]))
              for each in summary["causes"]]  # fmt: skip
    return summary["summary"]["verdict"]["status"], sorted(causes)


def message(hook: Hook, record: Record, now_s: float) -> Message:
    """What is sent, signed as the receiver wants it. ``now_s``: seconds since 1970."""
    diagnosis = diagnose(record)
    title = one_line(f"{say(known(VERDICTS[diagnosis.status].word), hook.lang)}: "
                     f"{say(diagnosis.says, hook.lang)}", 300)  # fmt: skip
    lines = list(_lines(hook, record, diagnosis))
    body = _fit(lines, _LIMITS[hook.type] - len(title.encode()) - 200)
    url, extra = hook.url, {}
    match hook.type:
        case "slack":
            payload: dict[str, Any] = _slack(title, body)
        case "feishu":
            payload = _feishu(title, body)
            if hook.secret:
                payload |= {"timestamp": str(int(now_s)), "sign": feishu_sign(hook.secret, now_s)}
        case "dingtalk":
            text = "\n\n".join([f"### {title}", *body])
            payload = {"msgtype": "markdown", "markdown": {"title": title, "text": text}}
            if hook.secret:
                milliseconds = str(int(now_s * 1000))
                sign = quote_plus(dingtalk_sign(hook.secret, milliseconds))
                join = "&" if urlsplit(url).query else "?"
                url = f"{url}{join}timestamp={milliseconds}&sign={sign}"
        case "wecom":
            payload = {"msgtype": "markdown", "markdown": {"content": "\n".join([title, *body])}}
        case "webhook":
            payload = dict(plain(summary_of(record)))
    data = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    if hook.type == "webhook" and hook.secret:
        digest = hmac.new(hook.secret.encode(), data, hashlib.sha256).hexdigest()
        extra = {"X-Commcheck-Signature": f"sha256={digest}"}
    return Message(url, data, {"Content-Type": "application/json; charset=utf-8", **extra})


def _slack(title: str, body: Sequence[str]) -> dict[str, Any]:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:150]}}
    ]
    if body:
        text = escaped("\n".join(body))[:3000]
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": text}})
    return {"text": escaped(title), "blocks": blocks}


def _feishu(title: str, body: Sequence[str]) -> dict[str, Any]:
    text = {"tag": "plain_text", "content": "\n".join(body) or title}
    return {
        "msg_type": "interactive",
        "card": {
            "header": {"title": {"tag": "plain_text", "content": title}},
            "elements": [{"tag": "div", "text": text}],
        },
    }


def _lines(hook: Hook, record: Record, diagnosis: Diagnosis) -> list[str]:
    lines = [say(words, hook.lang) for words in diagnosis.says_more]
    lines += [_cause(group, hook.lang) for group in diagnosis.groups[:MAX_CAUSES]]
    if (more := len(diagnosis.groups) - MAX_CAUSES) > 0:
        lines.append(f"+ {more}")
    info = record.info
    lines.append(one_line(f"commcheck {info.version} · {info.playbook} · {info.run_id}"))
    if hook.link:
        lines.append(hook.link.replace("{run}", info.run_id))
    return [clean(line) for line in lines]


def _cause(group: Group, lang: Lang) -> str:
    # An error's title is its reason, which may quote a host: its class is told instead.
    title = say(group.title, lang) if group.meaning else group.slug
    what = f"{group.layer} · {group.check} · {title}"
    if JOB in group.hosts:
        return what
    hosts = one_line(folded(group.hosts, MAX_HOSTS), MAX_HOSTS + 2)
    return f"{what} · {len(group.hosts):,}: {hosts}"


def _fit(lines: Sequence[str], limit: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        limit -= len(line.encode("utf-8", "replace")) + 2
        if limit < 0:
            kept.append("…")
            break
        kept.append(line)
    return kept


def feishu_sign(secret: str, now_s: float) -> str:
    """Key: time stamp in seconds, newline, secret; message: empty. Source: Feishu, custom bots."""
    key = f"{int(now_s)}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()


def dingtalk_sign(secret: str, milliseconds: str) -> str:
    """Key: secret; message: time stamp in ms, newline, secret. Source: DingTalk, custom robots."""
    text = f"{milliseconds}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), text, hashlib.sha256).digest()).decode()


# --- sending ------------------------------------------------------------------------------------


def send(hook: Hook, record: Record, *, wait: Callable[[float], None] = time.sleep) -> str:
    """Send the message, twice at most; "" where it was taken, else what went wrong, in one line."""
    wrong = ""
    for attempt in range(2):
        if attempt:
            wait(1.0)
        try:
            wrong = _post(hook, message(hook, record, time.time()))
        except urllib.error.HTTPError as error:
            wrong = f"HTTP {error.code}"
            error.close()
        except (OSError, ValueError, http.client.HTTPException) as error:
            # The class alone: the text may hold the address, which is a secret itself.
            wrong = type(error).__name__
        if not wrong:
            return ""
    return f"hook {hook.name} ({hook.type}): {wrong}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Nowhere else than where the operator said."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(hook: Hook, what: Message) -> str:
    request = urllib.request.Request(  # noqa: S310 - hook_of took http and https only
        what.url, data=what.body, headers=dict(what.headers), method="POST"
    )
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        said = answer.read(4096).decode("utf-8", "replace")
    match hook.type:
        case "slack":
            return "" if said.strip() == "ok" else f"answered {cut(one_line(said), 100)!r}"
        case "webhook":
            return ""
        case _:
            key = "code" if hook.type == "feishu" else "errcode"
            try:
                code = json.loads(said).get(key)
            except (ValueError, AttributeError, RecursionError):
                return "answered no JSON"
            return "" if code == 0 else f"answered {key} {code!r}"
