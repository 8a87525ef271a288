"""k8s.io/kubernetes as a dependency: the go.mod lines that its dependents must repeat.

Go applies `replace` lines only in the main module, and the release's go.mod has no versions of its
staging modules; both are derived from that go.mod. Old releases also need pins and repairs, because
a much newer Go builds them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpufleet_sandbox.cluster.modules import OwnModule
from gpufleet_sandbox.cluster.versions import Edit, minor_of, versions
from gpufleet_sandbox.errors import SandboxError, kinds

UNVERSIONED = "v0.0.0"


def replacements(module: OwnModule, version: str) -> dict[str, str]:
    """Every `replace` that a module requiring this release of Kubernetes needs."""
    data = versions().kubernetes
    released = module.download(data.module, f"v{version}")
    if "Error" in released:
        raise SandboxError(kinds.NOT_SERVED(module=data.module, reason=released["Error"]))
    upstream: dict[str, Any] = json.loads(module.run("mod", "edit", "-json", released["GoMod"]))
    staging = _staging(upstream)
    found = module.first_served({name: _staging_versions(version) for name in staging})
    served = {name: f"{name}@{number}" for name, number in found.items()}
    ours = {pin.module: pin.use for pin in data.pins if pin.applies(version)}
    return {**_pins(upstream, staging), **ours, **served}


def _staging(upstream: Mapping[str, Any]) -> set[str]:
    """The modules published from the release's repository."""
    replaced = {
        line["Old"]["Path"]
        for line in upstream.get("Replace") or ()
        if line["New"]["Path"].startswith("./staging/")
    }
    required = upstream.get("Require") or ()
    return replaced | {str(line["Path"]) for line in required if line["Version"] == UNVERSIONED}


def _pins(upstream: Mapping[str, Any], staging: set[str]) -> dict[str, str]:
    """The versions that the release pins its other dependencies to."""
    return {
        line["Old"]["Path"]: f"{line['New']['Path']}@{line['New']['Version']}"
        for line in upstream.get("Replace") or ()
        if line["New"].get("Version") and line["Old"]["Path"] not in staging
    }


def _staging_versions(version: str) -> tuple[str, ...]:
    """v0.36.3 for 1.36.3; alternatives if the proxy lacks it: other patches of the same minor."""
    minor = minor_of(version)
    return f"v0.{version.split('.', 1)[1]}", f"v0.{minor}.0", f"v0.{minor}.4"


def repair(module: OwnModule, version: str) -> None:
    """Replace each module that needs a repair with a repaired copy."""
    for one in versions().kubernetes.repairs:
        source = module.folder_of(one.module)
        if source is None or not one.applies(version) or not (source / one.file).exists():
            continue
        text, found = re.subn(one.find, one.use, (source / one.file).read_text())
        if found:
            (copied(module, one.module, source) / one.file).write_text(text)


def edit(module: OwnModule, name: str, edits: Sequence[Edit]) -> None:
    """Build a module from an edited copy. SandboxError GF602 if an edit finds nothing."""
    source = module.folder_of(name)
    assert source, f"{name} is required by the module that is built"
    copy = copied(module, name, source)
    for one in edits:
        text, found = re.subn(one.find, one.use, (copy / one.file).read_text(), flags=re.MULTILINE)
        if not found:
            output = f"{one.file} has nothing that matches {one.find}"
            raise SandboxError(
                kinds.COMMAND_FAILED(command=f"editing {name}", status=1, output=output)
            )
        (copy / one.file).write_text(text)
    module.run("mod", "tidy", "-e")  # without what only the removed lines needed


def copied(module: OwnModule, name: str, source: Path) -> Path:
    """A writable copy of a module that replaces it in the build."""
    copy = module.folder / "copies" / name.replace("/", "_")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    module.edit(f"-replace={name}={copy}")
    return copy
