"""k8s.io/kubernetes as a dependency: what its own go.mod leaves to be said again.

A module's `replace` lines count only in the main module, and its staging modules have no version
there; both are taken from the release's go.mod. Old releases need more, because they are built with
a Go that is years younger than they are.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpufleet.sandbox.cluster.modules import OwnModule

MODULE = "k8s.io/kubernetes"
UNVERSIONED = "v0.0.0"
# modules whose host is gone, or that do not work when built with a current Go
REPLACED_ALWAYS = {
    "vbom.ml/util": "github.com/fvbommel/util@v0.0.0-20180919145318-efcd4e0f9787",
}
REPLACED_BELOW_1_23 = {
    "github.com/modern-go/reflect2": "github.com/modern-go/reflect2@v1.0.2",
    "github.com/json-iterator/go": "github.com/json-iterator/go@v1.1.12",
}
# With a current Go this condition is true of "", so the old validator takes every empty string of
# a custom resource for null and refuses it.
NULL_CHECK = re.compile(
    r"data == nil \|\| reflect\.DeepEqual\(reflect\.Zero\([^\n]*?reflect\.ValueOf\(data\)\)"
)
VALIDATORS = {
    "github.com/go-openapi/validate": "type.go",
    "k8s.io/kube-openapi": "pkg/validation/validate/type.go",
}


def minor_of(version: str) -> int:
    """18 of 1.18.19."""
    return int(version.split(".")[1])


def replacements(module: OwnModule, version: str) -> dict[str, str]:
    """Every `replace` that a module needs which requires this release of Kubernetes."""
    go_mod = Path(module.download(MODULE, f"v{version}")["GoMod"])
    upstream: dict[str, Any] = json.loads(module.run("mod", "edit", "-json", str(go_mod)))
    staging = _staging(upstream)
    found = module.first_served({name: _staging_versions(version) for name in staging})
    served = {name: f"{name}@{number}" for name, number in found.items()}
    old = REPLACED_BELOW_1_23 if minor_of(version) < 23 else {}
    return {**_pins(upstream, staging), **REPLACED_ALWAYS, **old, **served}


def _staging(upstream: Mapping[str, Any]) -> set[str]:
    """The modules that are published out of the release itself."""
    replaced = {
        line["Old"]["Path"]
        for line in upstream.get("Replace") or ()
        if line["New"]["Path"].startswith("./staging/")
    }
    required = upstream.get("Require") or ()
    return replaced | {str(line["Path"]) for line in required if line["Version"] == UNVERSIONED}


def _pins(upstream: Mapping[str, Any], staging: set[str]) -> dict[str, str]:
    """The versions to which the release holds its other dependencies."""
    return {
        line["Old"]["Path"]: f"{line['New']['Path']}@{line['New']['Version']}"
        for line in upstream.get("Replace") or ()
        if line["New"].get("Version") and line["Old"]["Path"] not in staging
    }


def _staging_versions(version: str) -> tuple[str, ...]:
    """1.36.3 is v0.36.3 there; where that is not served, the first patches of the same minor."""
    minor = minor_of(version)
    return f"v0.{version.split('.', 1)[1]}", f"v0.{minor}.0", f"v0.{minor}.4"


def repair_validators(module: OwnModule) -> None:
    """Give the build a copy of each validator that mistakes "" for null."""
    for name, file in VALIDATORS.items():
        source = module.folder_of(name)
        if source is None or not (source / file).exists():
            continue
        text = (source / file).read_text()
        if NULL_CHECK.search(text):
            copy = copied(module, name, source)
            (copy / file).write_text(NULL_CHECK.sub("data == nil", text))


def copied(module: OwnModule, name: str, source: Path) -> Path:
    """A copy of a module that can be changed, put in its place in the build."""
    copy = module.folder / "copies" / name.replace("/", "_")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    module.edit(f"-replace={name}={copy}")
    return copy
