"""The HTTP API: answers that are none, servers that are slow, secrets that stay."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import Unjudgeable, UsageError
from commcheck.metrics import api, fleet
from commcheck.metrics.access import Access
from commcheck.metrics.api import Grid, Server, ServerRefused, ServerSilent, read_matrix
from commcheck.metrics.catalog import EFA, EFA_COUNTERS, SUBJECTS, Query
from commcheck.metrics.wanted import read_names, read_selector, read_url
from commcheck.model import Host
from tests.metrics.stub import Reply, Stub, send, stub

GRID = Grid(1000.0, 60.0, 3)
TIME = b'{"status":"success","data":{"resultType":"scalar","result":[1700000000.1,"1700000000"]}}'


def matrix(*series: object, **more: object) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": [*series]}, **more}


def test_a_series_is_laid_on_the_grid() -> None:
    values = [[1000, "0.5"], [1059.99, "NaN"], [1120, "+Inf"], [1180, "9"], [940, "9"]]
    answer = read_matrix(
        matrix({"metric": {"gpu": "0"}, "values": values}, warnings=["partial"]), GRID, "http://p"
    )
    assert answer.series[0].values == (0.5, None, None)
    assert answer.warnings == ("partial",)


@pytest.mark.parametrize("step_s", [60.0, 900.0])
def test_a_grid_ends_at_the_last_minute_whatever_its_step(step_s: float) -> None:
    grid = Grid.until(1_700_000_459.9, step_s, 97)
    assert grid.end == 1_700_000_400  # a multiple of 60, and none of 900
    assert grid.end - grid.start == 96 * step_s
    assert Grid.until(1_700_000_401.0, step_s, 97) == grid


@pytest.mark.parametrize(
    ("kind", "time", "nocache"),
    [("scalar", [0, "1700000401"], None), ("vector", [{"value": [0, "1700000401"]}], "1")],
)
def test_victoriametrics_alone_is_told_to_leave_the_grid_where_it_is(
    kind: str, time: object, nocache: str | None
) -> None:
    """Of 50 points and more it would else move start and end to whole steps."""

    def reply(handler: BaseHTTPRequestHandler, path: str, _form: dict[str, str]) -> None:
        clock = {"status": "success", "data": {"resultType": kind, "result": time}}
        send(handler, json.dumps(matrix() if path.endswith("range") else clock).encode())

    with stub(reply) as told:
        server = Server(told.url, Access())
        server.query_range("up", Grid.until(server.now(), 900.0, 97))
        _, (_, form) = told.asked
        assert form.get("nocache") == nocache
        assert float(form["end"]) % 900


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"resultType": "vector", "result": []},
        {"resultType": "matrix"},
        {"resultType": "matrix", "result": [1]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [[1]]}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [["a", "b"]]}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [[1e999, "1"]]}]},
        {"resultType": "matrix", "result": [{"metric": [], "values": []}]},
    ],
)
def test_an_answer_of_another_form_is_refused(data: object) -> None:
    with pytest.raises(ServerRefused, match="does not answer as Prometheus does"):
        read_matrix({"status": "success", "data": data}, GRID, "http://p")


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metric", "values", "result", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=3))
@settings(max_examples=60)
def test_any_json_is_read_or_refused(result: list[object]) -> None:
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    try:
        answer = read_matrix(document, GRID, "http://p")
    except ServerRefused:
        return
    assert all(len(each.values) == 3 for each in answer.series)


def body(data: bytes, code: int = 200, **headers: str) -> Reply:
    return lambda handler, _path, _form: send(handler, data, code, **headers)


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (body(b"<html>"), ServerRefused, "does not answer as Prometheus does"),
        (body(b"[" * 200_000), ServerRefused, "does not answer as Prometheus does"),
        (body(b'"success"'), ServerRefused, "does not answer as Prometheus does"),
        (body(b"no such page", 404), ServerRefused, "is the path right?"),
        (body(b"", 401), ServerRefused, "wants to know who asks"),
        (body(b"", 403), ServerRefused, "COMMCHECK_PROMETHEUS_TENANT"),
        (body(b"", 302, Location="http://elsewhere.invalid/"), ServerRefused, "sends us elsewhere"),
        (
            body(b'{"status":"error","errorType":"execution","error":"too many samples"}', 422),
            ServerRefused,
            "execution: too many samples",
        ),
        (body(b"\x00\xff", 500), ServerRefused, "HTTP 500"),
        (body(b'{"status":"error","error":"later"}'), ServerRefused, "refuses: later"),
        (body(TIME.replace(b'1700000000"', b'NaN"')), ServerRefused, "does not answer as"),
    ],
)
def test_what_is_no_answer(reply: Reply, error: type[Exception], says: str) -> None:
    with stub(reply) as server, pytest.raises(error, match=r"127\.0\.0\.1") as caught:
        Server(server.url, Access(), timeout_s=5).now()
    assert isinstance(caught.value, Unjudgeable)
    assert says in f"{caught.value.reason}; {caught.value.remedy}"


def test_an_endless_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(handler: BaseHTTPRequestHandler, _path: str, _form: object) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * 65_536)

    monkeypatch.setattr(api, "MOST_BYTES", 1 << 20)
    with stub(flood) as server, pytest.raises(ServerRefused, match="more than 1 MiB"):
        Server(server.url, Access()).now()


def test_a_dripping_answer_has_an_end() -> None:
    def drip(handler: BaseHTTPRequestHandler, _path: str, _form: object) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)

    began = time.monotonic()
    with stub(drip) as server, pytest.raises(ServerSilent, match="does not answer within"):
        Server(server.url, Access(), timeout_s=0.3).now()
    assert time.monotonic() - began < 3


def test_nobody_there() -> None:
    with pytest.raises(ServerSilent, match="cannot be reached"):
        Server("http://127.0.0.1:9", Access()).now()


def _redirect(
    handler: BaseHTTPRequestHandler, _path: str, _form: object, *, to: Stub, code: int
) -> None:
    send(handler, b"", code, Location=f"{to.url}/api/v1/query")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_token_follows_no_redirect_and_stands_in_no_message(code: int) -> None:
    access = Access.of({"COMMCHECK_PROMETHEUS_TOKEN": "s3cret"})
    assert "s3cret" not in repr(access)
    with stub(body(TIME)) as other, stub(partial(_redirect, to=other, code=code)) as server:
        with pytest.raises(ServerRefused) as caught:
            Server(server.url, access).now()
        assert server.headers["Authorization"] == "Bearer s3cret"
        assert not other.asked
    assert "s3cret" not in f"{caught.value.reason}{caught.value.remedy}"


@pytest.mark.parametrize(
    ("environment", "header", "value"),
    [
        ({"COMMCHECK_PROMETHEUS_USER": "a", "COMMCHECK_PROMETHEUS_PASSWORD": "b"},
         "Authorization", "Basic YTpi"),
        ({"COMMCHECK_PROMETHEUS_TENANT": "team-1"}, "X-Scope-OrgID", "team-1"),
    ],
)  # fmt: skip
def test_who_asks(environment: dict[str, str], header: str, value: str) -> None:
    access = Access.of(environment)
    assert access.headers == {header: value}


@pytest.mark.parametrize(
    "environment",
    [
        {"COMMCHECK_PROMETHEUS_TOKEN": "a\nb: c"},
        {"COMMCHECK_PROMETHEUS_TOKEN": "a", "COMMCHECK_PROMETHEUS_USER": "b"},
    ],
)
def test_what_cannot_be_sent_is_a_usage_error(environment: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Access.of(environment)


def test_a_certificate_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"/nowhere/ca\.pem: error"):
        Server("https://p", Access.of({"COMMCHECK_PROMETHEUS_CA": "/nowhere/ca.pem"}))


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("http://prom:9090/", "http://prom:9090"),
        ("https://mimir.example/prometheus", "https://mimir.example/prometheus"),
        ("http://vm:8481/select/0/prometheus/api/v1", "http://vm:8481/select/0/prometheus"),
        ("http://[fd00::1]:9090", "http://[fd00::1]:9090"),
        ("http://prom:9090/graph", "http://prom:9090"),
    ],
)
def test_addresses(given: str, read: str) -> None:
    assert read_url(given) == read


@pytest.mark.parametrize(
    "given",
    ["", "prom:9090", "file:///etc/passwd", "http://", "http://a:b@prom", "http://p?x=1", 9090,
     "http://p:99999", "http://p /", "http://[::1"],
)  # fmt: skip
def test_what_is_no_address(given: object) -> None:
    with pytest.raises(ValueError, match="wanted") as caught:
        read_url(given)
    assert "a:b" not in str(caught.value)


@pytest.mark.parametrize("given", ['cluster="a"', '{cluster="a",job=~"dcgm|node"}'])
def test_selectors(given: str) -> None:
    assert read_selector(given) == given.strip("{}")


def test_what_tells_a_job_tells_none_of_its_nics() -> None:
    selector = 'cluster="a,b",exported_namespace="t",gpu!="3",pods="x",pod=~"t-.*",hpc_job="7"'
    asked = {
        query.name: query.expr(selector)
        for each in SUBJECTS.values()
        for query in each.queries
        if query.family != EFA
    }
    assert asked["sm"] == f"avg_over_time(DCGM_FI_PROF_SM_ACTIVE{{{selector}}}[5m])"
    rate = 'rate(node_infiniband_port_data_transmitted_bytes_total{cluster="a,b",pods="x"}[5m])'
    assert asked["nic_tx"] == rate
    assert asked["net_tx"].endswith(',cluster="a,b",pods="x"}[5m])')
    assert asked["link_downed"] == 'node_infiniband_link_downed_total{cluster="a,b",pods="x"}'
    assert Query("nic_rate", "node_infiniband_rate_bytes_per_second").expr('pod="a"') == (
        "node_infiniband_rate_bytes_per_second"
    )


@pytest.mark.parametrize(
    ("given", "read"),
    [(" gpu-01 ", ("gpu-01",)), ("gpu-01,10.0.0.1", ("gpu-01", "10.0.0.1")), (["a"], ("a",))],
)
def test_names_in_metrics(given: object, read: tuple[str, ...]) -> None:
    assert read_names(given) == read


@pytest.mark.parametrize("given", ["", " , ", 7, [], ["a", 7], "a" * 256, {"a": 1}])
def test_what_is_no_name_in_metrics(given: object) -> None:
    with pytest.raises(ValueError, match="wanted the host's name in metrics"):
        read_names(given)


@pytest.mark.parametrize("given", ["", "a=b", '{a="b"', '{a="b"} or up', 'a="b"}[5m]', 7])
def test_what_is_no_selector(given: object) -> None:
    if given == '{a="b"':
        assert read_selector(given) == 'a="b"'  # braces are only decoration
        return
    with pytest.raises(ValueError, match="wanted label matchers"):
        read_selector(given)


# --- the fleet ----------------------------------------------------------------------------------

THOUSANDS = 1250  # hosts with eight GPUs: ten thousand series


def _many(handler: BaseHTTPRequestHandler, path: str, form: dict[str, str]) -> None:
    if path.endswith("/query"):
        send(handler, TIME)
        return
    series: list[object] = []
    if "SM_ACTIVE" in form["query"]:
        start = float(form["start"])
        values = [[start + 60 * n, "0.8123"] for n in range(31)]
        series = [
            {"metric": {"Hostname": f"gpu-{host:04}", "gpu": str(gpu)}, "values": values}
            for host in range(THOUSANDS)
            for gpu in range(8)
        ]
    send(handler, json.dumps(matrix(*series)).encode())


def test_ten_thousand_series_are_asked_for_once() -> None:
    with stub(_many) as server:
        hosts = [
            Host(f"gpu-{n:04}", {"commcheck_prometheus_url": server.url}) for n in range(THOUSANDS)
        ]
        wanted = ((host, frozenset({"load"})) for host in hosts)
        told = fleet.gather(wanted, environment={})
        queries = [form["query"] for path, form in server.asked if path.endswith("_range")]
        assert len(queries) == len(set(queries)) <= 22
        ((target, subject), one), *rest = told.told.items()
        assert not rest
        assert subject == "load"
        share = fleet.share(one, target, ["gpu-1249"])
        assert [len(values) for _, values in share["series"]["sm"]] == [31] * 8
        assert len(json.dumps(share)) < 4000


def test_efa_is_told_by_the_exporter_that_aws_gives() -> None:
    def reply(handler: BaseHTTPRequestHandler, path: str, form: dict[str, str]) -> None:
        if path.endswith("/query"):
            send(handler, TIME)
            return
        series: list[object] = []
        if "node_amazonefa_" in form["query"] and "_total" not in form["query"]:
            labels = {"instance": "gpu-1:9100", "device": "rdmap79s0", "port": "1"}
            series = [{"metric": labels, "values": [[float(form["start"]), "9e9"]]}]
        send(handler, json.dumps(matrix(*series)).encode())

    with stub(reply) as server:
        both: set[str] = {"nic_tx", "nic_rx"}
        for platform, names in (("gpu-efa", both), ("gpu-roce", set())):
            variables = {"commcheck_prometheus_url": server.url, "commcheck_platform": platform}
            host = Host("gpu-1", variables)
            told = fleet.gather([(host, frozenset({"load"}))], environment={})
            ((target, _), one) = next(iter(told.told.items()))
            assert fleet.share(one, target, ["gpu-1"])["series"].keys() == names
        host = Host("gpu-1", variables | {"commcheck_platform": "gpu-efa"})
        told = fleet.gather([(host, frozenset({"faults"}))], environment={})
        ((target, _), one) = next(iter(told.told.items()))
        assert fleet.share(one, target, ["gpu-1"])["series"].keys() == set(EFA_COUNTERS)


def test_the_whole_has_an_end() -> None:
    over = threading.Event()

    def hang(handler: BaseHTTPRequestHandler, path: str, _form: object) -> None:
        if path.endswith("/query"):
            send(handler, TIME)
        else:
            over.wait(10)

    with stub(hang) as server:
        host = Host("gpu-01", {"commcheck_prometheus_url": server.url})
        began = time.monotonic()
        told = fleet.gather([(host, frozenset({"load"}))], environment={}, patience_s=0.3)
        assert time.monotonic() - began < 3
        over.set()
        (one,) = told.told.values()
        assert isinstance(one.problem, ServerSilent)
        assert "did not answer all within 0.3 s" in one.problem.reason


def test_one_refused_query_is_no_half_answer() -> None:
    def refuse(handler: BaseHTTPRequestHandler, path: str, form: dict[str, str]) -> None:
        if path.endswith("/query"):
            send(handler, TIME)
        elif "infiniband" in form["query"]:
            send(handler, b'{"status":"error","errorType":"timeout","error":"too slow"}', 503)
        else:
            send(handler, json.dumps(matrix()).encode())

    with stub(refuse) as server:
        host = Host("gpu-01", {"commcheck_prometheus_url": server.url})
        told = fleet.gather([(host, frozenset({"load"}))], environment={})
        ((target, _), one), *_ = told.told.items()
        assert "timeout: too slow" in fleet.share(one, target, ["gpu-01"])["problem"][1]
