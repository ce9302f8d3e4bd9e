"""The words of the page itself, in both languages. English is the key; Chinese stands beside it.

What a host said, ids, commands and measured reasons are evidence and are not translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.model import Words
from commcheck.report.counts import many

CHINESE: Final[Mapping[str, str]] = {
    # Parts of the page
    "Ladder": "阶梯",
    "Changes": "变化",
    "Causes": "原因",
    "Charts": "图表",
    "Not judged": "未判定",
    "Fleet": "全部主机",
    "Hosts": "主机",
    "Judged": "已判定",
    "Runbook": "处置手册",
    "Run": "本次运行",
    "Skip to the findings": "跳到结论",
    "Parts of this report": "报告目录",
    # Head
    "exit code": "退出码",
    "playbook": "剧本",
    "Layer": "层",
    "Why": "原因",
    "Shared by": "共同点",
    "But": "但是",
    "Do next": "下一步",
    "Then": "然后",
    "on all of them": "在以上所有主机上执行",
    "on": "在",
    "and more for other rails or hosts,": "其他轨或主机还有更多，",
    "see below": "见下文",
    "First:": "前提：",
    "Who:": "执行者：",
    "Unknown": "未知",
    "Proven": "已证实",
    "Not the whole picture.": "并非全貌。",
    "This run was interrupted.": "本次运行被中断。",
    "This run was killed before it ended.": "本次运行在结束前被终止。",
    "Not judged in full:": "未能完整判定：",
    "What is unknown, and what would tell": "哪些未知，如何才能判定",
    "This page looks plain because the server that sent it forbids its style; nothing is missing. "
    "Download it, or have Jenkins' Resource Root URL set, to see it as it is meant.":
        "服务器禁止了本页的样式，因此显得朴素，但内容完整。下载后打开，或设置 Jenkins 的 "
        "Resource Root URL，即可看到完整样式。",
    # Terminal
    "note: ": "备注：",
    "e.g.": "例如",
    ", ": "，",
    "judged": "台已判定",
    "fail": "不通过",
    "not judged": "未判定",
    "not in full": "未完整判定",
    "Shared by:": "共同点：",
    "For it:": "支持证据：",
    "Against:": "反面证据：",
    "Drain:": "排空：",
    "Fix first:": "先处置：",
    "Also:": "另外：",
    "then:": "然后：",
    "Read:": "手册：",
    "Report:": "报告：",
    "Not measured: what loads the fabric; add --allow load":
        "未测量：会产生负载的检查；加上 --allow load",
    "moved": "变动",
    # Summary
    ": ": "：",
    "follows from it": "由此引起",
    "against it": "反面证据",
    "limit": "范围",
    # Tools
    "Search": "搜索",
    "hosts, checks, causes": "主机、检查、原因",
    "Copy for chat": "复制到聊天",
    "Open all": "全部展开",
    "Close all": "全部收起",
    "Copy": "复制",
    "Copied": "已复制",
    "Press Ctrl+C": "按 Ctrl+C",
    "{n} match": "{n} 处匹配",
    "nothing matches": "没有匹配",
    "Link to this": "指向此处的链接",
    # Ladder
    "Ladder, scrolls sideways": "阶梯，可横向滚动",
    "The four layers in the order of the climb; hosts counted by their worst verdict there.":
        "四层按由下到上的顺序；每台主机按其在该层最差的结果计数。",
    "State": "状态",
    "none": "无",
    "not measured: what loads the fabric runs only with": "未测量：会产生负载的检查需要加上",
    # Changes
    "Changes, scrolls sideways": "变化，可横向滚动",
    "Since run": "与此运行相比",
    "What became better or worse; what is as it was comes last.": "变好或变坏的在前，没变的在后。",
    "What": "类别",
    "Check": "检查",
    "Reason": "依据",
    # Causes
    "May be a consequence: a layer below it breaks. Mend that first, then run again.":
        "可能是连带结果：更低的层有故障。先修复下层，再重新运行。",
    "Not proven below, because it could not be judged there:": "下层未能判定，因此未经证实：",
    "What its hosts share": "这些主机的共同点",
    "Speaks for it": "支持证据",
    "Speaks against it": "反面证据",
    "Follows from it, and is not counted": "由此引起，不重复计数",
    "cause": "原因",
    "Values, scrolls sideways": "数值，可横向滚动",
    "Seen, and wanted": "实测与期望",
    "Value": "值",
    "Where": "位置",
    "the whole job": "整个作业",
    "seen": "实测",
    "wanted": "期望",
    "for": "适用于",
    "see the hosts below": "见下方主机",
    "see results.json": "见 results.json",
    "Remedies, the least drastic first": "处置，影响最小的在前",
    "Evidence": "证据",
    "Evidence of": "证据，来自",
    "Evidence of other hosts": "其他主机的证据",
    "and more": "以及更多",
    "All the hosts, for": "全部主机，可用于",
    "Read more:": "延伸阅读：",
    "and": "另有",
    # Evidence
    "at the start": "开始时",
    "at the end": "结束时",
    "did not tell: another command spoke instead": "未给出结果：改由另一条命令回答",
    "cut on the host": "在主机上被截断",
    "as on": "同",
    "but for numbers": "仅数字不同",
    "It printed nothing.": "没有输出。",
    # Charts
    "Chart, scrolls sideways": "图表，可横向滚动",
    "Numbers of the chart, scrolls sideways": "图表数据，可横向滚动",
    "The data of this picture cannot be drawn.": "此图的数据无法绘制。",
    # Not judged
    "What is listed here is neither healthy nor broken: nothing is known of it.":
        "这里列出的既非健康也非故障：对其一无所知。",
    "and the like": "等类似情况",
    # Fleet
    "Fleet, scrolls sideways": "全部主机，可横向滚动",
    "Hosts with equal verdicts share a row, checks with equal verdicts a column.":
        "结果相同的主机合为一行，结果相同的检查合为一列。",
    "First failing at": "最先不通过于",
    "The checks of the folded columns": "合并列中的检查",
    "Map of the fleet, scrolls sideways": "主机分布图，可横向滚动",
    "Map: a row for each host that did not pass, a column for each check; pale bands are hosts "
    "that passed. Inventory order.":
        "分布图：每台未通过的主机一行，每个检查一列；浅色带为已通过的主机。按清单顺序。",
    # Hosts
    "There was too much for one page, so fewer hosts and shorter outputs are shown: at most":
        "内容过多，本页减少了主机并截短了输出：最多",
    "of each output": "（每段输出）",
    "What did not pass, the failing first.": "未通过的，不通过的在前。",
    "Hosts that did not pass, failing ones first. The whole output of every command is in":
        "未通过的主机，不通过的在前。每条命令的完整输出在运行目录的",
    "of the run's folder.": "中。",
    "all the same, but for numbers": "全部相同，仅数字不同",
    "and the like on more:": "其他同类数：",
    "Other checks:": "其他检查：",
    "Switch ports:": "交换机端口：",
    "whose verdicts are in results.json:": "其结果见 results.json：",
    # Runbook
    "The sections of the runbook for what was found, so that they are at hand without a network.":
        "与所发现问题相关的手册章节，断网时也可查阅（手册为英文）。",
    # Run
    "Started": "开始",
    "UTC, as every time here": "UTC，本页所有时间均为 UTC",
    "Ended": "结束",
    "after": "历时",
    "not known": "未知",
    "Exit code": "退出码",
    "Playbook": "剧本",
    "Inventory": "主机清单",
    "Files": "文件",
    "Limit": "范围",
    "none, all hosts of the playbook": "无，剧本的全部主机",
    "Checks": "检查",
    "Strict": "严格",
    "warnings count as failures": "告警按不通过计",
    "Site checks that stand in for others": "替代内置检查的站点检查",
    "from": "来自",
    "overrides": "替代",
    "the bundled one": "内置检查",
    "Notes": "备注",
    "holds every verdict": "包含全部结果",
    "in this file": "见本页",
    # Who may do it
    "you, the operator": "值班人员（你）",
    "the network team": "网络团队",
    "the vendor": "厂商",
    "the security owner": "安全负责人",
    # States of a run
    "complete": "完整",
    "interrupted": "被中断",
    "incomplete": "不完整",
    # Words of layers and verdicts
    "physical": "物理层",
    "library": "通信库层",
    "runtime": "运行时层",
    "application": "应用层",
    "pass": "通过",
    "warn": "告警",
    "FAIL": "不通过",
    "error": "无法判定",
    "undecided": "无从判定",
    "busy": "被占用",
    "blocked": "受阻",
    "gated": "因下层未通过而跳过",
    "n/a": "不适用",
    "not permitted": "未获许可",
    "waived": "已豁免",
    "not asked": "未询问",
    "PASS": "通过",
    "PASS, WITH WARNINGS": "通过，有告警",
    "UNKNOWN": "未知",
    "UNDECIDED": "无从判定",
    "breaks here": "问题出在这一层",
    "fails too": "也不通过",
    "partly judged": "部分判定",
    "not climbed": "未检查",
    "not measured": "未测量",
    "not applicable": "不适用",
    "pass so far": "目前通过",
    "pass, with warnings": "通过，有告警",
    "pass, not all measured": "通过，未全部测量",
    "newly failing": "新出现的不通过",
    "newly unknown": "新出现的未知",
    "new warning": "新告警",
    "still failing": "仍不通过",
    "still unknown": "仍未知",
    "not judged now": "这次未判定",
    "now waived": "现已豁免",
    "fixed": "已修复",
    # Exit codes
    "all that was judged is right": "所有已判定的都正确",
    "something fails": "有检查不通过",
    "nothing fails, but something could not be judged": "没有不通过，但有未能判定的",
}  # fmt: skip

COUNTED: Final[Mapping[str, str]] = {
    "host": "台主机",
    "more host": "台其他主机",
    "watched host": "台受监控主机",
    "file": "个文件",
    "job": "个作业",
    "place": "处",
    "check": "个检查",
    "more check": "个其他检查",
    "case": "项",
    "finding": "条发现",
    "note": "条备注",
    "row": "行",
    "more row": "行",
    "more cause": "个其他原因",
    "more note": "条其他说明",
    "more change": "项其他变化",
    "more chart": "张其他图表",
    "more remedy": "条其他处置",
    "more value": "个其他值",
    "more command": "条其他命令",
    "more reason": "个其他依据",
    "more verdict": "条其他结果",
    "character": "个字符",
}


def t(english: str) -> Words:
    """A fixed text of the page. Raises ``KeyError`` for one that has no Chinese."""
    return Words(english, CHINESE[english])


def known(english: str) -> Words:
    """A word that may come from elsewhere; English stands where there is no Chinese."""
    return Words(english, CHINESE.get(english, english))


def counted(count: int, noun: str, nouns: str = "") -> Words:
    """``1 host``, ``1,912 hosts``; in Chinese with its counting word."""
    return Words(many(count, noun, nouns), f"{count:,} {COUNTED[noun]}")
