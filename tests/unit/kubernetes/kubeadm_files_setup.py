"""Shared by the tests of kubeadm files."""

from __future__ import annotations

from typing import Any

from gpufleet.kubernetes.role import ROLE
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.settings import load_node_settings

API = "kubeadm.k8s.io/v1beta4"


def settings_of(**data: Any) -> KubernetesSettings:
    keys = {f"kubernetes_{key}": value for key, value in data.items()}
    settings, problems = load_node_settings({"kubernetes_enabled": True, **keys})
    assert settings is not None, problems
    return settings.of(ROLE)
