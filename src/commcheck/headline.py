"""The sentences in which a run's meaning is told, in both languages; pure words, no judgement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from commcheck.lazy import dataclass
from commcheck.model import Kind, Layer, Words
from commcheck.report.counts import many

if TYPE_CHECKING:
    from commcheck.diagnose import Group, Rung
    from commcheck.report.record import Record

LAYERS: Final[Mapping[Layer, str]] = {
    Layer.PHYSICAL: "物理层",
    Layer.LIBRARY: "通信库层",
    Layer.RUNTIME: "运行时层",
    Layer.APPLICATION: "应用层",
}
"""Chinese names."""

_COUNTED: Final[Mapping[str, str]] = {
    "host": "台主机",
    "watched host": "台受监控主机",
    "file": "个文件",
    "job": "个作业",
}


@dataclass(frozen=True, slots=True)
class Whole:
    """What a run is about: how many of what."""

    count: int
    noun: str

    @property
    def words(self) -> Words:
        """``12 hosts``."""
        return Words(many(self.count, self.noun), f"{self.count:,} {self.counted}")

    @property
    def counted(self) -> str:
        """The Chinese counting word with its noun."""
        return _COUNTED.get(self.noun, "个对象")

    def part(self, count: int) -> Words:
        """``2 of 12 hosts``."""
        whole = f"{self.count:,} {self.counted}"
        return Words(f"{count:,} of {self.words.en}", f"{whole}中的 {count:,} {self.counted[0]}")


@dataclass(frozen=True, slots=True)
class Blind:
    """How many hosts were not judged in full, and of how many of them nothing is known."""

    count: int
    wholly: int


def layer_title(layer: Layer) -> str:
    """``Physical layer``."""
    return f"{layer.value.capitalize()} layer"


def passes(rung: Rung) -> bool:
    """True where a layer's word is a pass, with or without warnings."""
    return rung.word.split(",")[0] == "pass"


def headline(
    lowest: Sequence[Group],
    warned: Sequence[Group],
    blind: Blind,
    ladder: Sequence[Rung],
    whole: Whole,
) -> Words:
    """One sentence: where it breaks, why and on how many; or what was proven instead.

    Where nothing fails, ``warned`` is told as well: a job over TCP must not read like a pass.
    """
    if lowest:
        return _broken(lowest, whole)
    if blind.count:
        said = unknown(blind, whole)
        told = Words(f"No failure found, but {said.en}", f"未发现故障，但 {said.zh}")
    else:
        told = _good(ladder, whole)
    if not warned:
        return told
    title = warned[0].title
    others = len(warned) - 1
    return Words(
        f"{told.en}; {many(len(warned), 'warning')}: {title.en}{', ...' if others else ''}",
        f"{told.zh}；{len(warned):,} 项告警：{title.zh or title.en}{'……' if others else ''}",
    )


def unknown(blind: Blind, whole: Whole) -> Words:
    """How many could not be judged: at all, or in full, which one missing tool is enough for."""
    part = whole.part(blind.count)
    if blind.wholly == blind.count:
        return Words(f"{part.en} could not be judged", f"{part.zh}未能判定")
    told = Words(f"{part.en} could not be judged in full", f"{part.zh}未能完整判定")
    if not blind.wholly:
        return told
    return Words(
        f"{told.en}, {blind.wholly:,} of them not at all",
        f"{told.zh}，其中 {blind.wholly:,} {whole.counted[0]}完全未判定",
    )


_NAMED: Final = 2
"""Further causes that the headline names; the others are counted."""


def _broken(lowest: Sequence[Group], whole: Whole) -> Words:
    first, others = lowest[0], lowest[1:]
    rest = rest_zh = ""
    if others:
        named = [each.title for each in others[:_NAMED]]
        cut = len(others) > _NAMED
        rest = f", and {many(len(others), 'more cause')}: "
        rest += ", ".join(each.en for each in named) + (", ..." if cut else "")
        rest_zh = f"，另有 {len(others):,} 个原因："
        rest_zh += "、".join(each.zh or each.en for each in named) + ("……" if cut else "")
    part = whole.part(len(first.hosts))
    where, where_zh = f", {part.en}", f"，{part.zh}"
    if whole.noun != "host" and whole.count == 1:
        where = where_zh = ""  # one file, or a job as a whole: it is the only place
    title = first.title
    return Words(
        f"{layer_title(first.layer)} is where it breaks: {title.en}{where}{rest}",
        f"问题出在{LAYERS[first.layer]}：{title.zh or title.en}{where_zh}{rest_zh}",
    )


def _good(ladder: Sequence[Rung], whole: Whole) -> Words:
    passing = [rung.layer for rung in ladder if passes(rung)]
    tail = tail_zh = ""
    if unmeasured := sum(rung.cases.get(Kind.NOT_PERMITTED, 0) for rung in ladder):
        tail = f"; {many(unmeasured, 'case')} not measured (not permitted)"
        tail_zh = f"；{unmeasured:,} 项未测量（未获许可）"
    if len(passing) == len(Layer):
        return Words(
            f"All four layers pass on {whole.words.en}{tail}",
            f"四层在 {whole.words.zh}上全部通过{tail_zh}",
        )
    rest = _others(ladder)
    if not passing:
        return Words(
            f"Nothing was judged on {whole.words.en}: {rest.en}",
            f"{whole.words.zh}上没有任何判定：{rest.zh}",
        )
    names = ", ".join(layer.value for layer in passing).capitalize()
    names_zh = "、".join(LAYERS[layer] for layer in passing)
    verb = "layer passes" if len(passing) == 1 else "layers pass"
    good = Words(f"{names} {verb} on {whole.words.en}", f"{names_zh}在 {whole.words.zh}上通过")
    if whole.noun != "host":
        return good  # nobody asked for the other layers
    return Words(f"{good.en}; {rest.en}{tail}", f"{good.zh}；{rest.zh}{tail_zh}")


def _others(ladder: Sequence[Rung]) -> Words:
    """The layers that do not pass, by what they are instead."""
    others: defaultdict[str, list[Layer]] = defaultdict(list)
    for rung in ladder:
        if not passes(rung):
            others[rung.word].append(rung.layer)
    return Words(
        "; ".join(
            f"{', '.join(each.value for each in layers)} {_NEITHER[word][len(layers) > 1]}"
            for word, layers in others.items()
        ),
        "；".join(
            f"{'、'.join(LAYERS[each] for each in layers)}{_NEITHER[word][2]}"
            for word, layers in others.items()
        ),
    )


_NEITHER: Final = {
    # The words of a layer that neither passes nor has anything that could not be judged.
    "not climbed": ("was not climbed", "were not climbed", "未检查"),
    "not measured": ("was not measured", "were not measured", "未测量"),
    "not applicable": ("does not apply", "do not apply", "不适用"),
    "partly judged": ("was partly judged", "were partly judged", "仅部分判定"),
    "not judged": ("was not judged", "were not judged", "未判定"),
    "pass so far": (
        "was not judged everywhere",
        "were not judged everywhere",
        "部分主机未判定",
    ),
}


def elsewhere(failing: Iterable[Group], lowest: Layer | None) -> list[Words]:
    """Other hosts that break first higher up: one sentence a layer."""
    groups = list(failing)
    seen = {host for group in groups if group.layer is lowest for host in group.hosts}
    sentences = []
    for layer in Layer:
        hosts = {host for group in groups if group.layer is layer for host in group.hosts} - seen
        if hosts and layer is not lowest:
            verb = "breaks" if len(hosts) == 1 else "break"
            sentences.append(
                Words(
                    f"{many(len(hosts), 'other host')} {verb} first at the {layer.value} layer.",
                    f"另有 {len(hosts):,} 台主机最先在{LAYERS[layer]}出问题。",
                )
            )
        seen |= hosts
    return sentences


def unfinished(record: Record) -> list[Words]:
    """What a run left undone that did not end by itself."""
    if record.state == "complete":
        return []
    missing = record.plan.size - len(
        {(result.host, result.check) for result in record.results}
        & {(host, check) for host, checks in record.plan.cases.items() for check in checks}
    )
    stopped = record.state == "interrupted"
    how = "was interrupted" if stopped else "did not end by itself"
    cases = f"{missing:,} of {many(record.plan.size, 'planned case')}"
    how_zh = "被中断" if stopped else "未正常结束"
    return [
        Words(
            f"Incomplete: the run {how}, {cases} were not judged.",
            f"不完整：运行{how_zh}，计划的 {record.plan.size:,} 项中有 {missing:,} 项未判定。",
        )
    ]


def proven(ladder: Sequence[Rung], checks: Mapping[Layer, Collection[str]]) -> tuple[Words, ...]:
    """What was read and is right, layer by layer; what was not stands among the gaps."""
    told = []
    for rung in ladder:
        right = rung.cases.get("pass", 0)
        if not right:
            continue
        hosts = rung.hosts.get("pass", 0) + rung.hosts.get("warn", 0)
        total = sum(rung.cases.values())
        told.append(
            Words(
                f"{rung.layer.value}: {right:,} of {many(total, 'case')} read and right "
                f"({many(len(checks[rung.layer]), 'check')}), {many(hosts, 'host')} free of fault",
                f"{LAYERS[rung.layer]}：{total:,} 项中有 {right:,} 项已读取且正确"
                f"（{len(checks[rung.layer])} 个检查），{hosts:,} 台主机无故障",
            )
        )
    return tuple(told)
