"""Shared by the checks of the driver packages and of the toolkit packages."""

from __future__ import annotations

from gpufleet.core.findings import Kind
from gpufleet.core.names import counted
from gpufleet.verify.node import Node
from gpufleet.verify.parse import bare


def differences(node: Node, recorded: dict[str, str]) -> list[str]:
    """Each recorded package that is not installed at its version, as text."""
    found = []
    for name, version in sorted(recorded.items()):
        package = node.packages.get(name)
        if package is None:
            found.append(f"no {name}")
        elif version not in (package.version, bare(package.version)):
            found.append(f"{name} {package.version} instead of {version}")
    return found


def expect_held(node: Node, kind: Kind, recorded: dict[str, str]) -> None:
    """Fail unless every installed package of the record is held."""
    loose = sorted(n for n in recorded if n in node.packages and not node.packages[n].held)
    way = "dpkg's hold" if node.is_debian else "the versionlock list"
    expected = f"{counted(len(recorded), 'package')} held by {way}"
    unreadable = "" if node.is_debian else node.locks[1]
    node.expect(not loose, kind, expected, unreadable or f"not held: {', '.join(loose)}")
