"""``runbook.zh.md``: the Chinese procedure, from the same checks as ``runbook.md``.

A check's words, causes and remedies are there in both languages and stand here in Chinese, with the
commands that it reads. The background in its docstring is English; each section links to it.
Written by ``python -m commcheck.runbook zh > runbook.zh.md``; a test holds the file to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.check import AnyCheck, readings_of
from commcheck.headline import LAYERS
from commcheck.model import Cause, Layer, Remedy
from commcheck.report.interface import known
from commcheck.runbook import anchor, by_needs, shown

_MOST_COMMANDS: Final = 6

_INTRODUCTION: Final = """\
# 处置手册：通信在哪一层断了？

训练变慢或卡住时，从网线开始向上逐层检查，停在第一个不通过的层：更高层的异常多半只是它的连带结果。

{layers}

步骤：

1. 运行 `commcheck run -i INVENTORY`。它只读取，不改动主机；结论是哪一层、哪些主机、什么原因。
2. 打开报告指向的章节：这项检查读取什么，可能发现什么，如何处置，代价是什么。
3. 修复根因，先用影响最小的处置。commcheck 不会替你执行。大写的词由你填写，报告中已填好。
4. 再运行一次。只有读到且正确的才算健康：“无法判定”不是通过。

在主机上写入任何东西之前：主机是否已排空？调度器是否知晓？这块网卡是否承载你的 SSH 会话？
对端是否已同意？

本手册由各项检查自动生成。原理、手工复核方法与“看似异常其实正常”的情形见英文版
[runbook.md](runbook.md)，每节末尾有链接。
"""

_LAYERS: Final = {
    Layer.PHYSICAL: "主机、加速卡、网卡、链路，以及使网络无损的设置",
    Layer.LIBRARY: "NCCL 与 HCCL：是否走了硬件提供的路径",
    Layer.RUNTIME: "正在运行的作业：它在等什么，其间什么出了故障",
    Layer.APPLICATION: "训练程序：分桶、重叠、切分",
}


def assemble(checks: Sequence[AnyCheck]) -> str:
    """The Chinese runbook, in the order of the English one."""
    layers = "\n".join(
        f"{layer.height}. **{LAYERS[layer]}**：{what}" for layer, what in _LAYERS.items()
    )
    parts = [_INTRODUCTION.format(layers=layers)]
    told: dict[str, None] = {}
    for layer, what in _LAYERS.items():
        here = [check for check in checks if check.layer is layer]
        if here:
            parts.append(f"## 第 {layer.height} 层：{LAYERS[layer]}\n\n{what}\n")
            parts.extend(_section(check, told) for check in by_needs(here))
    return "\n".join(parts)


def _section(check: AnyCheck, told: dict[str, None]) -> str:
    """One check's section. ``told``: slugs of causes that stand further up, and are linked."""
    lines = [f'<a id="{anchor(check.id)}"></a>', "", f"### {check.title.zh}（`{check.id}`）", ""]
    if commands := _commands(check):
        lines += [f"**读取：** {'；'.join(f'`{each}`' for each in commands)}。", ""]
    if check.needs:
        needs = "、".join(f"[`{need}`](#{anchor(need)})" for need in check.needs)
        lines += [f"**在此之后判定：** {needs}。", ""]
    new = [cause for cause in check.causes if cause.slug not in told]
    again = [cause for cause in check.causes if cause.slug in told]
    told.update((cause.slug, None) for cause in new)
    for cause in new:
        lines += [*_cause(cause), ""]
    if again:
        links = "、".join(f"[`{cause.slug}`](#{cause.slug})" for cause in again)
        lines += [f"{'还' if new else ''}可能发现（见上文）：{links}。", ""]
    lines.append(f"原理与手工复核（英文）：[runbook.md](runbook.md#{anchor(check.id)})")
    return "\n".join(lines) + "\n"


def _commands(check: AnyCheck) -> list[str]:
    """The command lines that it reads; what is a script of ours is not shown."""
    found = {
        shown(" ".join(command.argv)): None
        for reading in readings_of(check.seen).values()
        for reader in reading.reader.readers
        for command in reader.commands
        if command.argv[0] != "sh"
    }
    # A filter with a long pattern is no help to whoever types it.
    return [each for each in found if len(each) <= 120 and "`" not in each][:_MOST_COMMANDS]


def _cause(cause: Cause) -> list[str]:
    lines = [f'<a id="{cause.slug}"></a>', "", f"#### {cause.title.zh}（`{cause.slug}`）", ""]
    lines += [cause.meaning.zh, ""]
    lines += [f"{number}. {_remedy(each)}" for number, each in enumerate(cause.remedies, 1)]
    return lines


def _remedy(remedy: Remedy) -> str:
    """One list item: command, effect, what must be true before, and whose job it is."""
    command = f"`{shown(remedy.command)}`：" if remedy.command else ""
    who = "" if remedy.who == "operator" else f" 执行者：{known(f'the {remedy.who}').zh}。"
    return f"{command}{shown(remedy.effect.zh)} 前提：{shown(remedy.precondition.zh)}{who}"
