"""dcb's JSON, and what it says where there is no DCB."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.dcb import parse, parse_app, parse_dcbx, parse_pfc
from commcheck.formats.qos import Qos

RECORDED = Path(__file__).parents[1] / "recorded" / "dcb"


def out(name: str, rc: int = 0) -> Output:
    text = (RECORDED / name).read_text()
    return Output("", text, rc) if rc else Output(text)


@pytest.mark.parametrize(
    ("name", "pfc"),
    [
        ("pfc-good.json", {3}),
        ("pfc-off.json", set()),
        ("pfc-stats.json", {3}),
    ],
)
def test_pfc(name: str, pfc: set[int]) -> None:
    assert parse_pfc(out(name)) == pfc


def test_app() -> None:
    assert parse_app(out("app-dscp.json")) == (((26, 3), (48, 6)), None)
    assert parse_app(out("app-empty.json")) == ((), None)
    assert parse_app(Output('{"dscp_prio":[[26,3]],"default_prio":[0]}\n')) == (((26, 3),), 0)


def test_dcbx() -> None:
    assert parse_dcbx(out("dcbx-host.json")) == "os"
    assert parse_dcbx(out("dcbx-firmware.json")) == "firmware"


def test_together() -> None:
    qos = parse(out("pfc-good.json"), out("app-dscp.json"), out("dcbx-host.json"))
    assert qos == Qos(pfc=frozenset({3}), trust="dscp", dcbx="os", dscp_prio=((26, 3), (48, 6)))


def test_an_empty_app_table_trusts_pcp() -> None:
    qos = parse(out("pfc-off.json"), out("app-empty.json"), out("dcbx-firmware.json"))
    assert qos == Qos(pfc=frozenset(), trust="pcp", dcbx="firmware", dscp_prio=())


def test_what_the_driver_lacks_is_unknown() -> None:
    lacks = out("no-buffer.txt", rc=1)
    assert parse(out("pfc-good.json"), lacks, lacks) == Qos(pfc=frozenset({3}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("not-supported.txt", "Operation not supported"),
        ("no-such-device.txt", "No such device"),
        ("set-not-permitted.txt", "not permitted"),
    ],
)
def test_failures(name: str, says: str) -> None:
    failing = out(name, rc=1)
    with pytest.raises(CommandFailed, match=says):
        parse(failing, failing, failing)


@pytest.mark.parametrize("name", ["pfc-good.json", "pfc-off.json", "pfc-stats.json"])
def test_a_cut_pfc_answer_is_refused(name: str) -> None:
    text = (RECORDED / name).read_text()
    for end in range(len(text.rstrip())):
        with pytest.raises(ParseError):
            parse_pfc(Output(text[:end]))


@pytest.mark.parametrize("name", ["app-dscp.json", "app-empty.json"])
def test_a_cut_app_answer_is_refused(name: str) -> None:
    text = (RECORDED / name).read_text()
    for end in range(len(text.rstrip())):
        with pytest.raises(ParseError):
            parse_app(Output(text[:end]))


def test_warnings_around_are_passed_over() -> None:
    text = f"warning: old kernel\n\x1b[1m{(RECORDED / 'pfc-good.json').read_text()}\x1b[0m"
    assert parse_pfc(Output(text.replace("\n", "\r\n"))) == {3}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"prio_pfc":[true]}',
        '{"prio_pfc":[0,0,0,1,0,0,0,0]}',
        '{"prio_pfc":null}',
        "{}\n{}",
        "pfc-cap 8 macsec-bypass off delay 7 \n",
    ],
)
def test_pfc_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="dcb"):
        parse_pfc(Output(text))


@pytest.mark.parametrize(
    "text",
    [
        '{"dscp_prio":[[26]]}',
        '{"dscp_prio":[[64,3]]}',
        '{"dscp_prio":[[26,true]]}',
        '{"dscp_prio":{"26":3}}',
        '{"default_prio":[8]}',
        "null",
        "dscp-prio AF31:3 CS6:6 ",
    ],
)
def test_app_refuses(text: str) -> None:
    with pytest.raises(ParseError, match="dcb"):
        parse_app(Output(text))


@settings(max_examples=50)
@given(st.text() | st.text(alphabet='{}[]":,0123456789truefalse_prio', min_size=1))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_pfc, parse_app, parse_dcbx):
        try:
            read(Output(text))
        except Unjudgeable:
            continue
