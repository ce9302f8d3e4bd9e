"""``lsmod``: the loaded kernel modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, ModuleState

TOOLS: Final = ("lsmod",)

HEAD: Final = "Module                  Size  Used by\n"


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """All of them."""
    yield Answer(("lsmod",), HEAD + render(host.modules))


def render(modules: tuple[ModuleState, ...]) -> str:
    """The lines of ``lsmod`` below its first."""
    lines = [
        f"{each.name:<19} {each.size:>8}  {' '.join([str(each.uses), *_users(each)])}\n"
        for each in modules
    ]
    return "".join(lines)


def _users(module: ModuleState) -> Iterator[str]:
    if module.users:
        yield ",".join(module.users)
