"""What reads text from outside, found by walking the package: each as a call that takes bytes.

A function counts by the name and the type of its first argument, and may raise what commcheck
raises on purpose and what its docstring says. All else that comes out is a bug.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import json
import pkgutil
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import commcheck
from commcheck import check, deliver, discover, errors
from commcheck.collect import sshconfig
from commcheck.collect.frames import FrameReader
from commcheck.collect.hostkeys import KnownHosts
from commcheck.command import Output
from commcheck.inventory.declared import Notes, Refused
from commcheck.inventory.load import load
from commcheck.inventory.patterns import select
from commcheck.jobs.offline import Told
from commcheck.lookup import readers_of, tools
from commcheck.metrics.api import Grid
from commcheck.report import html, junit, markdown, prom, text
from commcheck.report.document import document
from commcheck.report.replay import record_from_events
from commcheck.settings import settings

Call = Callable[[bytes], object]
Target = Callable[[bytes], bool]
"""True where the bytes were taken, False where they were refused in order."""

FOUND = discover.discover(cwd=Path(__file__).parent)
ROOT = Path(__file__).parents[2]

FILLED: dict[str, Callable[[], Any]] = {
    "str": lambda: "fuzz",
    "Sequence[FoundCheck]": lambda: FOUND,
    "Notes": Notes,
    "Told": Told,
    "Grid": lambda: Grid(1.7e9, 15, 40),
}
"""Arguments beside the first, by their type. A function that wants another one is left out."""

TEXTS = {"text", "data", "answer", "said", "pattern", "stamp", "line"}
NAMES = ("a.log", "a.json", "a.json.gz", "step_trace_time.csv", "kernel_details.csv", "a.yaml")
"""What a file is called decides who reads it: the first byte chooses."""


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def document_of(data: bytes) -> Any:
    """What a server or a saved file may hold; a text where it is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return decoded(data)


def mapping_of(data: bytes) -> dict[str, Any]:
    found = document_of(data)
    return found if isinstance(found, dict) else {"": found}


SHAPES: dict[tuple[str, str], Callable[[bytes], Any]] = {
    **{(name, "str"): decoded for name in TEXTS},
    **{(name, "bytes"): bytes for name in TEXTS},
    ("value", "object"): document_of,
    ("document", "object"): document_of,
    **{(name, "Mapping[str, Any]"): mapping_of for name in ("document", "kept", "line", "told")},
}
"""The first argument, by its name and type."""


def in_a_file(data: bytes, folder: Path) -> Path:
    path = folder / NAMES[data[0] % len(NAMES) if data else 0]
    path.write_bytes(data[1:])
    return path


def modules() -> Iterator[ModuleType]:
    for each in pkgutil.walk_packages(commcheck.__path__, "commcheck."):
        # What stands for hosts and what runs on them reads nothing from outside; a console prints.
        if not re.search(r"\.demo\b|\.step\.|\.console$|__main__", each.name):
            yield importlib.import_module(each.name)


def raised_by(function: Callable[..., Any], module: ModuleType) -> tuple[type[Exception], ...]:
    """What its docstring says, and what commcheck raises on purpose."""
    told = (function.__doc__ or "").partition("aises ``")[2]
    if next(iter(inspect.signature(function).parameters)) == "value":
        told += "ValueError``"  # what expect.Expect wants of each: the inventory tells it
    known = {**vars(builtins), **vars(errors), **vars(module)}
    found = [known.get(name) for name in re.findall(r"(\w+)``", told)]
    named = [one for one in found if isinstance(one, type) and issubclass(one, Exception)]
    return (errors.CommcheckError, Refused, *named)


def quietly(call: Call, allowed: tuple[type[Exception], ...]) -> Target:
    def run(data: bytes) -> bool:
        try:
            call(data)
        except allowed:
            return False
        return True

    return run


def functions(folder: Path) -> Iterator[tuple[str, Target]]:
    """Every public function that takes a text, a document, a file or files first."""
    for module in modules():
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if not own or name.startswith("_"):
                continue
            call = call_of(name, function, folder)
            if call is not None:
                short = module.__name__.removeprefix("commcheck.")
                yield f"function.{short}.{name}", quietly(call, raised_by(function, module))


def call_of(name: str, function: Callable[..., Any], folder: Path) -> Call | None:
    params = list(inspect.signature(function).parameters.values())
    more = [each for each in params[1:] if each.default is inspect.Parameter.empty]
    if not params or not all(each.annotation in FILLED for each in more):
        return None
    first = params[0]

    def filled() -> dict[str, Any]:
        return {each.name: FILLED[each.annotation]() for each in more}

    shape = SHAPES.get((first.name, first.annotation))
    if shape is not None:
        return lambda data: function(shape(data), **filled())
    if first.name == "paths" and name.startswith("analyse_"):
        as_type = Path if first.annotation == "Sequence[Path]" else str
        return lambda data: function([as_type(in_a_file(data, folder))], **filled())
    if first.name == "path" and first.annotation in ("Path", "Source") and name != "distrusted":
        return lambda data: list_of(function(in_a_file(data, folder), **filled()))
    return None


def list_of(value: object) -> object:
    """What a generator reads, it reads only when it is asked."""
    return list(value) if inspect.isgenerator(value) else value


def readers() -> Iterator[tuple[str, Target]]:
    """Every reader of a tool's output."""
    unique = {id(each): each for each in (*tools(FOUND).values(), *readers_of(FOUND))}
    for number, reader in enumerate(unique.values()):
        if isinstance(reader, check.Reader):

            def run(data: bytes, reader: check.Reader[Any] = reader) -> object:
                said = decoded(data)
                return reader.parse(*(Output(said, "") for _ in reader.commands))

            yield f"reader.{reader.tool}-{number}", quietly(run, (errors.Unjudgeable,))


# --- what takes more than one call ----------------------------------------------------------------


def frames(data: bytes) -> None:
    """Chunks of both streams, as a host chooses; the third byte of each says how long it is."""
    reader = FrameReader("cc-0123456789abcdef")
    reader.expect([1000, 10])
    said = data.replace(b"@", b"\ncc-0123456789abcdef ")
    for at in range(0, len(said), 37):
        reader.feed("err" if said[at] % 3 == 0 else "out", said[at : at + 37])
    reader.left_over()
    assert len(reader.last_words) <= 200


def inventory(data: bytes, folder: Path) -> None:
    path = folder / ("hosts.yaml", "hosts", "hosts.json")[data[0] % 3 if data else 0]
    path.write_bytes(data[1:])
    found = load((str(path),), cwd=folder)
    select(found, "all:!x*", cwd=folder)


def limit(data: bytes, folder: Path) -> None:
    found = load(("gpu-[01:20],a,b,",), cwd=folder)
    select(found, decoded(data).replace("@", ""), cwd=folder)


def configuration(data: bytes, folder: Path) -> None:
    path = folder / "given.toml"
    path.write_bytes(data)
    settings(path, folder, {"forks", "notify", "lang"})


def known_hosts(data: bytes) -> None:
    KnownHosts().read(data.decode(errors="surrogateescape"), "known_hosts")


def ssh_config(data: bytes, folder: Path) -> None:
    # What only ssh itself can read is given to it, which takes a process for each.
    path = folder / "ssh_config"
    path.write_bytes(re.sub(rb"(?i)include|match|canonical", b"x", data))
    sshconfig.SshConfig(path).lookup("gpu-01")


def reports(data: bytes) -> None:
    record = record_from_events(decoded(data).splitlines(keepends=True))
    document(record)
    for render in (text.render, markdown.render, html.render, junit.render, prom.render):
        assert b"\x1b" not in repr(render(record)).encode()


def comparison(data: bytes) -> None:
    old, new = data[: len(data) // 2], data[len(data) // 2 :]
    deliver.differences(mapping_of(old), mapping_of(new))


def all_targets() -> dict[str, Target]:
    """By name. Files are written to a folder of this process, which goes away with it."""
    folder = Path(tempfile.mkdtemp(prefix="commcheck-fuzz-"))
    plain: tuple[Call, ...] = (frames, known_hosts, reports, comparison)
    in_folder = (inventory, limit, configuration, ssh_config)
    calls = {each.__name__: each for each in plain}
    calls |= {each.__name__: partial(each, folder=folder) for each in in_folder}
    told = (errors.CommcheckError, Refused)
    whole = {f"whole.{name}": quietly(call, told) for name, call in calls.items()}
    return {**dict(functions(folder)), **dict(readers()), **whole}


EXAMPLES = (
    *(ROOT / "tests" / "recorded", ROOT / "tests" / "report" / "golden"),
    *(ROOT / "inventory", ROOT / "playbooks"),
)
MADE = (
    b"@begin 0 1.5\nhost gpu-01\n@end 0 0 1.75 plain\n@begin 1 2.0\nup@end 1 0 2.1 sudo\n@bye\n",
    b"h1,[h2]:2222 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1n\n@revoked * ssh-rsa A\n|1|a=|b= x y\n",
    b"Host gpu-* !gpu-9\n  ProxyJump a@b:22\n  Port 22\n",
    b'forks = 3\nnotify = ["a"]\n[hooks.a]\ntype = "slack"\n',
    b"gpu:!gpu-07:&x[1:3]:~re.*:@file",
    b"\x01[gpu]\ngpu-[01:20:2] ansible_port=22\n[gpu:vars]\ncommcheck_nics=['a']\n",
    b"gpu-[01-16,20],a1",
)


def seeds(target: str, take: Target, most: int = 3) -> Iterator[bytes]:
    """A few examples that a target takes, those that its name tells of first."""
    words = set(re.findall(r"[a-z]{3,}", target.lower()))
    found = sorted(
        (path for folder in EXAMPLES for path in folder.rglob("*") if path.is_file()),
        key=lambda path: (-len(words & set(re.findall(r"[a-z]{3,}", str(path).lower()))), path),
    )
    texts = (path.read_bytes() for path in found[:40] if path.stat().st_size < 60_000)
    named = [b"", *(bytes([number]) for number in range(len(NAMES)))]
    for data in (*MADE, *texts):
        for name in named:
            if most and take(name + data):
                most -= 1
                yield name + data
                break
