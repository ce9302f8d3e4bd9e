from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commcheck.report.cleaning import (
    clean,
    composed,
    cut,
    decode,
    for_console,
    holds_secret,
    mask,
    mask_bytes,
    masked,
    one_line,
)

HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\x00\x1b\r\n[]|#:=<>&\"'\x9b\u202e\u2066\ufffe\ud800-@/"),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("dirty", "tidy"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y", "xy"),
        ("\x1b[8mha:secret console note", "ha:secret console note"),
        ("nul\x00 bell\x07 c1\x9b1m del\x7f", "nul� bell� c1�1m del�"),
        ("\ud800 \ufffe \uffff", "� � �"),
        ("\u202eevil\u2066", "<U+202E>evil<U+2066>"),
        ("[[ATTACHMENT|/etc/passwd]]", "[[\u200bATTACHMENT|/etc/passwd]]"),
        ("[[AT\x1b[0mTACHMENT|/x]]", "[[\u200bATTACHMENT|/x]]"),
        ("[[property|x]]", "[[\u200bproperty|x]]"),
        ("tab\tand 中文 and 🚀", "tab\tand 中文 and 🚀"),
        ("]]>", "]]>"),
    ],
)
def test_clean(dirty: str, tidy: str) -> None:
    assert clean(dirty) == tidy


@given(HOSTILE)
@example("[[[[ATTACHMENT|x")
@example("TOKEN=\x1b[mx")
@example("\x1b\x1b[0m[31m")
def test_cleaned_text_is_harmless_and_stays_so(text: str) -> None:
    tidy = clean(text)
    assert clean(tidy) == tidy
    element = ET.Element("x")
    element.text = tidy
    assert (ET.fromstring(ET.tostring(element)).text or "") == tidy
    assert "\x1b" not in tidy
    assert "[[ATTACHMENT|" not in tidy
    tidy.encode("utf-8")
    assert "\n" not in one_line(text)
    assert len(one_line(text, 50)) <= 50


@given(st.text(st.characters(codec="ascii", min_codepoint=32, exclude_characters="=:[")))
def test_harmless_text_comes_back(text: str) -> None:
    assert clean(text.replace("\x7f", "")) == text.replace("\x7f", "")


@given(st.binary())
def test_any_bytes_decode(data: bytes) -> None:
    decode(data).encode("utf-8")
    mask_bytes(data)


def test_decode_shows_what_is_no_utf8() -> None:
    assert decode(b"caf\xc3\xa9 \xff") == "café \\xff"


@given(st.text(), st.integers(100, 400))
def test_cut_keeps_its_limit(text: str, limit: int) -> None:
    short = cut(text * 20, limit, "frames/x")
    assert len(short) <= limit
    assert short == text * 20 or "in frames/x]" in short


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::owned", ": :error::owned"),
        ("  ::set-output name=x::y", ": :set-output name=x::y"),
        ("x ##vso[task.setvariable]y", "x ## vso[task.setvariable]y"),
        ("##[error]x", "## [error]x"),
        ("##teamcity[testFailed]", "## teamcity[testFailed]"),
        ("##\x1b[0mvso[x]", "## vso[x]"),
        ("two\nlines\x1b[2J", "two lines"),
        ("fe80::1 is an address", "fe80::1 is an address"),
    ],
)
def test_console_commands_are_broken(line: str, shown: str) -> None:
    assert for_console(line) == shown


def test_what_we_put_together_is_masked_part_by_part() -> None:
    """A host may be called like a secret; what is told of it may still hold one."""
    told = composed("FAIL x on ", "gpu-key", ": ", "mtu is 1500, api_token: abc")
    assert told == "FAIL x on gpu-key: mtu is 1500, api_token: ***"
    assert composed("db_token=hush", ": error: ", "no") == "db_token=***: error: no"
    assert composed(":", ":error::owned") == ": :error::owned"
    assert composed("[", "[ATTACHMENT|/x]]") == "[[\u200bATTACHMENT|/x]]"


SECRETS = [
    ("API_TOKEN=abc123 next", "API_TOKEN=*** next"),
    ("export WANDB_API_KEY='abc 123'", "export WANDB_API_KEY='***'"),
    ('{"password": "a\\"b", "rate": 5}', '{"password": "***", "rate": 5}'),
    ('{"secret_id": 12345, "rate": 5}', '{"secret_id": "***", "rate": 5}'),
    ('["A_TOKEN=x y","B=1"]', '["A_TOKEN=***","B=1"]'),
    ('{"env": "B=1 A_TOKEN=x", "rate": 5}', '{"env": "B=1 A_TOKEN=***", "rate": 5}'),
    ('{"log": "got password: a b", "rate": 5}', '{"log": "got password: ***", "rate": 5}'),
    ('{"x": "{\\"token\\": \\"a\\", 1}"}', '{"x": "{\\"token\\": \\"***\\", 1}"}'),
    ('{"Authorization": "Bearer a", "x": 1}', '{"Authorization": "***", "x": 1}'),
    ('X_PASSWORD=ab"cd\0HOME=/', "X_PASSWORD=***\0HOME=/"),
    ("curl -H 'Authorization: Bearer a' http://x", "curl -H 'Authorization: ***' http://x"),
    ("password: correct horse battery\nnext: 1", "password: ***\nnext: 1"),
    ("password:3:5: error: a b\nnext: 1", "password:***\nnext: 1"),
    ("secrets.yml:3:5 hush", "secrets.yml:***"),
    ("secrets.yml:3:5: error: token=hush", "secrets.yml:3:5: error: token=***"),
    ("DB_PASSWD=x\x00HOME=/root\x00", "DB_PASSWD=***\x00HOME=/root\x00"),
    ("AWS_ACCESS_KEY_ID=AKIA0", "AWS_ACCESS_KEY_ID=***"),
    ("GOOGLE_APPLICATION_CREDENTIALS=/a/b.json", "GOOGLE_APPLICATION_CREDENTIALS=***"),
    ("Authorization: Bearer aaa.bbb", "Authorization: ***"),
    ("proxy-authorization: Basic eA==\nok", "proxy-authorization: ***\nok"),
    ("http://user:pw@proxy:3128/x", "http://***@proxy:3128/x"),
    ("robot/send?key=693a91f6", "robot/send?key=***"),
    ("train.py --api-key a1b2 --lr 3", "train.py --api-key *** --lr 3"),
    ("train.py --hf_hub_token 'a b'", "train.py --hf_hub_token ***"),
    ("a\0--wandb-key\0a1b2\0--lr\0003", "a\0--wandb-key\0***\0--lr\0003"),
    ('{"cmd": "x --db-password a1b2", "rate": 5}', '{"cmd": "x --db-password ***", "rate": 5}'),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n-----END OPENSSH PRIVATE KEY-----\nafter",
        "-----BEGIN OPENSSH PRIVATE KEY----- *** -----END OPENSSH PRIVATE KEY-----\nafter",
    ),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "-----BEGIN RSA PRIVATE KEY----- *** -----END RSA PRIVATE KEY-----",
    ),
]
OPEN = [
    "NCCL_DEBUG=INFO NCCL_IB_TOKEN=x",
    "HCCL_WHITELIST_KEY=1",
    "P_Key: 0xffff",
    "pkey: 0x8001",
    "pkeys = 3",
    "lkey=0x1f rkey=0x2f",
    "tokens_per_second: 1234",
    "train.py --pad-token 0 --max-tokens 4096 --tokenizer a --sort-key x --password --lr 3",
    "RSS hash key:\n01:02:03",
    "Key: value",
    "eth2: priority 3",
    "http://example.com:80/a@b",
    "passing: yes",
    "group_vars/all/secrets.yml:3:5: error: no such host",
    "vault-secrets.yaml:3: warning: play 'x' has no host here [empty]",
    "token-gpu port 22 (via key-jump) refuses connections: no sshd",
]


@pytest.mark.parametrize(("text", "masked"), SECRETS)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked
    assert mask_bytes(text.encode()) == masked.encode()


@pytest.mark.parametrize("text", OPEN)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=8)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "api_token", "x", "KEY"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, st.text(max_size=8))
def test_masked_json_is_json_without_the_secret(value: object, around: str) -> None:
    """A reader must still read what was masked, in every way a secret hides in JSON."""
    document = [
        {"password": f"hush{around}", "x": value},
        f"A_TOKEN=hush{around}",
        {"env": "B=1 A_SECRET=hush", "value": value},
        json.dumps({"token": "hush", "x": 1}),
        {"api_key": 12345678},
    ]
    masked = mask(json.dumps(document))
    again = json.loads(masked)
    assert len(again) == len(document)
    assert again[0]["password"] == "***"
    assert "hush" not in masked
    assert "12345678" not in masked
    assert mask(masked) == masked


def test_data_is_masked_by_the_names_in_it() -> None:
    pod = {"env": [{"name": "HF_TOKEN", "value": "hush"}, {"name": "NCCL_DEBUG", "value": "INFO"}]}
    assert masked(pod) == {
        "env": [{"name": "HF_TOKEN", "value": "***"}, {"name": "NCCL_DEBUG", "value": "INFO"}]
    }
    assert masked({"API_KEY": 17, "limits": (1, None, True), 3: "x --token hush"}) == {
        "API_KEY": "***",
        "limits": [1, None, True],
        "3": "x --token ***",
    }
    by_reference = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "t"}}}
    assert [holds_secret(each) for each in (pod, by_reference, "a --token hush", "a --token")] == [
        *(True, False, True, False)
    ]


def test_masking_keeps_bytes_that_are_no_text() -> None:
    assert mask_bytes(b"\xff\x85X_TOKEN=\xc3\x85b \xfe") == b"\xff\x85X_TOKEN=*** \xfe"


@pytest.mark.parametrize(
    "unit",
    ["a", "a=b ", "x_token", "TOKEN:", '"', "TOKEN='", "://", "://a", "-----BEGIN A PRIVATE KEY",
     "\x1b]", "\x1b[", "[[", "Authorization", "://x@", "##"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_cleaned_in_linear_time(unit: str) -> None:
    started = time.perf_counter()
    clean(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - started < 10  # a quadratic one takes hours
