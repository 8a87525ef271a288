"""Pods of the control plane and of DNS that Prometheus can scrape, from the API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

SYSTEM_NAMESPACE = "kube-system"
LABELS = ("component", "k8s-app")  # kubeadm, providers and charts set one of them
ENDED = ("Succeeded", "Failed")
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SystemPod:
    """A kind of pod of kube-system. Pods with the same command are one kind.

    `words`: the commands of its containers. `config`: the configuration fields in the ConfigMaps
    that it mounts, or {} if they are missing or forbidden.
    """

    labels: Mapping[str, str]
    words: tuple[str, ...]
    ports: tuple[int, ...]  # declared by its containers
    config: Mapping[str, Any]

    def argument(self, name: str) -> str | None:
        """The value of `--name=value` or `--name value`. The last one counts."""
        found = None
        for word, following in zip(self.words, (*self.words[1:], ""), strict=False):
            if word == f"--{name}":
                found = following
            elif word.startswith(f"--{name}="):
                found = word.partition("=")[2]
        return found


def config_maps(pods: Iterable[Answer]) -> list[str]:
    """Names of the ConfigMaps that pods with `--config` mount."""
    names = {name for pod in _running(pods) if _by_file(_words(pod)) for name in _mounted(pod)}
    return sorted(names)


def parse_system_pods(
    pods: Iterable[Answer], configs: Mapping[str, Answer]
) -> tuple[SystemPod, ...]:
    """Parse the pods. `configs`: ConfigMaps of kube-system by name."""
    found: list[SystemPod] = []
    for pod in _running(pods):
        containers = pod["spec"].get("containers") or ()
        ports = {port["containerPort"] for each in containers for port in each.get("ports") or ()}
        labels = pod["metadata"].get("labels") or {}
        words = _words(pod)
        mounted = _mounted(pod) if _by_file(words) else []
        kind = SystemPod(
            labels={name: labels[name] for name in LABELS if name in labels},
            words=words,
            ports=tuple(sorted(ports)),
            config=_fields(configs[name] for name in mounted if name in configs),
        )
        if kind not in found:
            found.append(kind)
    return tuple(found)


def _running(pods: Iterable[Answer]) -> Iterator[Answer]:
    for pod in pods:
        metadata = pod["metadata"]
        labelled = any(name in (metadata.get("labels") or {}) for name in LABELS)
        phase = (pod.get("status") or {}).get("phase")
        if metadata.get("namespace") == SYSTEM_NAMESPACE and labelled and phase not in ENDED:
            yield pod


def _words(pod: Answer) -> tuple[str, ...]:
    """The words of a pod's command. A shell script is one argument with several words."""
    parts: list[str] = []
    for container in pod["spec"].get("containers") or ():
        for text in (*(container.get("command") or ()), *(container.get("args") or ())):
            parts += str(text).split()
    return tuple(parts)


def _by_file(words: Iterable[str]) -> bool:
    return any(word.partition("=")[0] == "--config" for word in words)


def _mounted(pod: Answer) -> list[str]:
    volumes = [each.get("configMap") or {} for each in pod["spec"].get("volumes") or ()]
    return [str(each["name"]) for each in volumes if each.get("name")]


def _fields(configs: Iterable[Answer]) -> dict[str, Any]:
    """The fields of the files that configure a Kubernetes component."""
    found: dict[str, Any] = {}
    for config in configs:
        for text in (config.get("data") or {}).values():
            try:
                content = yaml.safe_load(text)
            except yaml.YAMLError:
                continue
            if isinstance(content, dict) and str(content.get("kind")).endswith("Configuration"):
                found |= {name: each for name, each in content.items() if isinstance(each, str)}
    return found
