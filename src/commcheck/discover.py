"""Finding checks and playbooks on the search path: ``--checks DIR``, ``./checks``, bundled.

Checks are loaded by path, not imported as a package, so that a site's own folder adds checks or
overrides bundled ones by id. A check file that cannot be loaded becomes a check that answers
``error`` on every host: a broken site check must not hide, and must not stop an incident run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from commcheck.check import AnyCheck, Check, Nothing, limits_of, readings_of
from commcheck.collector import put_off
from commcheck.errors import CheckError, Unjudgeable
from commcheck.fields import near
from commcheck.files import read_whole
from commcheck.inventory.declared import quoted
from commcheck.lazy import dataclass, regex
from commcheck.model import Layer, Machine, Rail, Verdict, Words
from commcheck.trust import distrusted

_BYTES_MOST = 16 << 20
_LAYERS = ", ".join(Layer)
_IS_CHECK = regex(r"^CHECK\b.*=\s*Check\(", re.MULTILINE)
_ID = regex(r"(physical|library|runtime|application)\.[a-z0-9]+(-[a-z0-9]+)*")


class CheckBroken(Unjudgeable):
    """The check's own file cannot be loaded."""


@dataclass(frozen=True, slots=True)
class FoundCheck:
    """A check, the file it came from, its docstring, and what it took the place of."""

    check: AnyCheck
    path: Path
    doc: str
    bundled: bool
    overrides: Path | None = None

    @property
    def id(self) -> str:
        """The check's id."""
        return self.check.id

    @property
    def digest(self) -> str:
        """SHA-256 of the file, in hex; "" where it cannot be read: then it is broken, too."""
        try:
            return hashlib.sha256(read_whole(self.path, _BYTES_MOST)).hexdigest()
        except OSError:
            return ""


def bundled_folder(name: str) -> Path:
    """The folder ``name`` (checks, playbooks) of the wheel, or of the checkout it runs from."""
    here = Path(__file__).resolve().parent
    wheel = here / "_bundled" / name
    return wheel if wheel.is_dir() else here.parents[1] / name


@put_off()
def discover(extra: Sequence[Path] = (), *, cwd: Path) -> tuple[FoundCheck, ...]:
    """Every check on the search path, by layer and id; earlier folders override later ones.

    Raises ``CheckError`` where a folder named by the operator is missing or holds no layer's
    folder, where ``./checks`` is another user's or may be written by everybody, or where ids clash.
    """
    bundled = bundled_folder("checks").resolve()
    folders = [_existing(folder) for folder in extra]
    local = cwd / "checks"
    if _is_site(local, folders) and _looks_like_checks(local):
        _refuse_distrusted(local)
        folders.append(local)
    found: dict[str, FoundCheck] = {}
    for folder in [*folders, bundled]:
        for one in _load_folder(folder, bundled=folder == bundled):
            taken = found.get(one.id)
            if taken is None:
                found[one.id] = one
            elif taken.overrides is None:
                found[one.id] = FoundCheck(
                    taken.check, taken.path, taken.doc, taken.bundled, overrides=one.path
                )
    _validate(found.values())
    return tuple(sorted(found.values(), key=lambda one: (one.check.layer.height, one.id)))


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise CheckError(f"{folder}: error: no such folder of checks [checks]")
    if not _looks_like_checks(folder):
        is_layer = folder.absolute().name in [*Layer]
        hint = f"; name the one above it: --checks {folder.parent}" if is_layer else ""
        raise CheckError(f"{folder}: error: holds none of the folders {_LAYERS}{hint} [checks]")
    return folder


def _is_site(local: Path, named: Sequence[Path]) -> bool:
    """True for a ``./checks`` that is neither the bundled folder nor named by the operator."""
    known = {folder.resolve() for folder in (bundled_folder("checks"), *named)}
    return local.is_dir() and local.resolve() not in known


def strays(extra: Sequence[Path] = (), *, cwd: Path) -> tuple[str, ...]:
    """A warning for each check file on the search path that is in no layer's folder."""
    local = cwd / "checks"
    folders = [*extra, *([local] if _is_site(local, extra) else [])]
    return tuple(
        f"{path}: warning: not asked: {no_layer(path)} [layer]"
        for folder in folders
        for path in misplaced(folder)
    )


def no_layer(path: Path) -> str:
    """What is wrong with the folder of a check file that is in no layer's."""
    name = path.absolute().parent.name
    return f"folder {quoted(name)} is none of {_LAYERS}{near(name, [*Layer])}"


def misplaced(folder: Path) -> Iterator[Path]:
    """The check files that lie in ``folder`` or one below it, where nobody looks for them."""
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/*.py")]):
        if path.absolute().parent.name in [*Layer] or path.name.startswith("_"):
            continue
        try:
            text = read_whole(path, _BYTES_MOST).decode("utf-8", "replace")
        except OSError:
            continue
        # It is not loaded: the folder may belong to something else altogether.
        if _IS_CHECK.search(text):
            yield path


def _looks_like_checks(folder: Path) -> bool:
    # A project may have its own ./checks that has nothing to do with us.
    return any((folder / layer.value).is_dir() for layer in Layer)


def _refuse_distrusted(folder: Path) -> None:
    layers = [folder / layer.value for layer in Layer if (folder / layer.value).is_dir()]
    for each in (folder, *layers, *(path for layer in layers for path in layer.glob("*.py"))):
        if why := distrusted(each):
            raise CheckError(
                f"{each}: error: {why}, so no check of {folder} is loaded; run elsewhere, or name "
                "the folder with --checks [checks]"
            )


def _load_folder(folder: Path, *, bundled: bool) -> Iterable[FoundCheck]:
    seen: dict[str, Path] = {}
    for layer in Layer:
        for path in sorted((folder / layer.value).glob("*.py")):
            if path.name.startswith("_"):
                continue
            one = load(path, layer, bundled=bundled)
            if one.id in seen:
                raise CheckError(
                    f"{path}: error: check id {one.id!r} again (first in {seen[one.id]}) [checks]"
                )
            seen[one.id] = path
            yield one


def id_of(layer: Layer, path: Path) -> str:
    """The id that a check has by its file: ``nic_mtu.py`` -> physical.nic-mtu."""
    return f"{layer.value}.{path.stem.replace('_', '-')}"


def load(path: Path, layer: Layer, *, bundled: bool = False) -> FoundCheck:
    """One check file. What is wrong with it becomes a check that says so."""
    check_id = id_of(layer, path)
    try:
        module = _import(path)
        check = getattr(module, "CHECK", None)
        if not isinstance(check, Check):
            raise CheckBroken(f"{path}: has no CHECK = Check(...)")
        if not _ID.fullmatch(check.id) or check.layer is not layer:
            raise CheckBroken(f"{path}: its id {check.id!r} is not {layer.value}.<noun>")
        for reading in readings_of(check.seen).values():
            subject = Rail if reading.every_rail else check.subject
            if reading.reader.per not in (Machine, subject):
                raise CheckBroken(f"{path}: a {check.subject.__name__} check cannot read per rail")
        limits_of(check.limits)
        return FoundCheck(check, path, (module.__doc__ or "").strip(), bundled)
    except CheckBroken as error:
        return FoundCheck(_broken(check_id, error.reason), path, "", bundled)
    except Exception as error:  # noqa: BLE001 - a foreign file may raise anything while it loads
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename}:{last.lineno}" if last.filename == str(path) else str(path)
        if isinstance(error, SyntaxError):
            where = f"{path}:{error.lineno}"
        reason = f"{type(error).__name__}: {error}".splitlines()[0] + f" ({where})"
        return FoundCheck(_broken(check_id, reason), path, "", bundled)


def _import(path: Path) -> ModuleType:
    # The name carries a digest of the folder: two folders may hold a file of one name.
    digest = hashlib.sha256(str(path.resolve().parent).encode()).hexdigest()[:8]
    name = f"commcheck_checks_{digest}_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CheckBroken(f"{path}: cannot be loaded")
    read_whole(path, _BYTES_MOST)  # a pipe would keep us waiting for its writer
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up in sys.modules while the class body is executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _broken(check_id: str, reason: str) -> AnyCheck:
    def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
        raise CheckBroken(f"the check cannot be loaded: {reason}", "mend or remove the file")

    return Check(
        id=check_id,
        title=Words(f"{check_id} (cannot be loaded)", f"{check_id}(无法加载)"),
        subject=Machine,
        seen=Nothing,
        judge=judge,
    )


def _validate(found: Collection[FoundCheck]) -> None:
    """Ids must differ by more than punctuation (Jenkins' URLs), needs must exist, no cycles."""
    by_url: dict[str, FoundCheck] = {}
    checks = {one.id: one.check for one in found}
    for one in found:
        url = re.sub(r"\W", "_", one.id)
        if url in by_url:
            raise CheckError(
                f"{one.path}: error: id {one.id!r} differs from {by_url[url].id!r} only in "
                f"punctuation, and Jenkins would swap their pages [checks]"
            )
        by_url[url] = one
        for need in one.check.needs:
            if need not in checks or checks[need].layer is not one.check.layer:
                raise CheckError(
                    f"{one.path}: error: needs {need!r}, which is no check of its layer [checks]"
                )
    in_order_of_needs(checks.values())
    validate_edges(tuple(found))


def validate_edges(found: Sequence[FoundCheck]) -> None:
    """A consequence names a cause that some check can find, and no check explains itself."""
    finders: dict[str, set[str]] = {}
    for one in found:
        for cause in (*one.check.causes, *(trait.cause for trait in one.check.peers)):
            finders.setdefault(cause.slug, set()).add(one.id)
    # A site's check may stand in for one of ours, or be broken: its causes may be gone then.
    whole = all(one.bundled and one.doc for one in found)
    below: dict[str, set[str]] = {}
    for one in found:
        for slug in one.check.contradicts:
            if whole and slug not in finders:
                raise CheckError(
                    f"{one.path}: error: contradicts {slug!r}, which no check finds [checks]"
                )
        for edge in one.check.explained_by:
            if whole and edge.cause not in finders:
                raise CheckError(
                    f"{one.path}: error: explained by {edge.cause!r}, which no check finds [checks]"
                )
            below.setdefault(one.id, set()).update(finders.get(edge.cause, ()))
    for one in found:
        seen: set[str] = set()
        waiting = list(below.get(one.id, ()))
        while waiting:
            other = waiting.pop()
            if other == one.id:
                raise CheckError(
                    f"{one.path}: error: {one.id} would explain itself by what explains it [checks]"
                )
            if other not in seen:
                seen.add(other)
                waiting += below.get(other, ())


def in_order_of_needs(checks: Iterable[AnyCheck]) -> list[AnyCheck]:
    """The checks, each after those it needs, else in the order given.

    Needs that are not among them are left out. Raises ``CheckError`` for a cycle.
    """
    given = {check.id: check for check in checks}
    done: dict[str, AnyCheck] = {}
    open_: list[str] = []

    def place(check: AnyCheck) -> None:
        if check.id in done:
            return
        if check.id in open_:
            cycle = " -> ".join([*open_[open_.index(check.id) :], check.id])
            raise CheckError(f"checks: error: needs go in a circle: {cycle} [checks]")
        open_.append(check.id)
        for need in check.needs:
            if need in given:
                place(given[need])
        open_.pop()
        done[check.id] = check

    for check in given.values():
        place(check)
    return list(done.values())
