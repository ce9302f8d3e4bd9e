"""Lazy dataclasses and expressions behave as those they stand for."""

from __future__ import annotations

import copy
import dataclasses
import gc
import importlib
import pickle
import pkgutil
import re
import threading
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

import commcheck
from commcheck import lazy
from commcheck.discover import discover

T = TypeVar("T")


class _Body:
    """The fields of the classes below: each made in both ways."""

    name: str
    count: int = 3
    KIND: ClassVar[str] = "x"
    items: list[int] = field(default_factory=list, compare=False)
    hidden: float = field(default=0.5, repr=False)
    doubled: int = field(init=False, default=0)
    seen: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", 2 * self.count)


def _both(**options: bool) -> tuple[Any, Any]:
    def made(decorate: Any) -> Any:
        body = {key: vars(_Body)[key] for key in vars(_Body) if key != "__dict__"}
        body["items"] = field(default_factory=list, compare=False)
        body["hidden"] = field(default=0.5, repr=False)
        body["doubled"] = field(init=False, default=0)
        body["seen"] = field(init=False, default=False)
        body.pop("__weakref__", None)
        return decorate(**options)(type("Thing", (), body))

    return made(lazy.dataclass), made(dataclasses.dataclass)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kw_only", [False, True])
def test_a_lazy_dataclass_is_a_dataclass(frozen: bool, kw_only: bool) -> None:
    ours, theirs = _both(slots=True, frozen=frozen, kw_only=kw_only)
    assert vars(ours)["__init__"].__qualname__.startswith("_first_call")  # nothing compiled yet
    made, expected = ours(name="a", count=4), theirs(name="a", count=4)
    assert dataclasses.asdict(made) == dataclasses.asdict(expected)
    assert repr(made) == repr(expected)
    assert made.doubled == 8
    assert made.seen is False
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert made == ours(name="a", count=4, items=[1])
    assert made != ours(name="b", count=4)
    assert made != expected
    assert dataclasses.replace(made, name="b").name == "b"
    assert copy.deepcopy(made) == made
    assert vars(ours)["__init__"].__qualname__ == "Thing.__init__"
    for given, named in (((), {}), (("a", 1, [], 0.1, 5), {}), ((), {"nome": "a"})):
        with pytest.raises(TypeError) as wrong:
            theirs(*given, **named)
        with pytest.raises(TypeError, match=re.escape(str(wrong.value))):
            ours(*given, **named)
    if kw_only:
        with pytest.raises(TypeError):
            ours("a")
    if not frozen:
        assert ours.__hash__ is None
        made.count = 5
        return
    assert hash(made) == hash(expected)
    with pytest.raises(FrozenInstanceError):
        made.count = 5
    with pytest.raises(FrozenInstanceError):
        del made.count


@lazy.dataclass(frozen=True, slots=True)
class Frozen(Generic[T]):
    """Has a type."""

    value: T
    more: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Derived(Frozen[int]):
    """Made in the usual way from one that is lazy."""

    last: int = 1


def test_what_is_derived_or_pickled_or_first_compared() -> None:
    assert Frozen(1) == Frozen(1)
    assert pickle.loads(pickle.dumps(Frozen("a", (1,)))) == Frozen("a", (1,))
    assert repr(Derived(1, (2,))) == "Derived(value=1, more=(2,), last=1)"
    assert len({Derived(1), Derived(1)}) == 1
    match Frozen(7):
        case Frozen(value):
            assert value == 7


def test_what_a_class_defines_itself_is_kept() -> None:
    @lazy.dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __hash__(self) -> int:
            return 17

        def __repr__(self) -> str:
            return "own"

    assert (hash(Own(1)), repr(Own(1)), Own(1) == Own(1)) == (17, "own", True)


def test_the_first_call_may_come_from_many_threads() -> None:
    for _ in range(50):
        ours, _ = _both(slots=True, frozen=True)
        made: list[Any] = []
        threads = [
            threading.Thread(target=lambda ours=ours, made=made: made.append(ours("a")))
            for _ in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert made == [ours("a")] * 8


def test_an_expression_is_compiled_when_it_is_asked() -> None:
    word = lazy.regex(r"(?P<word>\w+)", re.ASCII)
    assert vars(word).keys() == {"_told"}
    assert (found := word.match("one two")) is not None
    assert found["word"] == "one"
    assert (word.pattern, word.groups) == (r"(?P<word>\w+)", 1)
    assert word.sub("x", "one two") == "x x"
    with pytest.raises(re.error):
        lazy.regex("(").search("")


def test_every_expression_can_be_compiled() -> None:
    for module in pkgutil.walk_packages(commcheck.__path__, "commcheck."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    discover(cwd=Path(__file__).parent)
    found = [each for each in gc.get_objects() if type(each) is lazy._Regex]
    assert len(found) > 400
    for expression in found:
        assert isinstance(expression.flags, int)
        # Pythons before 3.11.5, as in Debian 12, match such a repeated group wrongly (gh-106052).
        assert not re.search(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>", str(expression.pattern))
