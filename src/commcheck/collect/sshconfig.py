"""What ``~/.ssh/config`` says of a host, without ever running a command that it names.

A plain file is read with paramiko's parser. ``Include``, ``Match`` and ``Canonicalize*`` mean
what OpenSSH says they mean, so there, and in files so long that the parser's linear look-up
would cost more than a process, ``ssh -G`` is asked (5 ms a host). ``Match exec`` would run a
command even for ``ssh -G``: it is made to count as false.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commcheck.errors import Unreachable
from commcheck.files import read_whole
from commcheck.inventory.ssh_arguments import HOST_KEYS
from commcheck.lazy import dataclass, regex
from commcheck.trust import distrusted

if TYPE_CHECKING:
    from paramiko import SSHConfig

_BEYOND_PLAIN: Final = regex(r"^\s*(include|match|canonicalize\w*)\b", re.I | re.M)
_STANZA: Final = regex(r"^\s*host\b", re.I | re.M)
_BYTES_MOST: Final = 64 << 20
_MAX_STANZAS: Final = 150
"""Where the parser's look-up (27 ms in 1000 stanzas) begins to cost as much as ``ssh -G``."""

_NAME: Final = regex(r"[A-Za-z0-9_.:%\[][A-Za-z0-9_.:%\[\]-]*")
"""Host and user names that may stand in a command line: no shell characters, no option."""

_MODES: Final = {**HOST_KEYS, "ask": "strict"}


@dataclass(frozen=True, slots=True)
class Options:
    """What a file sets for one host; empty where it sets nothing. Tokens and ``~`` expanded."""

    hostname: str = ""
    port: int | None = None
    user: str = ""
    identity_files: tuple[Path, ...] = ()
    proxy_jump: str = ""  # "none" where the file switches it off
    proxy_command: str = ""  # unexpanded: its %h and %p are the final ones
    known_hosts: tuple[Path, ...] = ()
    host_keys: str = ""  # "strict", "accept-new" or "insecure"
    host_key_alias: str = ""


def is_safe_name(text: str) -> bool:
    """Whether a host or user name may be put into a command line of this machine."""
    return _NAME.fullmatch(text) is not None


class SshConfig:
    """One configuration file; a missing one sets nothing. Thread-safe, each host resolved once.

    ``found``: nobody named it, so it is not followed where others could have written it.
    """

    def __init__(self, path: Path, *, found: bool = False) -> None:
        self._path = path
        self._distrusted = ""
        self._lock = threading.Lock()
        self._cache: dict[str, Options] = {}
        self._plain: SSHConfig | None = None
        self._defaults: Mapping[str, list[str]] | None = None
        try:
            self._text = read_whole(path, _BYTES_MOST).decode(errors="replace")
            self._distrusted = distrusted(path) if found else ""
        except OSError:
            self._text = ""
        self._needs_ssh = bool(
            _BEYOND_PLAIN.search(self._text)
            or (len(_STANZA.findall(self._text)) > _MAX_STANZAS and shutil.which("ssh"))
        )

    def lookup(self, name: str) -> Options:
        """The options for a host as it would be typed after ``ssh``.

        Raises ``Unreachable`` ("ssh-config") where the file cannot be understood or trusted.
        """
        if self._distrusted:
            raise Unreachable(
                "ssh-config",
                f"not followed: {self._distrusted}, and it may name a command to run",
                f"chown and chmod 600 {self._path}, or give another file with --ssh-config",
            )
        if not self._text.strip():
            return Options()
        with self._lock:
            if name in self._cache:
                return self._cache[name]
        found = self._ask_ssh(name) if self._needs_ssh else self._parse(name)
        with self._lock:
            self._cache[name] = found
        return found

    def _parse(self, name: str) -> Options:
        from paramiko import SSHConfig
        from paramiko.ssh_exception import SSHException

        with self._lock:
            try:
                if self._plain is None:
                    self._plain = SSHConfig.from_text(_keep_tokens(self._text))
                found: Mapping[str, Any] = self._plain.lookup(name)
            except (SSHException, ValueError) as error:
                raise self._unusable(str(error)) from error
        values = {
            key: [str(each) for each in value] if isinstance(value, list) else [str(value)]
            for key, value in found.items()
            if value is not None
        }
        for key, value in values.items():
            values[key] = [each.replace(_PERCENT, "%") for each in value]
        return self._options(name, values)

    def _ask_ssh(self, name: str) -> Options:
        if not is_safe_name(name):
            raise self._unusable(f"{name!r} is no host name")
        with self._lock:
            if self._defaults is None:
                self._defaults = self._run(Path("/dev/null"), "localhost")
        values = self._run(self._path, name)
        # What ssh would do without the file is not something the file sets.
        own = {key: value for key, value in values.items() if value != self._defaults.get(key)}
        if own.get("hostname") == [name]:
            del own["hostname"]
        return self._options(name, own)

    def _run(self, path: Path, name: str) -> dict[str, list[str]]:
        shell = shutil.which("false") or "/bin/false"
        argv = ["ssh", "-G", "-F", str(path), "--", name]
        try:
            done = subprocess.run(  # noqa: S603 - fixed words, the name is checked
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="surrogateescape",
                timeout=10,
                check=False,
                # ssh runs the command of "Match exec" with $SHELL -c: false runs nothing.
                env={
                    "SHELL": shell,
                    "HOME": str(Path.home()),
                    "PATH": os.environ.get("PATH", os.defpath),
                    "LC_ALL": "C",
                },
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._unusable(f"it needs ssh -G, which fails: {error}") from error
        if done.returncode != 0:
            raise self._unusable(done.stderr.strip().rpartition("\n")[2])
        values: dict[str, list[str]] = {}
        for line in done.stdout.splitlines():
            key, _, value = line.partition(" ")
            values.setdefault(key, []).append(value)
        return values

    def _options(self, name: str, values: Mapping[str, list[str]]) -> Options:
        def first(key: str) -> str:
            return values.get(key, [""])[0].strip()

        port, hostname, user = first("port"), first("hostname"), first("user")
        if port and not port.isdecimal():
            raise self._unusable(f"port {port!r}")
        tokens = {
            "h": hostname or name,
            "n": name,
            "p": port or "22",
            "r": user or getpass.getuser(),
            "u": getpass.getuser(),
            "d": str(Path.home()),
        }
        strict, alias = first("stricthostkeychecking").lower(), first("hostkeyalias")
        return Options(
            hostname=expand(hostname, {"h": name, "n": name}) if hostname != name else "",
            port=int(port) if port else None,
            user=user,
            identity_files=tuple(
                Path(expand(each, tokens)).expanduser()
                for each in values.get("identityfile", [])
                if each != "none"
            ),
            proxy_jump=first("proxyjump"),
            proxy_command=first("proxycommand") if first("proxycommand") != "none" else "",
            known_hosts=tuple(
                Path(expand(each, tokens)).expanduser()
                for each in first("userknownhostsfile").split()
            ),
            host_keys=_MODES.get(strict, "strict") if strict else "",
            host_key_alias=expand(alias, tokens),
        )

    def _unusable(self, why: str) -> Unreachable:
        return Unreachable(
            "ssh-config",
            f"{self._path} cannot be used for this host: {why}",
            f"ssh -G -F {self._path} HOST shows what OpenSSH makes of it; "
            "or give another file with --ssh-config",
        )


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """Replace ``%h``-like tokens; an unknown one stays as it is."""
    return re.sub(
        r"%(.)", lambda match: "%" if match[1] == "%" else tokens.get(match[1], match[0]), text
    )


_PERCENT: Final = "\ue000"  # private use: no file has it


def _keep_tokens(text: str) -> str:
    """Keep paramiko from expanding tokens, which it does with what it knows, not what is final."""
    return text.replace("%", _PERCENT)
