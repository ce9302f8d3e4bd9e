"""Whether a host's key is the one we know: decided before anything is proven to that host.

OpenSSH's ``known_hosts`` format, read once per run into an index: plain names, ``[host]:port``,
hashed names, wildcards, negation, ``@revoked``. ``@cert-authority`` lines are found but cannot be
used, because host certificates are not verified here; the refusal says so.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Final

from commcheck.errors import Unreachable
from commcheck.files import read_rest, read_whole
from commcheck.lazy import dataclass

_BYTES_MOST: Final = 64 << 20


class Mode(StrEnum):
    """How host keys are checked. Every mode but ``INSECURE`` refuses a changed key."""

    STRICT = "strict"
    ACCEPT_NEW = "accept-new"
    PINNED = "pinned"
    INSECURE = "insecure"


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key as it stands in ``known_hosts``: type and wire form."""

    type: str  # "ssh-ed25519"
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` prints it: ``SHA256:`` and unpadded base64."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One usable line: its key, its marker without ``@`` ("" for most) and ``path:line``."""

    key: HostKey
    marker: str
    where: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the key of one peer is to be checked.

    ``names`` are tried in order, as OpenSSH does: ``[host]:port``, then ``host``. ``pinned``
    holds ``SHA256:`` fingerprints; the first of ``files`` takes new keys.
    """

    mode: Mode
    names: tuple[str, ...]
    files: tuple[Path, ...] = ()
    pinned: tuple[str, ...] = ()


def lookup_names(address: str, port: int, alias: str = "") -> tuple[str, ...]:
    """The names under which OpenSSH looks for a key, lower case, best first."""
    if alias:
        return (alias.lower(),)
    host = address.lower()
    return (host,) if port == 22 else (f"[{host}]:{port}", host)


# --- the file format ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The host field of a line that has wildcards or negation."""

    wanted: tuple[re.Pattern[str], ...]
    unwanted: tuple[re.Pattern[str], ...]

    def match(self, name: str) -> bool:
        return any(each.fullmatch(name) for each in self.wanted) and not any(
            each.fullmatch(name) for each in self.unwanted
        )


@dataclass(frozen=True, slots=True)
class _Hashed:
    """The host field of a line written with HashKnownHosts: ``|1|salt|HMAC-SHA1``."""

    salt: bytes
    digest: bytes

    def match(self, name: str) -> bool:
        return hmac.compare_digest(hmac.digest(self.salt, name.encode(), "sha1"), self.digest)


@dataclass(slots=True)
class KnownHosts:
    """An index over ``known_hosts`` files. A lookup costs one hash per *hashed* line, else O(1)."""

    _plain: dict[str, list[Entry]] = field(default_factory=dict)
    _searched: list[tuple[_Patterns | _Hashed, Entry]] = field(default_factory=list)

    def read(self, text: str, path: str) -> None:
        """Add the lines of one file. Lines in no known form are passed over, as OpenSSH does."""
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            marker = words.pop(0)[1:].lower() if words[0].startswith("@") else ""
            key = _key(words[1:3])
            if key is not None:
                self._file(words[0], Entry(key, marker, f"{path}:{number}"))

    def add(self, name: str, entry: Entry) -> None:
        """Add a key learnt in this run."""
        self._plain.setdefault(name, []).append(entry)

    def entries(self, name: str) -> list[Entry]:
        """Every line that speaks of ``name``, which is lower case as ``lookup_names`` gives it."""
        found = [entry for field_, entry in self._searched if field_.match(name)]
        return self._plain.get(name, []) + found

    def _file(self, hosts: str, entry: Entry) -> None:
        if hosts.startswith("|"):
            hashed = _hashed(hosts)
            if hashed is not None:
                self._searched.append((hashed, entry))
            return
        names = [name for name in hosts.lower().split(",") if name]
        if any(mark in name for name in names for mark in "*?!"):
            self._searched.append((_patterns(names), entry))
            return
        for name in names:
            self._plain.setdefault(name, []).append(entry)


def _key(words: list[str]) -> HostKey | None:
    if len(words) < 2:
        return None
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        return None
    # The wire form begins with the type again; a line where the two differ is damaged.
    size = int.from_bytes(blob[:4], "big")
    if blob[4 : 4 + size] != words[0].encode(errors="surrogateescape"):
        return None
    return HostKey(words[0], blob)


def _hashed(field_: str) -> _Hashed | None:
    parts = field_.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return _Hashed(
            base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
        )
    except (binascii.Error, ValueError):
        return None


def _patterns(names: Iterable[str]) -> _Patterns:
    wanted: list[re.Pattern[str]] = []
    unwanted: list[re.Pattern[str]] = []
    for name in names:
        glob = re.escape(name.removeprefix("!")).replace(r"\*", ".*").replace(r"\?", ".")
        (unwanted if name.startswith("!") else wanted).append(re.compile(glob))
    return _Patterns(tuple(wanted), tuple(unwanted))


# --- the judgement ------------------------------------------------------------------------------


class Standing(StrEnum):
    """What the known keys say of an offered one."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    TYPE_CHANGED = "type-changed"
    REVOKED = "revoked"


def standing(known: KnownHosts, names: Iterable[str], key: HostKey) -> tuple[Standing, list[Entry]]:
    """What is known of ``key``, with the lines that say it. Pure.

    The first name decides; a later one (the name without its port) can only confirm a key.
    """
    names = tuple(names)
    every = [entry for name in names for entry in known.entries(name)]
    revoked = [each for each in every if each.marker == "revoked" and each.key == key]
    if revoked:
        return Standing.REVOKED, revoked
    same = [each for each in every if not each.marker and each.key == key]
    if same:
        return Standing.KNOWN, same
    under_name = [each for each in known.entries(names[0]) if not each.marker]
    of_type = [each for each in under_name if each.key.type == key.type]
    if of_type:
        return Standing.CHANGED, of_type
    if under_name:
        return Standing.TYPE_CHANGED, under_name
    return Standing.UNKNOWN, [each for each in every if each.marker == "cert-authority"]


class HostKeys:
    """The keys known in this run, shared by every connection of it. Thread-safe."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """``note`` is told one line for each key that was accepted without being known."""
        self._note = note
        self._lock = threading.Lock()
        self._read: dict[tuple[Path, ...], KnownHosts] = {}
        self._sizes: dict[Path, int] = {}  # bytes of a file that were read before

    def types(self, wanted: Wanted) -> tuple[str, ...]:
        """Key types known for a peer: asking for these first lets it offer the key we know."""
        if wanted.mode is Mode.INSECURE:
            return ()
        with self._lock:
            known = self._known(wanted.files)
            entries = [each for name in wanted.names for each in known.entries(name)]
        return tuple(dict.fromkeys(each.key.type for each in entries if not each.marker))

    def check(self, peer: str, wanted: Wanted, key: HostKey) -> None:
        """Return if the peer may be talked to. Raises ``Unreachable`` with a ``host-key-*`` code.

        ``peer`` is how messages name it. In mode accept-new an unknown key is appended to the
        first of the files and noted.
        """
        if wanted.mode is Mode.INSECURE:
            self._note(f"{peer}: its host key was not checked: {key}")
            return
        if wanted.mode is Mode.PINNED:
            if key.fingerprint not in wanted.pinned:
                raise _not_pinned(peer, wanted, key)
            return
        with self._lock:
            known = self._known(wanted.files)
            found, lines = standing(known, wanted.names, key)
            if found is Standing.UNKNOWN and wanted.mode is Mode.ACCEPT_NEW and wanted.files:
                news = _append(wanted.files[0], wanted.names[0], key, self._sizes)
                found, lines = standing(news, wanted.names, key)
                if found is Standing.UNKNOWN:
                    known.add(wanted.names[0], Entry(key, "", str(wanted.files[0])))
                    self._note(f"{peer}: new host key {key} accepted into {wanted.files[0]}")
                    return
        if found is not Standing.KNOWN:
            raise _refusal(peer, wanted, key, found, lines)

    def _known(self, files: tuple[Path, ...]) -> KnownHosts:
        if files not in self._read:
            known = KnownHosts()
            for path in files:
                try:
                    text = read_whole(path, _BYTES_MOST)
                    known.read(text.decode(errors="surrogateescape"), str(path))
                    self._sizes[path] = len(text)
                except OSError:
                    continue  # as OpenSSH: a file that is not there knows no host
            self._read[files] = known
        return self._read[files]


def _append(path: Path, name: str, key: HostKey, sizes: Mapping[Path, int]) -> KnownHosts:
    """Add one line, unless other processes added one for the name since the file was read.

    Returns what they added: another worker, or another commcheck, may have met the host first.
    """
    line = f"{name} {key.type} {base64.b64encode(key.blob).decode()}\n".encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with open(descriptor, "rb", closefd=False) as file:
                text = read_rest(file, _BYTES_MOST)
            news = KnownHosts()
            before = sizes.get(path, 0)
            added = text[before:] if before <= len(text) else text
            news.read(added.decode(errors="surrogateescape"), str(path))
            if standing(news, (name,), key)[0] is Standing.UNKNOWN:
                os.write(descriptor, line if text[-1:] in (b"", b"\n") else b"\n" + line)
            return news
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Unreachable(
            "host-key-unknown",
            f"its new host key {key} cannot be kept in {path}: {error.strerror}",
            f"make {path} writable, or choose another file with --known-hosts",
        ) from error


# --- refusals -----------------------------------------------------------------------------------


def _refusal(
    peer: str, wanted: Wanted, key: HostKey, found: Standing, lines: list[Entry]
) -> Unreachable:
    where = ", ".join(dict.fromkeys(f"{each.where} ({each.key})" for each in lines[:3]))
    name = shlex.quote(wanted.names[0])
    if found is Standing.REVOKED:
        return Unreachable(
            "host-key-changed",
            f"{peer} offers {key}, which {where} revokes; nothing was proven to it",
            "give the host a new key, or take the @revoked line out if it is wrong",
        )
    if found is Standing.UNKNOWN:
        authority = f"; {where} names an authority, which cannot be used here" if lines else ""
        return Unreachable(
            "host-key-unknown",
            f"{peer} offers {key}, and no known_hosts file has {wanted.names[0]}{authority}",
            f"{_compare(key)}; only if it is the same: {_learn(wanted, key)}",
        )
    code = "host-key-changed" if found is Standing.CHANGED else "host-key-type-changed"
    forget = " && ".join(
        f"ssh-keygen -R {name} -f {shlex.quote(path)}"
        for path in dict.fromkeys(each.where.rpartition(":")[0] or each.where for each in lines)
    )
    return Unreachable(
        code,
        f"{peer} offers {key}, known is {where}; nothing was proven to it",
        f"{_compare(key)}; only if it is the same, and somebody knows why it changed: "
        f"{forget} && {_learn(wanted, key)}",
    )


def _not_pinned(peer: str, wanted: Wanted, key: HostKey) -> Unreachable:
    pins = ", ".join(wanted.pinned) or "nothing (no commcheck_host_key)"
    return Unreachable(
        "host-key-changed" if wanted.pinned else "host-key-unknown",
        f"{peer} offers {key}, the inventory pins {pins}; nothing was proven to it",
        f"{_compare(key)}; only if it is the same, set commcheck_host_key to {key.fingerprint}",
    )


def _compare(key: HostKey) -> str:
    kind = key.type.removeprefix("ssh-").removeprefix("ecdsa-sha2-nistp").rstrip("0123456789")
    stem = {"": "ecdsa", "ed": "ed25519"}.get(kind, kind)
    return (
        "on the host's console, ssh-keygen -lf "
        f"/etc/ssh/ssh_host_{stem}_key.pub must print {key.fingerprint}"
    )


def _learn(wanted: Wanted, key: HostKey) -> str:
    """Adds exactly the key that was compared, instead of whatever answers by then."""
    path = shlex.quote(str(wanted.files[0])) if wanted.files else "~/.ssh/known_hosts"
    line = f"{wanted.names[0]} {key.type} {base64.b64encode(key.blob).decode()}"
    return f"echo {shlex.quote(line)} >> {path}"
