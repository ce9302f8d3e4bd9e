# ruff: noqa: E501 - a line of a log is not broken
"""HCCL's logs: which line is followed, whose it is, and who is at fault where ranks wait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from commcheck.model import Cause, Kind, Status, Verdict
from commcheck.nccl import causes_hccl
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Job
from commcheck.nccl.hccl_codes import implied
from commcheck.nccl.judge import judge
from commcheck.nccl.offline import read_logs
from commcheck.nccl.rules_hccl_links import TOLD_MOST
from commcheck.nccl.ruling import Judgement


def plog(
    text: str, *, pid: int = 1, at_s: float = 0.0, module: str = "HCCL", level: str = "ERROR"
) -> str:
    minute, second = divmod(at_s, 60)
    time = f"2026-01-05-10:{int(minute):02d}:{second:06.3f}.000"
    return f"[{level}] {module}({pid},python3):{time} [hccl.cc:1] [{pid}7]{text}\n"


def create(
    source: int, target: int, *, at_s: float = 0.0, keys: str = "[InitChannelStage][Timeout]"
) -> str:
    """Of ranks of which two share a server: 0 and 1 are on 192.0.2.10, 2 and 3 on 192.0.2.11."""
    one, two = (f"192.0.2.{10 + rank // 2}/{rank % 2}" for rank in (source, target))
    return plog(
        f"{keys}Transport init error! createLink para:rank[{source}]-localUserrank[{source}]-localIpAddr[{one}], "
        f"remoteRank[{target}]-remoteUserrank[{target}]-remoteIpAddr[{two}], machineType[0], linkMode[1], "
        f"isUsedRdma[1], tag[AllGather_group_name_1]",
        pid=100 + source,
        at_s=at_s,
    )


def row(source: int, target: int, *, status: str = "time out", tls: str = "DISABLE") -> str:
    """Of the table LINK_ERROR_INFO: devices' addresses."""
    return plog(
        f"   |  198.51.100.{target}({target})   |  16666  |   198.51.100.{source}({source})   |  3234403008  |  client  "
        f"| {status} |   {tls}  | LinkInfo",
        pid=100 + source,
    )


def waited(pid: int, at_s: float, limit: str = "120 s") -> str:
    return plog(
        f"[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[0] timeout[{limit}]",
        pid=pid,
        at_s=at_s,
    )


def read(tmp_path: Path, files: Mapping[str, str] | str) -> Job:
    for name, text in ({"a.log": files} if isinstance(files, str) else files).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_logs([str(tmp_path)])


def judged(tmp_path: Path, files: Mapping[str, str] | str) -> Judgement:
    return judge(Case(read(tmp_path, files)))


def only(tmp_path: Path, files: Mapping[str, str] | str) -> Verdict:
    (verdict,) = judged(tmp_path, files).verdicts
    assert verdict.measured["evidence"]
    return verdict


def command(verdict: Verdict, part: str) -> str:
    return next(remedy.command for remedy in verdict.remedies if part in remedy.command)


# --- the first error ----------------------------------------------------------------------------

IMPLIED = {
    "socket type[1], listen on ip[198.51.100.1] and specific port[16666] fail. Please check the port status and whether": "EI0020",
    "[InitGroupStage][RanktableDetect] socket type[2], listen on ip[192.0.2.1%eth0] and specific port[60000] fail. Please check the port status": "EI0019",
    "[check][ip]fail, ret(129) the IP address(198.51.100.1) in the ranktable is inconsistent with the IP address(198.51.100.2) of the network adapter": "EI0014",
    "[check][ip]fail, ret(-16) the IP address(198.51.100.1) in the ranktable is inconsistent with the IP(198.51.100.2)address of the network adapter": "EI0014",
    "[InitGroupStage][EnvConfig]HCCL_RDMA_SL value range[0, 7]": "EI0001",
    "[InitGroupStage][RanktableConfig]open file failed": "EI0004",
    "[InitGroupStage][RanktableCheck]devices have same superDeviceId[0x3000000]": "EI0014",
    "[InitGroupStage][RanktableCheck]tls status of ranks differs": "EI0016",
    "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]": "EI0015",
    "topo exchange agent get socket timeout! timeout[120]": "EI0015",
    "[InitChannelStage][ParameterConflict]CMD information tag check fail. local[AllGather_a], remote[AllReduce_a]": "EI0005",
    "CMD information count check fail. local[1], remote[2]": "EI0005",
    "[InitChannelStage][VersionConflict]versions differ": "EI0008",
    "[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[1] timeout[120 s]": "EI0006",
    "[TaskExecStage][Timeout][Host]Task run failed, base information is streamID:[2], taskID[21], tag[AllReduce_a]": "EI0002",
    "hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x15": "EI0013",
    "[create][ra_hdc_period_poll]failed CQE status[12], wr[0]": "EI0013",
    "[create][ra_hdc_period_poll]failed CQE status[5], wr[0]": "",
    "call trace: hcclRet -> 4": "",
}


@pytest.mark.parametrize("text", IMPLIED)
def test_words_of_a_plog_stand_for_a_code(text: str) -> None:
    assert implied(text) == IMPLIED[text]


def test_an_error_line_never_passes(tmp_path: Path) -> None:
    verdict = only(tmp_path, plog("[Alloc]call trace: hcclRet -> 4", pid=5))
    assert (verdict.status, verdict.rule) == (Status.WARN, "HLOG-001")
    assert "call trace: hcclRet -> 4" in verdict.reason


def test_a_call_that_failed_says_what_it_returned(tmp_path: Path) -> None:
    verdict = only(tmp_path, plog("[Init]errNo[0x0000000005000002]HcclCommInitRootInfo failed."))
    assert (verdict.status, verdict.cause) == (Status.FAIL, causes_hccl.HCCL_CODE)
    assert "null pointer: [Init]errNo" in verdict.reason


def test_debug_plogs_that_are_empty_are_healthy(tmp_path: Path) -> None:
    run = plog("[Communicator Key Info]identifier[a] rankSize[4] serverNum[2]", level="INFO")
    files = {"n1/run/plog/plog-1_2.log": run}
    assert only_kind(judged(tmp_path, files)) is Kind.UNDECIDABLE
    verdict = judged(tmp_path, files | {"n1/debug/plog/plog-1_3.log": ""}).verdicts[0]
    assert verdict.status is Status.PASS


def only_kind(judgement: Judgement) -> Kind:
    (verdict,) = judgement.verdicts
    return verdict.kind


def test_the_first_line_that_is_known_is_followed(tmp_path: Path) -> None:
    port = "socket type[1], listen on ip[198.51.100.1] and specific port[16666] fail. Please check the port status and"
    text = (
        plog(port, pid=1) + plog("[ServerInit]call trace: hcclRet -> 19", pid=1) + waited(1, 120.0)
    )
    printed = "EI0006: [PID: 1] 2026-01-05-10:02:01.000.000 Getting socket times out.\n"
    verdict = only(tmp_path, text + printed)
    assert verdict.cause == causes_hccl.HCCL_NPU_PORT
    assert "the words of EI0020 on pid 1" in verdict.reason
    assert "HCCL_NPU_SOCKET_PORT_RANGE" in verdict.remedies[1].effect.en


def test_a_code_is_surer_than_the_words_of_the_same_process(tmp_path: Path) -> None:
    text = plog("[InitGroupStage][RanktableCheck]check failed", pid=7)
    printed = (
        'EI0016: [PID: 7] 2026-01-05-10:00:00.500.000 Value Disable for config "tls" is invalid.\n'
    )
    assert only(tmp_path, text + printed).cause == causes_hccl.HCCL_TLS


CODED = {
    "EI0001: [PID: 3] {} Environment variable [HCCL_RDMA_SL] is invalid. Reason: Value range[0, 7].": "HCCL_RDMA_SL",
    "EI0004: [PID: 3] {} The ranktable or rank is invalid,Reason:[super_device_id is invalid].": "rank table",
    "EI0008: [PID: 3] {} The CANN versions are inconsistent. The local 8.2, while the remote 8.3.": "one image",
    "EI0014: [PID: 3] {} The ranktable information check failed, Reason:[tls].": "TLS",
    "EI0017: [PID: 3] {} Value a for ranktable variable b is invalid.": "device_ip",
    "EI0019: [PID: 3] {} Failed to enable listening. Reason: The IP address 192.0.2.1 and port 60000 have already been bound.": "HCCL_IF_BASE_PORT",
    "EI0019: [PID: 3] {} Failed to enable listening. Reason: The IP address 198.51.100.1 and port 16666 have already been bound.": "HCCL_NPU_SOCKET_PORT_RANGE",
    "EI0020: [PID: 3] {} Failed to enable listening. Reason: The IP address 198.51.100.1 and port 17000 have already been bound.": "HCCL_NPU_SOCKET_PORT_RANGE",
    "EJ0001: [PID: 3] {} Failed to initialize the HCCP process. Reason: Maybe the last training process is running.": "10 s after",
    "EJ0004: [PID: 3] {} Failed to verify IP. Reason: the IP address(198.51.100.1) in the ranktable is inconsistent": "device_ip",
}


@pytest.mark.parametrize("text", CODED)
def test_each_code_has_its_own_remedy(tmp_path: Path, text: str) -> None:
    verdict = only(tmp_path, text.format("2026-01-05-10:00:00.500.000") + "\n")
    told = " ".join((verdict.reason, *(remedy.effect.en for remedy in verdict.remedies)))
    assert CODED[text] in told
    assert "-link -g" not in " ".join(remedy.command for remedy in verdict.remedies)


def test_torch_npu_says_which_rank_a_process_is(tmp_path: Path) -> None:
    text = (
        "[ERROR] 2026-01-05-10:00:00 (PID:4100, Device:1, RankID:9) ERR01100 OPS call acl api failed.\n"
        "other text\n"
        "EI0002: [PID: 4100] 2026-01-05-10:00:00.500.000 The wait execution of the Notify register times out.\n"
    )
    verdict = only(tmp_path, text)
    assert "EI0002 on rank 9 (device 1)" in verdict.reason
    assert command(verdict, "-link") == "hccn_tool -i 1 -link -g"


def test_cann_text_without_a_pid_belongs_to_the_line_before(tmp_path: Path) -> None:
    text = (
        "[ERROR] 2026-01-05-10:00:00 (PID:4100, Device:3, RankID:3) ERR02200 DIST call hccl api failed.\n"
        "EJ0001: 2026-01-05-10:00:00.500.000 Failed to initialize the HCCP process.\n"
    )
    assert "EJ0001 on rank 3 (device 3)" in only(tmp_path, text).reason
    assert "a rank not named" in only(tmp_path, text.replace("\nEJ", "\nother\nEJ")).reason


def test_a_pid_of_two_servers_names_no_rank(tmp_path: Path) -> None:
    line = "[ERROR] 2026-01-05-10:00:00 (PID:41, Device:{0}, RankID:{0}) ERR01100 OPS call acl api failed.\n"
    code = "EI0002: [PID: 41] 2026-01-05-10:00:00.500.000 The wait execution of the Notify register times out.\n"
    assert "on pid 41:" in only(tmp_path, line.format(1) + line.format(5) + code).reason
    key = "[LocalRank Key Info]userRank[{0}] hostIp[192.0.2.{0}] devicePhyId[0] server[192.0.2.{0}] deviceIp[198.51.100.{0}] "
    run = {
        f"n{n}/run/plog/plog-41_1.log": plog(key.format(n), pid=41, level="INFO") for n in (1, 2)
    }
    assert "on pid 41:" in only(tmp_path / "two", run | {"out.txt": code}).reason
    wrong = plog("[InitGroupStage][EnvConfig]bad", pid=41)
    verdict = only(tmp_path / "plog", run | {"n2/debug/plog/plog-41_2.log": wrong})
    assert "on rank 2 (192.0.2.2 device 0)" in verdict.reason


def test_a_failed_call_of_torch_npu_without_a_code(tmp_path: Path) -> None:
    text = (
        "RuntimeError: create_config:a.ts:102 HCCL function error: hcclCommInitRootInfoConfig(n, &(c->comm)), error code is 7\n"
        "[ERROR] 2026-01-05-10:00:00 (PID:468, Device:0, RankID:2) ERR02200 DIST call hccl api failed.\n"
    )
    verdict = only(tmp_path, text)
    assert verdict.status is Status.FAIL
    assert (
        "on rank 2 (device 0): a resource is not available: HCCL function error" in verdict.reason
    )


def test_a_job_on_npus_is_not_asked_for_nccls_lines(tmp_path: Path) -> None:
    text = "EH9999: Inner Error!\n(function npuSynchronizeDevice)\n[W NPUStream.cpp:365] Warning: NPU warning\n"
    (verdict,) = judged(tmp_path, text).verdicts
    assert verdict.kind is Kind.UNDECIDABLE
    assert "plog folders" in verdict.reason
    assert "NCCL" not in verdict.reason


def test_hccp_and_roce_lines_beyond_the_first_megabyte_are_read(tmp_path: Path) -> None:
    filler = "step 1 loss 2.0\n" * 150_000
    job = read(
        tmp_path, filler + plog("something", module="ROCE") + filler + plog("else", module="HCCP")
    )
    assert job.hccl.lines == 2


# --- who waits for whom -------------------------------------------------------------------------


def test_the_rank_waited_for_leads_and_its_code_only_follows(tmp_path: Path) -> None:
    printed = "EI0006: [PID: 100] 2026-01-05-10:00:00.500.000 Getting socket times out.\n"
    judgement = judged(tmp_path, row(0, 3) + create(0, 3) + printed)
    (verdict,) = judgement.verdicts
    assert (verdict.rule, verdict.hosts) == ("HLOG-003", ("192.0.2.11",))
    assert "rank 3 (192.0.2.11 device 1); its log is not in the input" in verdict.reason
    assert judgement.rulings["HLOG-001"].state == "other"
    assert (
        command(verdict, "-ping") == "ssh 192.0.2.10 hccn_tool -i 0 -ping -g address 198.51.100.3"
    )


def test_a_table_alone_tells_who_waits(tmp_path: Path) -> None:
    verdict = only(tmp_path, row(1, 0) + row(1, 2, status="connecting"))
    assert verdict.reason.startswith("1 rank waits for rank 0 (198.51.100.0)")


def key(rank: int) -> str:
    """A rank says who it is, where ``create`` and ``row`` have it."""
    server, device = f"192.0.2.{10 + rank // 2}", rank % 2
    return plog(
        f"[LocalRank Key Info]userRank[{rank}] hostIp[{server}] devicePhyId[{device}] server[{server}] "
        f"deviceIp[198.51.100.{rank}] ",
        pid=100 + rank,
        level="INFO",
    )


def test_a_rank_of_the_table_is_the_device_that_other_lines_know(tmp_path: Path) -> None:
    """Rank 1 waits for rank 0, which waits itself: nobody waits for rank 0 in the end."""
    verdict = only(tmp_path, row(1, 0) + create(0, 2))
    assert (verdict.measured["root_rank"], verdict.measured["silent"]) == (2, 1)
    # With two ranks 0, of two groups, the table's may be either.
    other = create(0, 2).replace("192.0.2.1", "192.0.2.2").replace("HCCL(100", "HCCL(900")
    verdicts = judged(tmp_path, row(1, 0) + create(0, 2) + other).verdicts
    assert any("rank 0 (198.51.100.0)" in verdict.reason for verdict in verdicts)


def test_a_device_is_the_rank_that_other_lines_know(tmp_path: Path) -> None:
    cut = "This node (server 192.0.2.10, device ID 1) detects that srcRank (server 192.0.2.10, device ID 1) fails to connect to dstRank (server 192.0.2.11, device ID 0)."
    verdict = only(tmp_path, plog(cut, pid=101) + key(2))
    assert verdict.reason.startswith("1 rank waits for rank 2 (192.0.2.11 device 0)")
    assert "address 198.51.100.2" in command(verdict, "-ping")


def test_the_table_of_cann_7_and_its_line_on_the_link(tmp_path: Path) -> None:
    text = plog("   |  198.51.100.0(0)   |   198.51.100.8(8)   |  server  | no connect |", pid=1)
    text += plog(
        "[Create][DestLink]Transport init error! createLink para:rank[8]-localUserrank[8]-localIpAddr[192.0.2.18], "
        "dst_rank[0]-remoteUserrank[0]-remote_ip_addr[192.0.2.10]",
        pid=1,
    )
    verdict = only(tmp_path, text)
    assert (verdict.hosts, verdict.measured["root_rank"]) == (("192.0.2.10",), 0)
    assert "address 198.51.100.0" in command(verdict, "-ping")


def test_a_pair_that_waits_for_each_other_is_named(tmp_path: Path) -> None:
    text = "".join(row(a, b) + create(a, b) for a, b in ((0, 2), (2, 0), (1, 3), (3, 1)))
    verdict = only(tmp_path, text)
    assert (verdict.cause, verdict.hosts) == (causes_hccl.HCCL_PAIR, ("192.0.2.10", "192.0.2.11"))
    assert "rank 0 (192.0.2.10 device 0) and rank 2 (192.0.2.11 device 0)" in verdict.reason
    assert "2 pairs between these servers" in verdict.reason
    pings = [remedy.command for remedy in verdict.remedies if "ping" in remedy.command]
    assert pings == [
        "ssh 192.0.2.10 hccn_tool -i 0 -ping -g address 198.51.100.2",
        "ssh 192.0.2.11 hccn_tool -i 0 -ping -g address 198.51.100.0",
    ]


def test_who_waits_for_one_of_a_pair_is_no_root(tmp_path: Path) -> None:
    verdict = only(tmp_path, create(0, 2) + create(2, 0) + create(1, 0) + create(3, 1))
    assert verdict.measured["pairs"] == [[0, 2]]


def test_a_pair_that_waits_for_a_third_one_is_no_root(tmp_path: Path) -> None:
    verdict = only(tmp_path, create(0, 2) + create(2, 0) + create(2, 3))
    assert (verdict.cause, verdict.measured["root_rank"]) == (causes_hccl.HCCL_LINK, 3)


def test_a_server_that_no_other_one_reaches_is_named(tmp_path: Path) -> None:
    text = "".join(create(a, b) for pair in ((0, 2), (0, 4)) for a, b in (pair, pair[::-1]))
    reasons = [verdict.reason for verdict in judged(tmp_path, text).verdicts]
    assert len(reasons) == 2
    assert all("2 servers cannot reach 192.0.2.10" in reason for reason in reasons)


def test_a_silent_rank_with_an_error_is_told_with_it(tmp_path: Path) -> None:
    own = key(2) + plog("[Alloc]something is full", pid=102)
    assert "its own error: [Alloc]something is full" in only(tmp_path, create(0, 2) + own).reason


def test_only_so_many_servers_are_told(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, "".join(create(0, 2 * n) for n in range(1, 20))).verdicts
    assert len(verdicts) == TOLD_MOST
    assert verdicts[0].measured["silent"] == 19


def test_inside_a_super_pod_no_link_needs_roce(tmp_path: Path) -> None:
    text = create(0, 2).replace("isUsedRdma[1]", "isUsedRdma[0]")
    assert judged(tmp_path, text).rulings["HLOG-004"].state == "wrong"
    pod = (
        "local rank information: nicType[VNIC_TYPE], logicSuperPodId is not set, phySuperPodId[3]."
    )
    assert judged(tmp_path, text + plog(pod, pid=100)).rulings["HLOG-004"].state == "other"


def test_several_silent_ranks_are_told_by_server(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, create(0, 2) + create(1, 3) + create(0, 4)).verdicts
    assert [verdict.hosts for verdict in verdicts] == [("192.0.2.11",), ("192.0.2.12",)]
    assert "rank 2 (192.0.2.11 device 0), rank 3 (192.0.2.11 device 1)" in verdicts[0].reason


def test_ranks_of_several_groups_are_not_mixed_up(tmp_path: Path) -> None:
    """Rank 0 of one group is not the rank 0 that another group waits for."""
    other = create(0, 2).replace("192.0.2.1", "192.0.2.2").replace("HCCL(100", "HCCL(900")
    verdicts = judged(tmp_path, create(2, 0) + other).verdicts
    assert {verdict.hosts for verdict in verdicts} == {("192.0.2.10",), ("192.0.2.21",)}


def test_two_super_pods_that_are_declared_as_one(tmp_path: Path) -> None:
    def pod(rank: int, logical: str, physical: int) -> str:
        text = f"local rank information: nicType[VNIC_TYPE], {logical}, phySuperPodId[{physical}]."
        return plog(text, pid=100 + rank)

    links = create(0, 2) + create(2, 0)
    one = "logicSuperPodId[pod_a]"
    verdict = only(tmp_path, links + pod(0, one, 3) + pod(2, one, 4))
    assert verdict.cause == causes_hccl.HCCL_SUPER_POD
    assert "logical super pod pod_a, of physical ones 3, 4" in verdict.reason
    for same in (
        pod(0, one, 3) + pod(2, one, 3),
        *(pod(r, "logicSuperPodId is not set", r) for r in (0, 2)),
        # One of the two has a NIC of its own: the link is none of HCCS.
        pod(0, one, 3) + pod(2, one, 4).replace("VNIC_TYPE", "DEVICE_NIC_TYPE"),
    ):
        assert only(tmp_path, links + same).cause == causes_hccl.HCCL_PAIR


def test_where_every_peer_answers_the_program_diverged(tmp_path: Path) -> None:
    probe = "No abnormal periods were discovered. please prioritize investigating the consistency of cluster script behaviors."
    text = plog(probe, pid=100) + create(0, 2, keys="[InitChannelStage][RunFailed]")
    verdict = only(tmp_path, text)
    assert (verdict.cause, verdict.hosts) == (causes_hccl.HCCL_DESYNC, ())
    assert verdict.reason.endswith("reached every peer: what the ranks call differs")
    assert "reached" not in only(tmp_path, create(0, 2)).reason
    cut = "This node (server 192.0.2.10, device ID 1) detects that srcRank (server 192.0.2.10, device ID 1) fails to connect to dstRank (server 192.0.2.11, device ID 0)."
    assert only(tmp_path, text + plog(cut, pid=101)).cause == causes_hccl.HCCL_LINK


def test_an_earlier_error_of_another_kind_leads(tmp_path: Path) -> None:
    judgement = judged(
        tmp_path, plog("[InitGroupStage][EnvConfig]bad", pid=102) + create(0, 2, at_s=120)
    )
    (verdict,) = judgement.verdicts
    assert verdict.cause == causes_hccl.HCCL_VARIABLE
    assert judgement.rulings["HLOG-003"].state == "other"


def test_tls_or_a_late_rank_explain_a_pair(tmp_path: Path) -> None:
    differ = row(0, 2) + create(0, 2) + row(2, 0, tls="ENABLE") + create(2, 0)
    assert only(tmp_path, differ).rule == "HLOG-007"
    late = waited(100, 0) + create(0, 2) + waited(102, 600) + create(2, 0, at_s=600)
    verdict = only(tmp_path, late)
    assert verdict.rule == "HLOG-006"
    assert "HCCL_CONNECT_TIMEOUT (120 s): rank 2" in verdict.reason


@pytest.mark.parametrize("limit", ["120 s", "120"])
def test_an_error_of_another_kind_makes_no_rank_late(tmp_path: Path, limit: str) -> None:
    judgement = judged(
        tmp_path,
        plog("[InitGroupStage][EnvConfig]bad", pid=9)
        + waited(1, 121, limit)
        + waited(2, 122, limit),
    )
    assert judgement.rulings["HLOG-006"].state == "right"
    assert judgement.verdicts[0].cause == causes_hccl.HCCL_VARIABLE


def test_a_link_that_timed_out_unnamed_is_no_pass(tmp_path: Path) -> None:
    judgement = judged(tmp_path, waited(1, 0))
    assert judgement.rulings["HLOG-003"].state == "unknown"
    assert judgement.rulings["HLOG-006"].state == "right"
    assert judgement.verdicts[0].cause == causes_hccl.HCCL_PEER


def test_several_attempts_make_no_rank_late(tmp_path: Path) -> None:
    again = (waited(100, 900) + create(0, 2, at_s=900)).replace("HCCL(100", "HCCL(500")
    judgement = judged(tmp_path, waited(100, 0) + create(0, 2) + again)
    assert judgement.rulings["HLOG-006"].state == "unknown"


def test_time_outs_of_another_day_are_of_another_run(tmp_path: Path) -> None:
    """``~/ascend/log`` keeps the plogs of all runs."""
    first = waited(100, 0) + create(0, 2)
    other = waited(102, 900) + create(2, 0, at_s=900)
    assert judged(tmp_path, first + other).rulings["HLOG-006"].state == "wrong"
    later = other.replace("2026-01-05", "2026-01-09")
    assert judged(tmp_path, first + later).rulings["HLOG-006"].state == "unknown"


# --- RoCE ---------------------------------------------------------------------------------------

LOST = "[TaskExecStage][HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12], time:[2026-01-05 10:00:00.000001],localInfo{server[192.0.2.10],deviceId[1],deviceIp[198.51.100.1]}, remoteIP{server[192.0.2.11],deviceId[0],deviceIp[198.51.100.2]}"
TOLD = "[PID: 100] 2026-01-05-10:00:00.000.000 Execution Error ROCE CQE(EI0013): An error CQE occurred. Local information: server 192.0.2.10, device ID 1, device IP 198.51.100.1. Peer information: server 192.0.2.11, device ID 0, device IP 198.51.100.2.\n"


@pytest.mark.parametrize("text", [plog(LOST), TOLD], ids=["plog", "screen"])
def test_a_lost_link_names_both_ends(tmp_path: Path, text: str) -> None:
    verdict = only(tmp_path, text)
    assert (verdict.rule, verdict.cause) == ("HLOG-005", causes_hccl.HCCL_LOSS)
    assert verdict.hosts == ("192.0.2.10", "192.0.2.11")
    assert "192.0.2.10 device 1 from 192.0.2.11 device 0" in verdict.reason
    assert (
        command(verdict, "-ping") == "ssh 192.0.2.10 hccn_tool -i 1 -ping -g address 198.51.100.2"
    )


@pytest.mark.parametrize(
    "before", ["local rank [192.0.2.9/0]: crimer ", "[HCCL_TRACE]rank [192.0.2.9/0]: "]
)
def test_the_heartbeat_of_old_and_new_releases(tmp_path: Path, before: str) -> None:
    verdict = only(
        tmp_path,
        plog(
            f"{before}rank [192.0.2.11/3] status[STUCK] by informer rank [192.0.2.9/0]",
            level="INFO",
        ),
    )
    assert "STUCK of 192.0.2.11 device 3" in verdict.reason


WAITED = """\
EI0002: [PID: 7277] 2026-01-05-10:59:30.645.648 The wait execution of the Notify register times out. \
Reason: The Notify register has not received the Notify record from remote rank [unknown].base \
information: [streamID:[2282987520], taskID[5], tag[AllReduce_192.0.2.40%eth0_60000_0_17], AlgType(\
level 0-1-2):[fullmesh-ring-ring].] task information: [
there are(is) 1 abnormal device(s):
\tCluster Exception Location[IP/ID]:[192.0.2.40/1], Arrival Time:[Mon Jan  5 10:56:34 2026], \
Discoverer:[192.0.2.41/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has \
exited, 2. Network Disconnected
]
"""
STUCK = """\
EI0006: [PID: 15618] 2026-01-05-11:32:29.335.888 Getting socket times out. Reason: Remote Rank did \
not send the data in time. Please check the reason for the rank being stuck
        TraceBack (most recent call last):
        Transport init error. Reason: [Create][DestLink]Create Dest error! createLink \
para:rank[11]-localUserrank[11]-localIpAddr[192.0.2.12/11], dst_rank[3]-remoteUserrank[3]-\
remote_ip_addr[192.0.2.11/3]
"""


@pytest.mark.parametrize("worker", ["", "(Worker_TP11 pid=15618) ERROR 01-05 11:32:59 [x.py:35] "])
@pytest.mark.parametrize("far", [0, 3 << 20], ids=["begin", "far behind"])
@pytest.mark.parametrize(
    ("text", "cause", "reason"),
    [
        (WAITED, causes_hccl.HCCL_HEARTBEAT, "the heartbeat says LOST of 192.0.2.40 device 1"),
        (STUCK, causes_hccl.HCCL_LINK, "1 rank waits for rank 3 (192.0.2.11 device 3)"),
    ],
)
def test_whom_a_rank_waits_for_stands_behind_its_code_in_a_jobs_output(
    tmp_path: Path, text: str, cause: Cause, reason: str, far: int, worker: str
) -> None:
    before = "loss 1.25\n" * (far // 10)
    said = only(tmp_path, before + "".join(worker + line for line in text.splitlines(True)))
    assert said.cause is cause
    assert said.reason.startswith(reason)
