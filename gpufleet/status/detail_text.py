"""One host in depth, as text. Texts from the host are never read as markup. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from gpufleet.core.names import count_noun
from gpufleet.status.detail import Detail
from gpufleet.status.text import topic_table


def show_topics(console: Console, detail: Detail) -> None:
    """Print the host's state and its plan."""
    if detail.has:
        console.print(topic_table(_topics(detail.has, detail.row.steps), "none"))
    console.print()


def _topics(has: dict[str, Any], steps: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    system, kernel, driver = has["system"], has["kernel"], has["driver"]
    manager = system["package_manager"] or "no package manager"
    yield "system", [f"{system['name']} ({system['code']})"]
    yield "package manager", [f"{manager}: {system['package_manager_state']}"]
    headers = "installed" if kernel["headers"] else "missing"
    newer = [f"newer, not running: {kernel['newer']}"] if kernel["newer"] else []
    running = f"{kernel['release']} {kernel['architecture']}, headers {headers}"
    yield "kernel", [running, *newer]
    yield "secure boot", [{None: "not EFI", True: "on", False: "off"}[kernel["secure_boot"]]]
    yield "GPUs", [_gpu(gpu) for gpu in has["gpus"]]
    if has["missing_gpus"]:
        yield "GPUs missing", [f"at {slot}" for slot in has["missing_gpus"]]
    if has["nvswitches"]:
        yield "NVSwitches", has["nvswitches"]
    modules = f" ({driver['modules']} modules)" if driver["modules"] else ""
    yield "driver loaded", [driver["loaded"] or "none"]
    yield "driver on disk", [f"{driver['installed'] or 'none'}{modules}"]
    yield "library", [driver["library"] or "none"]
    yield "DKMS", [" ".join(filter(None, built.values())) for built in has["dkms"]]
    yield (
        "packages",
        [
            f"{package['name']} {package['version']}" + (" (held)" if package["held"] else "")
            for package in has["packages"]
        ],
    )
    yield "device nodes", [" ".join(has["device_nodes"])] if has["device_nodes"] else []
    yield (
        "MIG",
        [
            f"GPU {index}: {' '.join(devices)}"
            for index, devices in enumerate(has["mig"])
            if devices
        ],
    )
    yield "toolkit", [has["toolkit"] or "none"]
    yield "runtimes", [_runtime(runtime) for runtime in has["runtimes"]]
    pods = [f"kubelet, {count_noun(has['gpu_pods'], 'GPU pod')}"] if has["kubelet"] else []
    yield "on the GPUs", [*has["gpu_processes"], *pods]
    yield "metrics from", has["collectors"]
    yield "installed by", ["gpufleet" if has["recorded"] else "not by gpufleet"]
    yield "plan", list(steps)


def _gpu(gpu: dict[str, Any]) -> str:
    silent = "" if gpu["responds"] else ", does not respond"
    return f"{gpu['model']} at {gpu['slot']}, kernel driver {gpu['driver'] or 'none'}{silent}"


def _runtime(runtime: dict[str, Any]) -> str:
    state = "running" if runtime["running"] else "stopped"
    containers = count_noun(runtime["containers"], "container")
    return f"{runtime['name']} {runtime['version']} ({runtime['unit']}, {state}, {containers})"
