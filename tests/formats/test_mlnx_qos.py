"""Every layout of mlnx_qos, and every way in which it breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.mlnx_qos import parse
from commcheck.formats.qos import Qos, TrafficClass

RECORDED = Path(__file__).parents[1] / "recorded" / "mlnx_qos"

FACTORY_MAP = tuple((dscp, dscp >> 3) for dscp in range(64))
SHORT_MAP = ((26, 3), (48, 6))
# The factory map has tc0 = priority 1 and tc1 = priority 0.
FACTORY_TCS = tuple(
    TrafficClass(tc, (prio,), "vendor", None, "unlimited")
    for tc, prio in enumerate((1, 0, 2, 3, 4, 5, 6, 7))
)
GOOD = Qos(
    pfc=frozenset({3}),
    trust="dscp",
    dcbx="os",
    dscp_prio=FACTORY_MAP,
    buffers_bytes=(20016, 156096, 0, 0, 0, 0, 0, 0),
    buffers_total_bytes=1048576,
    prio_buffer=(0, 0, 0, 1, 0, 0, 0, 0),
    cable_m=7,
    traffic_classes=FACTORY_TCS,
    lldpad_running=False,
)
LAYOUT_52 = replace(GOOD, dscp_prio=SHORT_MAP)
REST = (0, 1, 2, 4, 5, 6, 7)

FACTS = {
    "good-dscp-prio3.txt": GOOD,
    "all-prios-on.txt": replace(GOOD, pfc=frozenset(range(8)), prio_buffer=(1,) * 8),
    "cable-len-zero.txt": replace(GOOD, cable_m=0),
    "dcbx-fw.txt": replace(GOOD, dcbx="firmware"),
    "dscp26-remapped.txt": replace(
        GOOD, dscp_prio=tuple((dscp, 0 if dscp == 26 else dscp >> 3) for dscp in range(64))
    ),
    "lldpad-warning.txt": replace(GOOD, lldpad_running=True),
    "pfc-off.txt": replace(
        GOOD,
        pfc=frozenset(),
        buffers_bytes=(262016, 0, 0, 0, 0, 0, 0, 0),
        prio_buffer=(0,) * 8,
    ),
    "trust-pcp.txt": replace(GOOD, trust="pcp", dscp_prio=None),
    "wrong-prio-4.txt": replace(GOOD, pfc=frozenset({4}), prio_buffer=(0, 0, 0, 0, 1, 0, 0, 0)),
    "layout-4.2-no-buffer.txt": replace(
        LAYOUT_52, buffers_bytes=None, buffers_total_bytes=None, prio_buffer=None
    ),
    "layout-4.6-no-total.txt": replace(LAYOUT_52, buffers_total_bytes=None),
    "layout-5.2-default-priority-empty.txt": LAYOUT_52,
    "layout-5.2-default-priority.txt": replace(LAYOUT_52, default_prio=0),
    "layout-classic-2017.txt": Qos(
        pfc=frozenset({3}),
        traffic_classes=(
            TrafficClass(0, REST, "strict", None, "unlimited"),
            TrafficClass(3, (3,), "ets", 60, 200.0),
        ),
        lldpad_running=False,
    ),
    "rate-limited.txt": replace(
        GOOD,
        traffic_classes=(
            TrafficClass(0, REST, "ets", 95, "unlimited"),
            TrafficClass(3, (3,), "ets", 5, 100.0),
        ),
    ),
    "unsorted-tcs.txt": replace(
        GOOD,
        traffic_classes=(
            TrafficClass(0, (0, 1, 2, 4, 5, 7), "ets", 40, "unlimited"),
            TrafficClass(3, (3,), "ets", 60, "unlimited"),
            TrafficClass(6, (6,), "strict", None, "unlimited"),
        ),
    ),
}

FAILURES = {
    "not-supported.txt": "no DCB on this interface",
    "set-not-permitted.txt": "Operation not permitted",
    "sudo-password.txt": "terminal is required",
    "traceback-bytes-py3.txt": "TypeError: a bytes-like object is required",
    "traceback-import.txt": "ModuleNotFoundError: No module named 'dcbnetlink'",
    "traceback-keyerror.txt": "KeyError: 1",
    "traceback-set-unsupported.txt": "OSError: Netlink error: Operation not supported (95)",
}


def text_of(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
def test_layout(name: str) -> None:
    assert parse(Output(text_of(name))) == FACTS[name]


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("on_stderr", [True, False])
def test_failure_is_no_reading(name: str, on_stderr: bool) -> None:
    text = text_of(name)
    output = Output("", text, 1) if on_stderr else Output(text, "", 1)
    with pytest.raises(CommandFailed) as caught:
        parse(output)
    assert FAILURES[name] in caught.value.reason


def test_every_recording_is_named() -> None:
    others = {"command-not-found.txt", "get-pfc-3.txt", "SOURCES.md"}
    assert {path.name for path in RECORDED.iterdir()} == set(FACTS) | set(FAILURES) | others


@pytest.mark.parametrize("name", FACTS)
def test_a_cut_answer_is_refused(name: str) -> None:
    text = text_of(name)
    whole = FACTS[name]
    for end in range(len(text) - 1):
        try:
            assert parse(Output(text[:end])) == whole
        except ParseError:
            continue


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(FACTS)),
    at=st.integers(0, 60),
    noise=st.sampled_from(
        ["Netlink error: No buffer space\n", "\x1b[31mwarning\x1b[0m\n", "\n", "sudo: hm\n"]
    ),
)
def test_noise_between_lines_changes_nothing(name: str, at: int, noise: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    at %= len(lines)
    text = "".join([*lines[:at], noise, *lines[at:]])
    assert parse(Output(text)) == FACTS[name]
    assert parse(Output(text.replace("\n", "\r\n"))) == FACTS[name]


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(FACTS)),
    line=st.integers(0, 60),
    at=st.integers(0, 80),
    by=st.sampled_from(["", "X", "\n", "9", " "]),
)
def test_a_damaged_line_never_turns_pfc_or_trust(name: str, line: int, at: int, by: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    line %= len(lines)
    body = lines[line]
    at %= len(body)
    lines[line] = body[:at] + by + body[at + 1 :]
    whole = FACTS[name]
    try:
        qos = parse(Output("".join(lines)))
    except ParseError:
        return
    assert qos.pfc == whole.pfc
    assert qos.trust in (whole.trust, None)


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(Unjudgeable):
        parse(Output(text))


def test_a_rate_limit_that_cannot_be_read_is_unknown() -> None:
    text = "Rate limit is not supported on your system!\n" + text_of("good-dscp-prio3.txt")
    classes = parse(Output(text)).traffic_classes
    assert classes is not None
    assert {each.ratelimit_gbits for each in classes} == {None}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trust state: dscp", "trust state: dsc"),
        ("\tpriority    0   1", "\tpriority    1   0"),
        ("dscp:56,57", "dscp:96,57"),
        ("tsa: vendor", "tsa: vend"),
        ("PFC configuration:", "PFC configuration:\nPFC configuration:"),
        ("dscp2prio mapping:\n", ""),
        ("tc: 0 ratelimit: unlimited, tsa: vendor\n", ""),
        ("bytes): 20016", "bytes): many"),
    ],
)
def test_refuses(old: str, new: str) -> None:
    text = text_of("good-dscp-prio3.txt")
    assert old in text
    with pytest.raises(ParseError, match="mlnx_qos"):
        parse(Output(text.replace(old, new, 1)))
