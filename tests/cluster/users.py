"""Users of a test's cluster with limited permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until

ACCOUNT = "limited"
TOKEN = "token"  # its Secret, which the API server labels when it is used
Rules = list[dict[str, Any]]
READ_ALL: Rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]


def kubeconfig_of(cluster: Cluster, namespace: str, rules: Rules, path: Path) -> Path:
    """Write a kubeconfig of a ServiceAccount with these cluster-wide rules only."""
    core: Any = client.CoreV1Api(cluster.api)
    rbac: Any = client.RbacAuthorizationV1Api(cluster.api)
    core.create_namespaced_service_account(namespace, {"metadata": {"name": ACCOUNT}})
    name = f"{ACCOUNT}-{namespace}"
    rbac.create_cluster_role({"metadata": {"name": name}, "rules": rules})
    rbac.create_cluster_role_binding(
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        }
    )  # fmt: skip
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": _token(core, namespace)}
    path.write_text(yaml.safe_dump(config))
    return path


def _token(core: Any, namespace: str) -> str:
    """The token of the ServiceAccount, from a Secret, which every Kubernetes supports."""
    body = {
        "metadata": {"name": TOKEN,
                     "annotations": {"kubernetes.io/service-account.name": ACCOUNT}},
        "type": "kubernetes.io/service-account-token",
    }  # fmt: skip
    core.create_namespaced_secret(namespace, body)

    def issued() -> str:
        return str((core.read_namespaced_secret(TOKEN, namespace).data or {}).get("token", ""))

    word = wait_until(issued, 120)
    assert word, "the controller issued no token"
    return str(yaml.safe_load(f"!!binary {word}").decode())
