"""Hooks against a real HTTP server on loopback."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from commcheck.errors import UsageError
from commcheck.model import Evidence, Kind, Status
from commcheck.report import hooks
from commcheck.report.document import summary_of
from commcheck.report.hooks import Hook, Type, hook_of, message, send
from commcheck.report.record import JOB
from tests.report import hostile
from tests.report.runs import CHECKS, healthy, incident, plan, result, verdict

SECRET = "SEC0123456789"


class Robot(http.server.ThreadingHTTPServer):
    """Keeps what it got, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?access_token=t"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Robot

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        status, text = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def robot() -> Iterator[Robot]:
    with Robot() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def hook(kind: Type, url: str, **more: Any) -> Hook:
    return Hook(name="oncall", type=kind, url=url, **more)


GOOD: dict[Type, str] = {
    "slack": "ok",
    "feishu": '{"code": 0}',
    "dingtalk": '{"errcode": 0, "errmsg": "ok"}',
    "wecom": '{"errcode": 0}',
    "webhook": "thanks",
}


@pytest.mark.parametrize("kind", GOOD)
def test_each_kind_is_told_of_the_headline(robot: Robot, kind: Type) -> None:
    robot.answers = [(200, GOOD[kind])]
    assert send(hook(kind, robot.url, secret=SECRET), incident()) == ""
    ((path, headers, body),) = robot.got
    assert "PFC off on the RoCE priority" in json.dumps(json.loads(body))
    assert SECRET not in body.decode() + path + json.dumps(headers)
    if kind == "webhook":
        digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-Commcheck-Signature"] == f"sha256={digest}"
        assert "verdicts" not in json.loads(body)


BAD: list[tuple[Type, int, str, str]] = [
    ("slack", 200, "no_service", "no_service"),
    ("feishu", 200, '{"code": 19021, "msg": "sign match fail"}', "code 19021"),
    ("dingtalk", 200, '{"errcode": 310000}', "errcode 310000"),
    ("wecom", 200, "<html>", "no JSON"),
    ("webhook", 500, "", "HTTP 500"),
    ("webhook", 302, "", "HTTP 302"),
]


@pytest.mark.parametrize(("kind", "status", "text", "wrong"), BAD)
def test_a_refusal_is_one_warning_after_a_second_try(
    robot: Robot, kind: Type, status: int, text: str, wrong: str
) -> None:
    robot.answers = [(status, text)] * 2
    waited: list[float] = []
    said = send(hook(kind, robot.url), incident(), wait=waited.append)
    assert wrong in said
    assert "127.0.0.1" not in said
    assert (len(robot.got), waited) == (2, [1.0])


def test_a_second_try_may_succeed(robot: Robot) -> None:
    robot.answers = [(503, ""), (200, "ok")]
    assert send(hook("slack", robot.url), incident(), wait=lambda _: None) == ""


def test_nobody_there_is_a_warning_without_the_address() -> None:
    said = send(hook("slack", "http://127.0.0.1:9/secret"), incident(), wait=lambda _: None)
    assert said == "hook oncall (slack): URLError"


def test_an_address_that_cannot_be_sent_is_a_warning() -> None:
    wrong = send(hook("slack", "http://127.0.0.1:9/值班"), incident(), wait=lambda _: None)
    assert wrong == "hook oncall (slack): UnicodeEncodeError"


def test_signatures_are_those_of_their_makers() -> None:
    # Made with openssl: printf '' | openssl dgst -sha256 -hmac "$(printf '1599360473\\ndemo')",
    # and printf '1577808000000\\nSECx' | openssl dgst -sha256 -hmac SECx.
    feishu = "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="
    dingtalk = "ZvRGbJdYaSG6DkBGJqj7CT0duSn3XL7QrE7vpuhr9KQ="
    robot = hook("dingtalk", "https://x.example/send?access_token=t", secret="SECx")
    query = parse_qs(urlsplit(message(robot, incident(), 1577808000.0).url).query)
    assert (query["timestamp"], query["sign"]) == (["1577808000000"], [dingtalk])
    robot = hook("feishu", "https://x.example", secret="demo")
    body = json.loads(message(robot, incident(), 1599360473.9).body)
    assert (body["timestamp"], body["sign"]) == ("1599360473", feishu)


@pytest.mark.parametrize("kind", GOOD)
def test_a_robot_is_told_no_output_of_a_host_and_a_webhook_no_more_than_the_reason(
    kind: Type,
) -> None:
    found = verdict(Status.ERROR, kind=Kind.CHECK, reason="it printed PRIVATE API_TOKEN=hunter2")
    (finding,) = result("node-01", CHECKS[0], found).findings
    shown = replace(finding, evidence=(Evidence("once: true", 0, 0.1, "EVIDENCE"),))
    whole = replace(result("node-01", CHECKS[0], found), findings=(shown,))
    record = replace(healthy(1), results=(whole,))
    body = message(hook(kind, "https://x.example"), record, 0.0).body
    assert (b"PRIVATE" in body) is (kind == "webhook")
    assert b"hunter2" not in body
    assert b"EVIDENCE" not in body


@pytest.mark.parametrize("kind", GOOD)
def test_a_hostile_run_stays_small_and_tells_no_secret(kind: Type) -> None:
    sent = message(hook(kind, "https://x.example"), hostile.record(), 0.0)
    assert b"hunter2" not in sent.body
    if kind == "wecom":
        assert len(json.loads(sent.body)["markdown"]["content"].encode()) <= 4096
    if kind == "slack":
        header, section = json.loads(sent.body)["blocks"]
        assert len(header["text"]["text"]) <= 150
        assert len(section["text"]["text"]) <= 3000


def test_chinese_where_it_is_asked_for() -> None:
    sent = message(hook("wecom", "https://x.example", lang="zh"), incident(), 0.0)
    assert "RoCE 优先级未开启 PFC" in sent.body.decode()


def test_when_it_is_due() -> None:
    bad, good = incident(), healthy()
    then = summary_of(bad)
    always, fail = (hook("slack", "", when=when) for when in ("always", "fail"))
    assert hooks.due(always, good, None)
    assert hooks.due(fail, bad, None)
    assert not hooks.due(fail, good, then)
    change = hook("slack", "")
    assert hooks.due(change, bad, None)
    assert not hooks.due(change, good, None)
    assert not hooks.due(change, replace(bad), json.loads(json.dumps(then)))
    assert hooks.due(change, good, then)
    assert hooks.due(change, bad, summary_of(good))


def test_a_hook_is_read_from_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "url").write_text("https://open.example/hook/abc\n")
    monkeypatch.setenv("ONCALL_SECRET", "s")
    table = {"oncall": {"type": "feishu", "url_file": "url", "secret_env": "ONCALL_SECRET",
                        "when": "fail", "lang": "zh"}}  # fmt: skip
    found = hook_of("oncall", table, tmp_path, "commcheck.toml:3")
    assert found == Hook("oncall", "feishu", "https://open.example/hook/abc", "s", "fail", "zh")
    assert "abc" not in repr(found)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        (None, "no [hooks.oncall] (none)"),
        ({"other": {}}, "no [hooks.oncall] (other)"),
        ({"oncall": "slack"}, "wanted a table of texts"),
        ({"oncall": {"type": "slack", "url": "https://x"}}, "no key 'url'"),
        ({"oncall": {"url_env": "URL"}}, "type is none of slack"),
        ({"oncall": {"type": "irc"}}, "type is none of slack"),
        ({"oncall": {"type": "slack", "url_env": "NOT_SET"}}, "NOT_SET is not set"),
        ({"oncall": {"type": "slack", "url_file": "gone"}}, "cannot be read"),
        ({"oncall": {"type": "slack"}}, "must hold an http or https address"),
        ({"oncall": {"type": "slack", "when": "later"}}, "when is none of always"),
    ],
)
def test_what_is_wrong_with_a_hook_is_said(table: object, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        hook_of("oncall", table, tmp_path, "commcheck.toml:3")
    assert wrong in str(error.value)


def test_an_address_that_is_none_is_said_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("URL", "https://[::1/hook?key=0123")
    with pytest.raises(UsageError, match="must hold an http or https address") as error:
        hook_of("oncall", {"oncall": {"type": "slack", "url_env": "URL"}}, tmp_path, "c.toml:3")
    assert "0123" not in str(error.value)


def test_a_cause_of_a_job_as_a_whole_names_no_host() -> None:
    told = replace(
        incident(),
        results=(result(JOB, "library.env", verdict(Status.FAIL)),),
        plan=plan((), ("library.env",)),
    )
    body = message(Hook("x", "slack", "http://192.0.2.1/"), told, 0.0).body.decode()
    assert JOB not in body
    assert "library · library.env · PFC off on the RoCE priority\\n" in body
