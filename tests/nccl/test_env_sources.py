"""Where variables come from: precedence, values as NCCL parses them, every form of file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import UsageError
from commcheck.model import Host, Kind, Status
from commcheck.nccl.environment.causes import RANK_TABLE
from commcheck.nccl.environment.causes_given import RANK_TABLE_BEGUN
from commcheck.nccl.environment.documents import declared
from commcheck.nccl.environment.model import Layer, Setting, effective
from commcheck.nccl.environment.names import default_of, is_kept, nearest, params
from commcheck.nccl.environment.sources import conf_file, plain_dump, process_environ, script
from commcheck.nccl.environment.values import Number, names, number, subsystems
from commcheck.nccl.offline_env import analyse_env

RECORDED = Path(__file__).parents[1] / "recorded" / "nccl-env"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("106", Number(106, whole=True)),
        ("0x6a", Number(106, whole=True)),
        ("010", Number(8, whole=True, octal=True)),
        ("0", Number(0, whole=True)),
        ("-1", Number(-1, whole=True)),
        ("8M", Number(8, whole=False)),
        ("22 # big", Number(22, whole=False)),
        ("20\r", Number(20, whole=False)),
        ("true", Number(0, whole=False, digits=False)),
        ('"0"', Number(0, whole=False, digits=False)),
        ("", Number(0, whole=False, digits=False)),
    ],
)
def test_numbers_as_nccl_reads_them(text: str, want: Number) -> None:
    assert number(text) == want


def test_lists_of_names() -> None:
    assert names("mlx5_1").takes("mlx5_10")
    assert not names("=mlx5_1").takes("mlx5_10")
    assert names("^mlx5_9").takes("mlx5_1")
    assert not names("^=eth0").takes("eth0")
    assert names("^=eth0").takes("eth01")
    assert names("mlx5_0:2").takes("mlx5_0", 2)
    assert not names("mlx5_0:2").takes("mlx5_0", 1)
    assert not names("mlx5_0, mlx5_1").takes("mlx5_1")  # the blank is part of the name


def test_subsystems_by_release() -> None:
    assert subsystems("INIT, ENV", trims=False) == frozenset({"INIT"})
    assert subsystems("init,ENV", trims=False) == frozenset({"INIT", "ENV"})
    assert subsystems("INIT, ENV", trims=True) == frozenset({"INIT", "ENV"})
    assert subsystems("NETWORK", trims=False) == frozenset()
    assert subsystems("INIT,NETWORK", trims=True) is None
    assert "COLL" not in (subsystems("^COLL", trims=False) or ())


def test_names_and_defaults_by_release() -> None:
    assert default_of("NCCL_IB_TIMEOUT", (2, 10, 3)) == "14"
    assert default_of("NCCL_IB_TIMEOUT", (2, 21, 5)) == "18"
    assert default_of("NCCL_IB_TIMEOUT", (2, 27, 3)) == "20"
    assert default_of("NCCL_IB_FIFO_TC", (2, 18, 1)) is None
    assert nearest("NCCL_IB_TIMOUT", params()) == "NCCL_IB_TIMEOUT"
    assert nearest("NCCL_SOMETHING_ELSE", params()) is None
    assert len(params()) > 250
    assert is_kept("NCCL_IB_PKEY")
    kept = ("HF_TOKEN", "NCCL_API_TOKEN", "PATH", "RANKS", "UCX_PASSWORD", "WANDB_API_KEY")
    assert not any(is_kept(name) for name in kept)


def layer(**values: str) -> Layer:
    return Layer({name: Setting(value, name.lower()) for name, value in values.items()})


def test_the_process_wins_over_files_and_an_empty_value_unsets() -> None:
    found, _ = effective(
        [layer(NCCL_ALGO="", NCCL_PROTO="Simple"), layer(NCCL_ALGO="Ring"), layer(NCCL_PROTO="LL")]
    )
    assert found["NCCL_PROTO"].value == "Simple"
    assert found["NCCL_ALGO"].value == ""


def test_a_configuration_file_as_nccl_reads_it() -> None:
    text = (RECORDED / "etc-nccl.conf").read_text()
    found = conf_file(text, "/etc/nccl.conf")
    assert {name: setting.value for name, setting in found.settings.items()} == {
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
        "NCCL_SOCKET_IFNAME": "bond0   # storage excluded",
        "NCCL_CROSS_NIC": '"0"',
        "NCCL_IB_TIMEOUT": "22",
    }
    assert [where for where, _ in found.ignored] == [f"/etc/nccl.conf:{n}" for n in (3, 4, 5)]
    secret = conf_file("export WANDB_API_KEY = geheim\n", "x")
    assert "geheim" not in str(secret)


def test_dumps_scripts_and_what_a_shell_makes_of_them() -> None:
    dump = plain_dump(
        'declare -x NCCL_ALGO="Ring"\nexport NCCL_NET=IB\nX=1\nNCCL_IB_TC=106\r\n', "f"
    )
    assert {k: v.value for k, v in dump.settings.items()} == {
        "NCCL_ALGO": "Ring",
        "NCCL_NET": "IB",
        "NCCL_IB_TC": "106",
    }
    text = (
        "#!/bin/bash\n#SBATCH --export=ALL,NCCL_DEBUG=INFO\n# export NCCL_ALGO=Ring\n"
        "export NCCL_IB_TC=106 NCCL_NET='IB' # mark\nexport MASTER_ADDR=$(hostname)\n"
        "NCCL_PROTO=LL\nunset NCCL_PROTO\n"
        "mpirun -x NCCL_IB_SL=3 \\\n  -x NCCL_DEBUG_FILE=/x.%p python train.py\n"
    )
    found = script(text, "job.sh").settings
    assert {name: setting.value for name, setting in found.items()} == {
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_TC": "106",
        "NCCL_NET": "IB",
        "NCCL_IB_SL": "3",
        "NCCL_DEBUG_FILE": "/x.%p",
    }
    assert found["NCCL_IB_TC"].where == "job.sh:4"


def test_pods() -> None:
    (pod,) = declared((RECORDED / "pod.yaml").read_text(), "pod.yaml")
    found, _ = effective(pod.layers)
    assert {name: setting.value for name, setting in found.items()} == {
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_TC": "106",
        "NCCL_SHM_DISABLE": "1",
        "NCCL_IB_HCA": "mlx5_1",
    }
    assert pod.shm_bytes == 64 << 20
    text = """
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: train
            env: [{name: NCCL_IB_TC, valueFrom: {secretKeyRef: {name: s, key: k}}}]
            envFrom: [{configMapRef: {name: elsewhere}}]
            resources: {limits: {nvidia.com/gpu: 8}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""
    (worker,) = declared(text, "job.yaml")
    assert (worker.shm_bytes, worker.gpus, len(worker.unread)) == (-1, 8, 2)


def values(text: str) -> list[dict[str, str]]:
    """The variables of each rank of a document."""
    found = (effective(one.layers)[0] for one in declared(text, "f"))
    return [{name: setting.value for name, setting in each.items()} for each in found]


SIDECAR = """
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: rx-daemon, image: daemon, env: [{name: NCCL_DEBUG, value: INFO}]}
  - name: train
    env: [{name: NCCL_ALGO, value: Ring}]
    resources: {limits: {nvidia.com/gpu: 8}}
    volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""
LAUNCHED = """
kind: MPIJob
metadata: {name: sweep}
spec:
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{name: launcher, env: [{name: NCCL_IB_TC, value: "106"}],
        command: [bash, -c], args: [LINE]}]}}
    Worker:
      template: {spec: {containers: [{name: worker, RESOURCES
        env: [{name: NCCL_DEBUG, value: WARN}]}]}}
"""
MPIRUN = """
  "export NCCL_NET=IB\\nexport NCCL_PROTO=LL\\n
  mpirun -np 16 -x NCCL_DEBUG=INFO -x NCCL_NET \\\\\\n -x NCCL_IB_TC
  -x NCCL_IB_SL=$SL all_reduce_perf"
"""


def test_a_container_without_gpus_beside_one_with_them_is_no_rank() -> None:
    assert values(SIDECAR) == [{"NCCL_ALGO": "Ring"}]
    # Without a word on GPUs nobody can tell which of them runs ranks.
    assert len(values(SIDECAR.replace("nvidia.com/gpu", "memory"))) == 2
    claimed = SIDECAR.replace("image: daemon", "resources: {claims: [{name: gpus}]}")
    assert len(values(claimed)) == 2


@pytest.mark.parametrize("asks", ["resources: {limits: {nvidia.com/gpu: 8}},", ""])
def test_what_a_launcher_hands_over_is_the_workers(asks: str) -> None:
    text = LAUNCHED.replace("LINE", MPIRUN).replace("RESOURCES", asks)
    want = {"NCCL_DEBUG": "INFO", "NCCL_NET": "IB", "NCCL_IB_TC": "106"}
    assert values(text) == [want]
    words = '"exec mpiexec -genv NCCL_ALGO Ring -env NCCL_DEBUG INFO all_reduce_perf"'
    text = LAUNCHED.replace("LINE", words).replace("RESOURCES", asks)
    assert values(text) == [{"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"}]


def test_what_a_container_runs_counts() -> None:
    text = """
kind: Pod
spec:
  containers:
  - name: train
    command: [/bin/bash, -lc]
    args:
    - |
      # export NCCL_PROTO=LL
      export NCCL_IB_TC=106
      bash -c 'export NCCL_ALGO=Ring; torchrun train.py'
    env: [{name: NCCL_IB_TC, value: "26"}]
"""
    assert values(text) == [{"NCCL_IB_TC": "106", "NCCL_ALGO": "Ring"}]
    where = effective(declared(text, "f")[0].layers)[0]["NCCL_IB_TC"].where
    assert where == "f (train: command):2"


PLAIN = [
    "services: {train: {environment: [NCCL_NET=IB, NCCL_DEBUG], image: x}}",
    "services: {train: {environment: {NCCL_NET: IB}, image: x}}",
    '[{"Name": "/train", "Config": {"Env": ["PATH=/bin", "NCCL_NET=IB"]}}]',
    '{"configurations": [{"env": {"NCCL_NET": "IB"}}]}',
    "envs: {NCCL_NET: IB}\nrun: torchrun train.py\n",
]


@pytest.mark.parametrize("text", PLAIN)
def test_documents_of_compose_docker_and_others(text: str) -> None:
    assert values(text) == [{"NCCL_NET": "IB"}]


def test_services_of_one_document_are_no_ranks_of_one_job(tmp_path: Path) -> None:
    text = "services: {a: {environment: [NCCL_NET=IB]}, b: {environment: [NCCL_NET=Socket]}}"
    (tmp_path / "compose.yaml").write_text(text)
    analysis = analyse_env([str(tmp_path / "compose.yaml")])
    assert "ENV-001" not in {finding.verdict.rule for finding in analysis.results[0].findings}


FORMS = [
    "docker run -e NCCL_NET=IB train",
    "docker run --env NCCL_NET=IB train",
    "docker run --env=NCCL_NET=IB train",
    "docker run -eNCCL_NET=IB train",
    "mpiexec.hydra -n 16 -genv NCCL_NET IB train",
    "srun bash -c 'export NCCL_NET=IB; train'",
    "FROM scratch\nENV NCCL_NET=IB\n",
    "FROM scratch\nENV NCCL_NET IB\n",
]


@pytest.mark.parametrize("text", FORMS)
def test_forms_of_a_command(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    (told,) = analyse_env([str(tmp_path / "x")]).facts["environments"]  # type: ignore[misc] # one of a list
    assert {name: each["value"] for name, each in told["settings"].items()} == {"NCCL_NET": "IB"}  # type: ignore[has-type]


def test_a_list_behind_docker_s_option_is_one_value() -> None:
    found = script("docker run --env=NCCL_IB_HCA=mlx5_0,mlx5_1 x", "f").settings
    assert found["NCCL_IB_HCA"].value == "mlx5_0,mlx5_1"


def test_what_is_named_and_not_read_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[env]\nset = [["NCCL_IB_DISABLE", "1"]]\n')
    with pytest.raises(UsageError, match="names NCCL_IB_DISABLE in a form that is not read"):
        analyse_env([str(tmp_path / "x.toml")])
    (tmp_path / "pod.yaml").write_text(
        "kind: Pod\nspec: {containers: [{name: t, args: [--env-json, '{\"NCCL_IB_DISABLE\": 1}'],"
        " volumeMounts: [{mountPath: /dev/shm}]}]}\n"
    )
    (finding,) = [
        finding
        for finding in analyse_env([str(tmp_path / "pod.yaml")]).results[0].findings
        if finding.verdict.kind is Kind.UNDECIDABLE
    ]
    assert "names NCCL_IB_DISABLE" in finding.verdict.reason
    for harmless in ("# NCCL_IB_DISABLE=1", "echo $NCCL_IB_DISABLE ${NCCL_IB_DISABLE:-0}"):
        (tmp_path / "x.toml").write_text(harmless + "\n")
        with pytest.raises(UsageError, match="no variable"):
            analyse_env([str(tmp_path / "x.toml")])


def table(*npus: tuple[str, str, str, str], **more: object) -> str:
    """A rank table of NPUs: rank, server, device, address."""
    servers = {server: [n for n in npus if n[1] == server] for _, server, _, _ in npus}
    listed = [
        {
            "server_id": server,
            "device": [
                {"rank_id": rank, "device_id": device, "device_ip": address}
                for rank, _, device, address in of
            ],
        }
        for server, of in servers.items()
    ]
    return json.dumps({"version": "1.0", "status": "completed", "server_list": listed, **more})


NPU_0, NPU_1 = ("0", "node-01", "0", "192.0.2.1"), ("1", "node-02", "0", "192.0.2.2")


def super_pods(
    pods: dict[str, list[str]], devices: tuple[str, str] = ("7", "8"), version: str = "1.2"
) -> str:
    """A table of two servers with an NPU each, in these super pods."""
    whole = json.loads(table(NPU_0, NPU_1, version=version))
    for server, device in zip(whole["server_list"], devices, strict=True):
        server["device"][0]["super_device_id"] = device
    whole["super_pod_list"] = [
        {"super_pod_id": name, "server_list": [{"server_id": each} for each in servers]}
        for name, servers in pods.items()
    ]
    return json.dumps(whole)


GROUPS = json.dumps(
    {
        "status": "completed",
        "server_group_list": [
            json.loads(table(NPU_0, NPU_1)),
            json.loads(table(("0", "node-03", "", "192.0.2.3"), ("1", "node-03", "", ""))),
        ],
    }
)
TABLES = [
    (table(NPU_0, NPU_1), ""),
    (table(NPU_0, ("1", "node-01", "1", "")), ""),
    (table(NPU_0, ("1", "node-02", "0", "192.0.2.1")), "device_ip 192.0.2.1 stands there 2 times"),
    (table(NPU_0, ("0", "node-02", "0", "192.0.2.2")), "rank_id 0 stands there 2 times"),
    (table(NPU_0, ("1", "node-01", "0", "192.0.2.2")), "device_id 0 of node-01 stands there 2"),
    (table(NPU_0, NPU_1, status="complete"), "its status is 'complete', want 'completed'"),
    (GROUPS, ""),
    (table(NPU_0, NPU_1, server_count="2"), ""),
    (table(NPU_0, NPU_1, server_count="3"), "server_count is 3, and server_list has 2"),
    (
        table(NPU_0, ("2", "node-02", "0", "192.0.2.2")),
        "2 NPUs, and none is rank 1: ranks are numbered from 0 without a gap",
    ),
    (
        table(NPU_0, ("1", "node-02", "0", "192.0.2.300")),
        "device_ip '192.0.2.300' is no address: rank 1 (device 0 of node-02)",
    ),
    (table(NPU_0, ("1", "node-02", "0", "192.0.2.2,2001:db8::2")), ""),
    (
        table(NPU_0, NPU_1).replace(', "device_ip": "192.0.2.2"', ""),
        "no device_ip, which several servers need: rank 1 (device 0 of node-02)",
    ),
    (table(NPU_0).replace(', "device_ip": "192.0.2.1"', ""), ""),
    (table(NPU_0, NPU_1).replace("node-02", "node-01"), "server_id node-01 stands there 2 times"),
    (super_pods({"0": ["node-01", "node-02"]}), ""),
    (super_pods({"0": ["node-01"]}), "server node-02 is in no super pod"),
    (
        super_pods({"0": ["node-01", "node-02", "node-03"]}),
        "super_pod_list has server node-03, and server_list does not",
    ),
    (
        super_pods({"0": ["node-01", "node-02"]}, devices=("7", "7")),
        "super pod 0: super_device_id 7 stands there 2 times",
    ),
    (super_pods({"0": ["node-01"], "1": ["node-02"]}, devices=("7", "7")), ""),
    (super_pods({"0": ["node-01", "node-02"]}, devices=("7", "")), "no super_device_id, which"),
    # HCCL reads no super pods from a table of the older version.
    (super_pods({"0": ["node-01"]}, version="1.0"), ""),
]


@pytest.mark.parametrize(("text", "fault"), TABLES)
def test_a_rank_table(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text(text)
    analysis = analyse_env([str(tmp_path / "hccl.json")])
    finding = analysis.results[0].findings[0]
    assert fault in finding.verdict.reason
    cause = RANK_TABLE if fault else None
    assert (finding.verdict.cause, finding.verdict.status is Status.FAIL) == (cause, bool(fault))
    assert "a rank table, NPUs: " in str(analysis.screen)


BEGUN = '{"status": "initializing", "server_list": [], "server_count": "0", "version": "1.0"}'
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: rings-config-train
data:
  hccl.json: |
    {
        "status":"initializing"
    }
"""
JOB = """\
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
  - name: worker
    template:
      spec:
        volumes: [{name: shm, emptyDir: {medium: Memory}}]
        containers:
        - name: train
          env: [{name: HCCL_CONNECT_TIMEOUT, value: "1200"}]
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""


@pytest.mark.parametrize(
    "text",
    [
        BEGUN,
        '{"status": "initializing"}',
        '{"status": "initializing", "server_list": null, "server_count": "", "version": ""}',
        table(NPU_0, NPU_1, status="initializing"),
        MAP.replace("metadata:\n", "metadata:\n  resourceVersion: '4711'\n"),
    ],
)
def test_a_rank_table_that_mindcluster_has_not_filled_in_is_told_so(
    text: str, tmp_path: Path
) -> None:
    """It names nobody yet: no number of it contradicts another, and no NPU has to be asked."""
    (tmp_path / "hccl.json").write_text(text)
    (finding,) = analyse_env([str(tmp_path / "hccl.json")]).results[0].findings
    assert (finding.verdict.status, finding.verdict.cause) == (Status.FAIL, RANK_TABLE_BEGUN)
    assert "MindCluster has not filled it in yet" in finding.verdict.reason


def test_the_rank_table_of_a_manifest_is_filled_in_later(tmp_path: Path) -> None:
    """MindCluster's own examples apply it so: nothing is wrong before the job runs."""
    (tmp_path / "map.yaml").write_text(MAP)
    (tmp_path / "job.yaml").write_text(MAP + JOB)
    (alone,) = analyse_env([str(tmp_path / "map.yaml")]).results[0].findings
    assert alone.verdict.kind is Kind.UNDECIDABLE
    assert "MindCluster fills it in when the job's pods have NPUs" in alone.verdict.reason
    assert "kubectl get configmap" in str(alone.verdict)
    job = analyse_env([str(tmp_path / "job.yaml")])
    assert not [f for f in job.results[0].findings if f.verdict.status is Status.FAIL]


def findings(*files: str, inventory: dict[str, Host] | None = None) -> dict[str, set[Status]]:
    analysis = analyse_env([str(RECORDED / file) for file in files], inventory)
    found: dict[str, set[Status]] = {}
    for finding in analysis.results[0].findings:
        if finding.verdict.kind is Kind.NONE:
            found.setdefault(finding.verdict.rule, set()).add(finding.verdict.status)
    assert "not-for-the-report" not in str(analysis)
    return found


def test_the_recorded_environment_with_a_dozen_mistakes() -> None:
    found = findings("proc-environ.bin", "mlnx_qos-eth2.txt")
    fails = {rule for rule, statuses in found.items() if Status.FAIL in statuses}
    assert fails == {"ENV-005", "ENV-020", "ENV-021", "ENV-030", "ENV-037"}
    assert found.keys() - fails == {
        *("ENV-002", "ENV-003", "ENV-006", "ENV-008", "ENV-048", "ENV-053", "ENV-054")
    }


def test_configuration_files_together() -> None:
    files = [str(RECORDED / name) for name in ("etc-nccl.conf", "home-nccl.conf")]
    (told,) = analyse_env(files).facts["environments"]  # type: ignore[misc] # one of a list
    assert {name: each["value"] for name, each in told["settings"].items()} == {  # type: ignore[has-type]
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
        "NCCL_CROSS_NIC": "1\r",
        "NCCL_IB_TIMEOUT": "20\r",
        "NCCL_ALGO": "Ring\r",
        "NCCL_SOCKET_IFNAME": "bond0   # storage excluded",
    }
    found = findings("etc-nccl.conf", "home-nccl.conf")
    assert found["ENV-008"] == {Status.FAIL, Status.WARN}
    assert found["ENV-009"] == {Status.WARN}


def test_pod_ray_and_an_inventory() -> None:
    assert findings("pod.yaml").keys() == {"ENV-033", "ENV-064"}
    gpu = Host("gpu-01", {"commcheck_platform": "gpu-roce", "commcheck_nvlink_links": 18})
    assert findings("ray-runtime-env.yaml", inventory={"gpu-01": gpu}) == {"ENV-032": {Status.FAIL}}


def test_an_inventory_of_several_hosts_holds_where_they_are_alike() -> None:
    gpu = {"commcheck_platform": "gpu-roce", "commcheck_nvlink_links": 18}
    alike = {name: Host(name, gpu) for name in ("gpu-01", "gpu-02.example")}
    assert findings("ray-runtime-env.yaml", inventory=alike) == {"ENV-032": {Status.FAIL}}
    mixed = alike | {"gpu-03": Host("gpu-03", gpu | {"commcheck_nvlink_links": 0})}
    assert "ENV-032" not in findings("ray-runtime-env.yaml", inventory=mixed)


def test_declared_rails_tell_which_of_them_a_list_leaves_out(tmp_path: Path) -> None:
    gpu = {"commcheck_platform": "gpu-ib", "commcheck_nics": ["mlx5_0", "mlx5_1"]}
    inventory = {name: Host(name, gpu) for name in ("gpu-01", "gpu-02")}
    for value, rules, ends in (
        ("mlx5_0", {"ENV-015": "leaves out mlx5_1 against the rails"}, set()),
        ("=mlx5_0,mlx5_1", {}, set()),
        ("=mlx5_0,mlx5_9", {"ENV-015": "leaves out mlx5_1 against the rails"}, {"ENV-014"}),
        ("=mlx5_9", {"ENV-015": "leaves out mlx5_0, mlx5_1 against the rails"}, {"ENV-014"}),
    ):
        (tmp_path / "x.env").write_text(f"NCCL_IB_HCA={value}\n")
        analysis = analyse_env([str(tmp_path / "x.env")], inventory)
        verdicts = [each.verdict for each in analysis.results[0].findings]
        wrong = {each.rule: each.reason for each in verdicts if each.cause}
        assert wrong.keys() == rules.keys()
        assert all(wrong[rule].endswith(end) for rule, end in rules.items())
        open_ones = [each for each in verdicts if each.kind is Kind.UNDECIDABLE]
        assert {each.rule for each in open_ones} - {"ENV-020", "ENV-021"} == ends
        # What is declared already is not asked for once more.
        assert not any("inventory" in each.reason for each in open_ones)


def test_a_log_beside_the_environment(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    log.write_text(
        "gpu-a:71:71 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
        "gpu-a:71:71 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\n"
        "gpu-a:71:71 [0] NCCL INFO NCCL_IB_TC set by environment to 106.\n"
    )
    dump = tmp_path / "rank0.env"
    dump.write_text("NCCL_IB_DISABLE=0\nNCCL_IB_TC=26\nNCCL_IB_DATA_DIRECT=1\n")
    analysis = analyse_env([str(log), str(dump)])
    rules = {f.verdict.rule for f in analysis.results[0].findings if f.verdict.cause}
    assert rules == {"ENV-004", "ENV-007"}


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(UsageError, match="no variable"):
        analyse_env([str(tmp_path / "x")])
    with pytest.raises(UsageError, match="no environment"):
        analyse_env([str(RECORDED / "mlnx_qos-eth2.txt")])
    with pytest.raises(UsageError, match="no such file"):
        analyse_env([str(tmp_path / "y")])


NAMES = st.sampled_from([*sorted(params())[::9], "HCCL_RDMA_TC", "UCX_NET_DEVICES", "RANK", "X"])
TEXT = st.text(
    st.characters(codec="utf-8") | st.sampled_from("=,:#^ \n\r\0\"'$-0x8{}[]&*"), max_size=60
)


@settings(max_examples=40)
@given(st.lists(st.tuples(NAMES, TEXT), max_size=8), TEXT)
def test_no_input_raises_and_nothing_else_is_seen(pairs: list[tuple[str, str]], junk: str) -> None:
    text = "\n".join(f"{name}={value}" for name, value in pairs) + junk
    for read in (process_environ, plain_dump, conf_file, script):
        assert all(is_kept(name) for name in read(text, "f").settings)
    declared(text, "f")


@settings(max_examples=30)
@given(st.lists(st.tuples(NAMES, TEXT), max_size=6), st.binary(max_size=200))
def test_an_analysis_of_anything_ends_or_refuses(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    text = "\0".join(f"{name}={value}" for name, value in pairs)
    (folder / "environ").write_bytes(text.encode() + b"\0" + junk)
    (folder / "b.yaml").write_bytes(junk)
    try:
        analysis = analyse_env([str(folder)])
    except UsageError:
        return
    assert analysis.results[0].findings
