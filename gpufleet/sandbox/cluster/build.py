"""What a test cluster runs, built from Go modules once and kept in the cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from gpufleet.sandbox.cluster.kubernetes_source import (
    MODULE,
    minor_of,
    repair_validators,
    replacements,
)
from gpufleet.sandbox.cluster.modules import OwnModule
from gpufleet.sandbox.cluster.openapi import generate_definitions
from gpufleet.sandbox.cluster.versions import Program, versions
from gpufleet.sandbox.golang import go_command, go_environment
from gpufleet.sandbox.locks import exclusive

SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
STAGES = "stages"  # folder beside kwok
Progress = Callable[[str], None]


def kubernetes_servers(version: str, home: Path, progress: Progress) -> Path:
    """A folder with SERVERS of a release (1.36.3); the first time this takes minutes."""
    target = home / f"kubernetes-{version}"
    with exclusive(home, f"kubernetes-{version}", progress):
        if not target.exists():
            progress(f"building Kubernetes {version} from its Go module: about 10 minutes, once")
            _build_servers(version, home, target, progress)
    return target


def program(name: str, home: Path, progress: Progress) -> Path:
    """A program of versions.yaml: the path of its binary."""
    wanted = versions().programs[name]
    target = home / f"{name}-{wanted.version}"
    with exclusive(home, name, progress):
        if not target.exists():
            progress(f"building {name} {wanted.version}")
            _build_program(name, wanted, home, target, progress)
    return target / name


def _build_servers(version: str, home: Path, target: Path, progress: Progress) -> None:
    module = _own_module(home, target, progress)
    packages = [f"{MODULE}/cmd/{name}" for name in SERVERS]
    module.create(packages, f"{MODULE}@v{version}", replacements(module, version))
    repair_validators(module)
    generate_definitions(module)
    partial = _emptied(target)
    for name, package in zip(SERVERS, packages, strict=True):
        progress(f"building {name} {version}")
        module.build(package, partial / name, f"-checklinkname=0 {_stamp(version)}")
    partial.rename(target)
    shutil.rmtree(module.folder)


def _stamp(version: str) -> str:
    """An unstamped server says v0.0.0, and every chart's kubeVersion check fails."""
    variables = {
        "gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": str(minor_of(version)),
        "gitTreeState": "clean",
    }  # fmt: skip
    stamps = [
        f"-X {package}.{name}={value}"
        for package in VERSION_PACKAGES
        for name, value in variables.items()
    ]
    return " ".join(["-s -w", *stamps])


def _build_program(
    name: str, wanted: Program, home: Path, target: Path, progress: Progress
) -> None:
    module = _own_module(home, target, progress)
    module.create([wanted.package], f"{wanted.module}@{wanted.version}", {})
    partial = _emptied(target)
    stamp = f" -X {wanted.stamp}={wanted.version}" if wanted.stamp else ""
    module.build(wanted.package, partial / name, f"-s -w{stamp}")
    source = module.folder_of(wanted.module)
    for number, stage in enumerate(wanted.stages):
        assert source
        (partial / STAGES).mkdir(exist_ok=True)
        copy = partial / STAGES / f"{number:02}-{Path(stage).name}"
        shutil.copyfile(source / "kustomize" / "stage" / stage, copy)
    partial.rename(target)
    shutil.rmtree(module.folder)


def _own_module(home: Path, target: Path, progress: Progress) -> OwnModule:
    environment = go_environment(home, "-buildvcs=false -mod=mod")
    folder = home / "modules" / target.name
    shutil.rmtree(folder, ignore_errors=True)
    return OwnModule(go_command(home, progress), folder, environment)


def _emptied(target: Path) -> Path:
    """The folder beside `target` in which it is made; it appears under its name when whole."""
    partial = target.with_name(f"{target.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial
