"""A node looked at through a privileged pod, made for one visit and gone after it. Pure.

It is what ``kubectl debug node/NAME --profile=sysadmin`` makes, but as a Job with a name that we
choose: one that is left behind by a killed commcheck ends and is removed by the cluster itself.
"""

from __future__ import annotations

import json
import math
from typing import Final

from commcheck.kube.place import Place

IMAGE: Final = "busybox:1.36"
ROOT: Final = "/host"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "commcheck"}

_KEPT_S: Final = 60
"""How long the cluster keeps what has ended."""


def name_of(mark: str) -> str:
    """The name of a visit's Job: a DNS label."""
    return f"commcheck-{mark.lower().replace('.', '-').replace('_', '-')}"[:63].rstrip("-")


def manifest(name: str, place: Place, lives_s: float) -> bytes:
    """The Job: one pod on the node, as root in all of the node's namespaces, that only sleeps."""
    seconds = math.ceil(lives_s)
    spec = {
        "nodeName": place.node,
        "hostPID": True,
        "hostIPC": True,
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        "containers": [
            {
                "name": "look",
                "image": place.image or IMAGE,
                "command": ["sleep", str(seconds)],
                "securityContext": {"privileged": True, "runAsUser": 0},
                "volumeMounts": [
                    {"name": "host", "mountPath": ROOT, "mountPropagation": "HostToContainer"}
                ],
            }
        ],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": MANAGED_BY},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": _KEPT_S,
            "template": {"metadata": {"labels": MANAGED_BY}, "spec": spec},
        },
    }
    return json.dumps(job).encode()
