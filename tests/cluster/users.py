"""Users of a test's cluster who may do less than everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until

ACCOUNT = "limited"
TOKEN = "token"  # the Secret with it, which the API server marks when it is used
Rules = list[dict[str, Any]]
LOOK: Rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]


def kubeconfig_of(cluster: Cluster, namespace: str, rules: Rules, path: Path) -> Path:
    """Write a kubeconfig of a ServiceAccount that has these rules, and no other, in the cluster."""
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
    """The token of the ServiceAccount, by the way that every Kubernetes has."""
    body = {
        "metadata": {"name": TOKEN,
                     "annotations": {"kubernetes.io/service-account.name": ACCOUNT}},
        "type": "kubernetes.io/service-account-token",
    }  # fmt: skip
    core.create_namespaced_secret(namespace, body)

    def made() -> str:
        return str((core.read_namespaced_secret(TOKEN, namespace).data or {}).get("token", ""))

    word = wait_until(made, 120)
    assert word, "the controller made no token"
    return str(yaml.safe_load(f"!!binary {word}").decode())
