"""A real Prometheus with the metrics of an invented fleet, asked as a user asks."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import re
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from commcheck.cli import main
from commcheck.metrics.access import Access
from commcheck.metrics.api import Grid, Server, ServerRefused, ServerSilent
from commcheck.metrics.offline import analyse_metrics, hosts_named
from commcheck.model import Kind, Status
from tests.metrics.fleet import day, fleet
from tests.metrics.prometheus import WHY_NOT, Metrics, Prometheus

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with Prometheus(tmp_path_factory.mktemp("prometheus"), fleet(time.time())) as running:
        yield running


EXPECTED = {
    "bound": (Status.FAIL, Kind.NONE, "communication-bound"),
    "overlapped": (Status.PASS, Kind.NONE, ""),
    "computing": (Status.PASS, Kind.NONE, ""),
    "waiting": (Status.WARN, Kind.NONE, "accelerators-wait"),
    "tcp": (Status.WARN, Kind.NONE, "rdma-unused"),
    "idle": (Status.SKIP, Kind.NOT_APPLICABLE, ""),
    "dead": (Status.SKIP, Kind.UNDECIDABLE, ""),
    "storage": (Status.WARN, Kind.NONE, "communication-bound"),
    "only-util": (Status.SKIP, Kind.UNDECIDABLE, ""),
    "tensor": (Status.WARN, Kind.NONE, "communication-bound"),
    "no-nic": (Status.SKIP, Kind.UNDECIDABLE, ""),
    "npu-bound": (Status.FAIL, Kind.NONE, "communication-bound"),
    "npu-computing": (Status.PASS, Kind.NONE, ""),
    "nobody": (Status.SKIP, Kind.UNDECIDABLE, ""),
}


def test_every_host_gets_its_verdict(server: Prometheus) -> None:
    analysis = analyse_metrics(server.url, hosts_named(",".join(EXPECTED)), environment={})
    found = {
        result.host: (
            result.status,
            result.kind,
            cause.slug if (cause := result.worst.verdict.cause) else "",
        )
        for result in analysis.results
        if result.check == "runtime.comm-bound"
    }
    assert found == EXPECTED
    others = {
        (result.host, result.check): result.worst.verdict
        for result in analysis.results
        if result.check != "runtime.comm-bound" and result.status is Status.FAIL
    }
    assert {case: verdict.cause.slug for case, verdict in others.items() if verdict.cause} == {
        ("bound", "runtime.nic-errors"): "nic-link-lost-before",
        ("overlapped", "runtime.nic-errors"): "nic-loss-before",
        ("computing", "runtime.xid"): "xid-off-the-bus",
    }


def test_what_broke_minutes_ago_is_told_though_nothing_says_how_busy_it_is(tmp_path: Path) -> None:
    metrics = Metrics(time.time())
    gpu = {"gpu": "1", "Hostname": "gpu-01", "instance": "192.0.2.7:9400"}
    day(metrics, "gpu-02", "node_infiniband_link_downed_total", {5 / 60: 8.0}, device="mlx5_0")
    for code, (minutes, until) in {"0": (1440.0, 5.0), "79": (4.0, 0.0)}.items():
        times = metrics.times(minutes, 60.0, until)
        labels = {**gpu, "err_code": code}
        metrics.add("DCGM_FI_DEV_XID_ERRORS", labels, ((when, float(code)) for when in times))
    metrics.add("DCGM_FI_DEV_XID_ERRORS", {**gpu, "Hostname": "gpu-03"},
                ((when, 94.0) for when in metrics.times(1440.0, 300.0)))  # fmt: skip
    with Prometheus(tmp_path, metrics) as running:
        hosts = hosts_named("gpu-[01:03]")
        analysis = analyse_metrics(running.url, hosts, environment={})
    causes = {
        (result.host, result.check): result.worst.verdict.cause
        for result in analysis.results
        if result.status is Status.FAIL
    }
    assert {case: cause.slug for case, cause in causes.items() if cause} == {
        ("gpu-01", "runtime.xid"): "xid-off-the-bus",
        ("gpu-02", "runtime.nic-errors"): "nic-link-lost-before",
    }
    assert [note for note in analysis.notes if "xid" in note] == [
        "runtime.xid: no fault among the last codes of the GPUs (gpu-03); the hosts' logs say more",
        "runtime.xid: the server has no codes of the GPUs, DCGM_FI_DEV_XID_ERRORS (gpu-02): only "
        "the hosts' logs can tell",
        "runtime.xid: to watch: gpu-03: Xid 94 on GPU 1 (uncorrectable memory error, kept to one "
        "program)",
    ]


def test_series_under_a_name_that_nobody_asks_about_are_pointed_at(server: Prometheus) -> None:
    """Only the accelerators of a host carry its name: its NICs are known by an address."""
    (told,) = [
        result.worst.verdict.reason
        for result in analyse_metrics(server.url, hosts_named("no-nic"), environment={}).results
        if result.check == "runtime.comm-bound"
    ]
    assert "the server has NICs of 192.0.2.7, which no host here is called" in told


def commcheck(tmp_path: Path, *words: str) -> Result:
    args = [*words, "-o", str(tmp_path / "reports")]
    # Wide: what is looked for must not be cut at the edge of whatever terminal runs the tests.
    env = {"COLUMNS": "300"}
    return CliRunner().invoke(main, args, env=env, standalone_mode=False, catch_exceptions=False)


def test_the_command_ends_in_one_screen_and_a_chart(server: Prometheus, tmp_path: Path) -> None:
    hosts = ("--hosts", "bound,overlapped")
    result = commcheck(tmp_path, "analyze", "metrics", "--url", server.url, *hosts)
    assert result.return_value == 1
    assert "SM active 12%, NIC mlx5_0 at 92% of 50 GB/s" in result.stdout
    assert "1 of 2 watched hosts" in result.stdout
    assert " files" not in result.stdout
    (folder,) = (path for path in (tmp_path / "reports").iterdir() if not path.is_symlink())
    assert '<svg class="chart"' in (folder / "report.html").read_text()


def test_an_inventory_tells_the_training_nics(server: Prometheus, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        f"storage commcheck_nics=mlx5_0\n"
        f"renamed commcheck_prometheus_name=bound\n"
        f"halves commcheck_prometheus_name=no-nic,192.0.2.7\n"
        f"[all:vars]\ncommcheck_prometheus_url={server.url}\n"
    )
    result = commcheck(tmp_path, "analyze", "metrics", "-i", str(inventory), "--format", "json")
    document = json.loads(result.stdout)
    causes = {
        each["subject"]: each["cause"]
        for each in document["verdicts"]
        if each["check"] == "runtime.comm-bound"
    }
    assert causes == {
        "storage": "accelerators-wait",
        "renamed": "communication-bound",
        "halves": "communication-bound",
    }
    assert document["facts"]["hosts"]["storage"]["nic"]["name"] == "NIC mlx5_0"


def test_a_selector_that_fits_nothing_is_no_data(server: Prometheus) -> None:
    hosts = hosts_named("bound")
    analysis = analyse_metrics(server.url, hosts, selector='cluster="b"', environment={})
    assert {result.kind for result in analysis.results} == {Kind.UNDECIDABLE}
    (told,) = (each for each in analysis.results if each.check == "runtime.comm-bound")
    assert 'no series of bound with cluster="b"; no host has that' in told.worst.verdict.reason
    assert "mend commcheck_prometheus_selector" in told.worst.verdict.reason


def test_a_run_asks_once_and_is_judged_again_offline(server: Prometheus, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        "bound ansible_connection=local\ncomputing ansible_connection=local\n"
        f"[all:vars]\ncommcheck_prometheus_url={server.url}\n"
    )
    checks = ("-t", "runtime.comm-bound", "-t", "runtime.nic-errors")
    result = commcheck(tmp_path, "run", "-i", str(inventory), *checks, "-q")
    assert result.return_value == 1, result.stdout
    assert "SM active 12%, NIC mlx5_0 at 92%" in result.stdout
    (folder,) = (path for path in (tmp_path / "reports").iterdir() if not path.is_symlink())
    frames = (folder / "frames" / "bound.ndjson").read_text()
    assert '"fleet: prometheus load"' in frames
    asked = queries(server)
    again = commcheck(tmp_path, "judge", str(folder), "-q")
    assert again.return_value == 1
    assert "SM active 12%, NIC mlx5_0 at 92%" in again.stdout
    assert queries(server) == asked


def queries(server: Prometheus) -> int:
    """How many range queries the server has answered."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    name = r'prometheus_http_requests_total\{code="200",handler="/api/v1/query_range"\} (\S+)'
    found = re.search(name, text)
    return 0 if found is None else int(float(found[1]))


def test_a_server_that_is_not_there_is_an_error_and_no_pass(tmp_path: Path) -> None:
    args = ("analyze", "metrics", "--url", "http://127.0.0.1:9", "--hosts", "gpu-[01:02]")
    result = commcheck(tmp_path, *args)
    assert result.return_value == 3
    assert "http://127.0.0.1:9 cannot be reached" in result.stdout
    assert "codes of the GPUs" not in result.stdout


def test_a_path_below_which_nothing_answers(server: Prometheus) -> None:
    with pytest.raises(ServerRefused, match="does not answer as Prometheus does"):
        Server(f"{server.url}/prometheus", Access()).now()


def test_a_query_that_is_none_is_told_by_the_server(server: Prometheus) -> None:
    grid = Grid(server.metrics.now - 600, 60.0, 11)
    with pytest.raises(ServerRefused, match="bad_data"):
        Server(server.url, Access()).query_range("sum by (", grid)
    twice = "DCGM_FI_DEV_GPU_UTIL * on() node_infiniband_rate_bytes_per_second"
    with pytest.raises(ServerRefused, match=r"HTTP 422\): execution: found duplicate") as refused:
        Server(server.url, Access()).query_range(twice, grid)
    assert "commcheck_prometheus_selector" in refused.value.remedy
    with pytest.raises(ServerRefused, match="exceeded maximum resolution"):
        Server(server.url, Access()).query_range("up", Grid(0, 1.0, 20_000))
    assert Server(server.url, Access()).query_range("no_such_metric", grid).series == ()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, Path]]:
    """Behind TLS and a password."""
    folder = tmp_path_factory.mktemp("guarded")
    certificate(folder)
    word = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
    web = (
        f"tls_server_config: {{cert_file: {folder}/cert.pem, key_file: {folder}/key.pem}}\n"
        f"basic_auth_users: {{commcheck: '{word}'}}\n"
    )
    metrics = Metrics(time.time())
    metrics.add("up", {"instance": "a:1"}, [(metrics.now - 60, 1.0), (metrics.now, 1.0)])
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    opener.addheaders = [
        ("Authorization", f"Basic {base64.b64encode(b'commcheck:s3cret').decode()}")
    ]
    with Prometheus(folder, metrics, web=web, scheme="https", opener=opener) as running:
        yield running, folder / "cert.pem"


def certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "prometheus")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def test_a_guarded_server(guarded: tuple[Prometheus, Path]) -> None:
    server, ca = guarded
    environment = {
        "COMMCHECK_PROMETHEUS_CA": str(ca),
        "COMMCHECK_PROMETHEUS_USER": "commcheck",
        "COMMCHECK_PROMETHEUS_PASSWORD": "s3cret",
    }
    assert abs(Server(server.url, Access.of(environment)).now() - time.time()) < 60
    with pytest.raises(ServerRefused, match="HTTP 401"):
        Server(server.url, Access.of({"COMMCHECK_PROMETHEUS_CA": str(ca)})).now()
    with pytest.raises(ServerSilent, match="is not to be trusted"):
        Server(server.url, Access()).now()
