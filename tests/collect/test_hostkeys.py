"""known_hosts as OpenSSH reads it, and the judgement over it. ssh-keygen is asked where it is."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.collect.hostkeys import (
    HostKey,
    HostKeys,
    KnownHosts,
    Mode,
    Standing,
    Wanted,
    lookup_names,
    standing,
)
from commcheck.errors import Unreachable


def key(number: int, kind: str = "ssh-ed25519") -> HostKey:
    name = kind.encode()
    return HostKey(kind, len(name).to_bytes(4, "big") + name + bytes([number]) * 36)


def line(hosts: str, entry: HostKey, marker: str = "") -> str:
    return f"{marker} {hosts} {entry.type} {base64.b64encode(entry.blob).decode()} note\n".lstrip()


def known(text: str) -> KnownHosts:
    hosts = KnownHosts()
    hosts.read(text, "kh")
    return hosts


A, B, RSA = key(1), key(2), key(3, "ssh-rsa")


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        (line("gpu-01", A), ("gpu-01",), Standing.KNOWN),
        (line("GPU-01,10.0.0.1", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-01", B), ("gpu-01",), Standing.CHANGED),
        (line("gpu-01", RSA), ("gpu-01",), Standing.TYPE_CHANGED),
        (line("gpu-01", RSA) + line("gpu-01", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-01", B) + line("gpu-01", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-02", A), ("gpu-01",), Standing.UNKNOWN),
        ("", ("gpu-01",), Standing.UNKNOWN),
        (line("gpu-*", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-0?", B), ("gpu-01",), Standing.CHANGED),
        (line("gpu-*,!gpu-01", A), ("gpu-01",), Standing.UNKNOWN),
        (line("!gpu-02,gpu-*", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu.01", A), ("gpux01",), Standing.UNKNOWN),
        # With a port: the bare name can confirm a key, never contradict it.
        (line("[gpu-01]:2222", A), ("[gpu-01]:2222", "gpu-01"), Standing.KNOWN),
        (line("gpu-01", A), ("[gpu-01]:2222", "gpu-01"), Standing.KNOWN),
        (line("gpu-01", B), ("[gpu-01]:2222", "gpu-01"), Standing.UNKNOWN),
        (line("[gpu-01]:2222", B), ("[gpu-01]:2222", "gpu-01"), Standing.CHANGED),
        (line("[gpu-01]:2222", A), ("gpu-01",), Standing.UNKNOWN),
        # Markers.
        (line("*", A, "@revoked") + line("gpu-01", A), ("gpu-01",), Standing.REVOKED),
        (line("*", B, "@revoked") + line("gpu-01", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-*", A, "@cert-authority"), ("gpu-01",), Standing.UNKNOWN),
        # Damaged lines hide nothing.
        ("gpu-01 ssh-ed25519 !!!\n" + line("gpu-01", A), ("gpu-01",), Standing.KNOWN),
        (line("gpu-01", A).replace("ssh-ed25519", "ssh-rsa", 1), ("gpu-01",), Standing.UNKNOWN),
        ("# gpu-01\n\n@revoked\n|1|x|y ssh-rsa AAAA\n", ("gpu-01",), Standing.UNKNOWN),
    ],
)
def test_standing(text: str, names: tuple[str, ...], wanted: Standing) -> None:
    assert standing(known(text), names, A)[0] is wanted


@given(st.text(alphabet="gpu-01*?!,[]:|@ #\n=A1", max_size=80))
@settings(max_examples=100)
def test_any_text_is_read_and_accepts_no_key(text: str) -> None:
    assert standing(known(text), ("gpu-01",), A)[0] is Standing.UNKNOWN


def test_a_line_that_is_no_text_is_passed_over(tmp_path: Path) -> None:
    """Another locale wrote it, or a damaged disk."""
    file = tmp_path / "known_hosts"
    file.write_bytes(b"h1 ssh-ed2\xff\xff AAAAC3NzaC1lZDI1NTE5AAAAIB1n\nh1 \xff \xff\n")
    found = known(file.read_bytes().decode(errors="surrogateescape"))
    assert standing(found, ("h1",), A)[0] is Standing.UNKNOWN


@pytest.mark.parametrize(
    ("address", "port", "alias", "names"),
    [
        ("GPU-01", 22, "", ("gpu-01",)),
        ("10.0.0.1", 2222, "", ("[10.0.0.1]:2222", "10.0.0.1")),
        ("fe80::1", 2222, "", ("[fe80::1]:2222", "fe80::1")),
        ("10.0.0.1", 2222, "Pod-A", ("pod-a",)),
    ],
)
def test_lookup_names(address: str, port: int, alias: str, names: tuple[str, ...]) -> None:
    assert lookup_names(address, port, alias) == names


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")
def test_hashed_names_and_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    made = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made)], check=True)
    kind, text = Path(f"{made}.pub").read_text().split()[:2]
    offered = HostKey(kind, base64.b64decode(text))
    hosts = tmp_path / "known_hosts"
    hosts.write_text(f"gpu-01,[10.0.0.1]:2222 {kind} {text}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hosts)], check=True, capture_output=True)
    assert "gpu-01" not in hosts.read_text()
    index = known(hosts.read_text())
    for name in ("gpu-01", "[10.0.0.1]:2222"):
        assert standing(index, (name,), offered)[0] is Standing.KNOWN
        assert standing(index, (name,), A)[0] is Standing.CHANGED
    assert standing(index, ("gpu-02",), offered)[0] is Standing.UNKNOWN
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{made}.pub"], check=True, capture_output=True, text=True
    ).stdout
    assert offered.fingerprint in shown


# --- modes --------------------------------------------------------------------------------------


def refusal(keys: HostKeys, wanted: Wanted, offered: HostKey) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        keys.check("gpu-01:22", wanted, offered)
    assert offered.fingerprint in caught.value.reason
    assert offered.fingerprint in caught.value.remedy or "@revoked" in caught.value.remedy
    return caught.value


def test_strict_says_what_is_known_and_what_to_compare(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(line("gpu-01", B) + line("*.ca", RSA, "@cert-authority"))
    keys = HostKeys(pytest.fail)
    wanted = Wanted(Mode.STRICT, ("gpu-01",), (tmp_path / "none", file))
    keys.check("gpu-01:22", wanted, B)
    changed = refusal(keys, wanted, A)
    assert changed.code == "host-key-changed"
    assert f"{file}:1" in changed.reason
    assert B.fingerprint in changed.reason
    assert f"ssh-keygen -R gpu-01 -f {file}" in changed.remedy
    assert refusal(keys, wanted, key(1, "ssh-rsa")).code == "host-key-type-changed"
    under_ca = refusal(keys, Wanted(Mode.STRICT, ("x.ca",), (file,)), A)
    assert under_ca.code == "host-key-unknown"
    assert "authority" in under_ca.reason


def test_the_remedy_for_an_unknown_key_makes_it_known(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    wanted = Wanted(Mode.STRICT, ("[10.0.0.1]:2222", "10.0.0.1"), (file,))
    remedy = refusal(HostKeys(pytest.fail), wanted, A).remedy
    subprocess.run(["sh", "-c", remedy.partition("only if it is the same: ")[2]], check=True)
    HostKeys(pytest.fail).check("gpu-01:22", wanted, A)


def test_accept_new_keeps_the_key_and_says_so_once(tmp_path: Path) -> None:
    file = tmp_path / "new" / "kh"
    notes: list[str] = []
    keys = HostKeys(notes.append)
    wanted = Wanted(Mode.ACCEPT_NEW, ("gpu-01",), (file,))
    keys.check("gpu-01:22", wanted, A)
    keys.check("gpu-01:22", wanted, A)
    assert len(notes) == 1
    assert A.fingerprint in notes[0]
    assert file.stat().st_mode & 0o777 == 0o600
    HostKeys(pytest.fail).check("gpu-01:22", Wanted(Mode.STRICT, ("gpu-01",), (file,)), A)
    assert refusal(keys, wanted, B).code == "host-key-changed"


def test_accept_new_sees_what_another_process_accepted_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(line("gpu-02", B).rstrip("\n"))
    wanted = Wanted(Mode.ACCEPT_NEW, ("gpu-01",), (file,))
    ours, late, other = HostKeys(pytest.fail), HostKeys(pytest.fail), HostKeys(lambda _note: None)
    for keys in (ours, late, other):
        assert keys.types(wanted) == ()  # all have read the file
    other.check("gpu-01:22", wanted, A)
    before = file.read_text()
    ours.check("gpu-01:22", wanted, A)
    assert refusal(late, wanted, B).code == "host-key-changed"
    assert file.read_text() == before


def test_accept_new_mends_a_missing_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(line("gpu-02", B).rstrip("\n"))
    HostKeys(lambda _note: None).check("x", Wanted(Mode.ACCEPT_NEW, ("gpu-01",), (file,)), A)
    text = file.read_text()
    assert standing(known(text), ("gpu-01",), A)[0] is Standing.KNOWN
    assert standing(known(text), ("gpu-02",), B)[0] is Standing.KNOWN


def test_accept_new_refuses_where_the_key_cannot_be_kept(tmp_path: Path) -> None:
    wanted = Wanted(Mode.ACCEPT_NEW, ("gpu-01",), (tmp_path,))  # a folder
    assert "cannot be kept" in _reason(HostKeys(pytest.fail), wanted)


def _reason(keys: HostKeys, wanted: Wanted) -> str:
    with pytest.raises(Unreachable) as caught:
        keys.check("gpu-01:22", wanted, A)
    return caught.value.reason


def test_pinned_looks_at_the_pin_alone(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(line("gpu-01", B))
    keys = HostKeys(pytest.fail)
    pin = Wanted(Mode.PINNED, ("gpu-01",), (file,), (A.fingerprint,))
    keys.check("gpu-01:22", pin, A)
    assert refusal(keys, pin, B).code == "host-key-changed"
    without = Wanted(Mode.PINNED, ("gpu-01",), (file,))
    assert refusal(keys, without, B).code == "host-key-unknown"


def test_insecure_takes_anything_and_says_so() -> None:
    notes: list[str] = []
    HostKeys(notes.append).check("gpu-01:22", Wanted(Mode.INSECURE, ("gpu-01",)), A)
    assert "not checked" in notes[0]


def test_known_types_come_first(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(line("gpu-01", RSA) + line("gpu-01", A, "@revoked"))
    assert HostKeys(pytest.fail).types(Wanted(Mode.STRICT, ("gpu-01",), (file,))) == ("ssh-rsa",)
