"""Packages and repositories of the mirror as data, common to deb and rpm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class File:
    """One file in a package: its text or bytes, or the path of a file to copy."""

    content: str | bytes | Path
    mode: int = 0o644
    config: bool = False  # not overwritten if the user changed it


@dataclass(frozen=True, slots=True)
class Package:
    """One package. Relations and scripts have the names and syntax of its format.

    `version` is complete: `580.159.03-0ubuntu1` (deb), `3:550.163.01-1.el7` (rpm).
    """

    format: Literal["deb", "rpm"]
    name: str
    version: str
    summary: str
    arch: str = ""  # default: amd64 or x86_64
    relations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Depends, Requires, …
    files: Mapping[str, File] = field(default_factory=dict)  # absolute path -> file
    links: Mapping[str, str] = field(default_factory=dict)  # absolute path -> target
    scripts: Mapping[str, str] = field(default_factory=dict)  # postinst, post, … -> text

    @property
    def architecture(self) -> str:
        return self.arch or ("amd64" if self.format == "deb" else "x86_64")

    @property
    def filename(self) -> str:
        """The file name as in NVIDIA's repositories: without the epoch."""
        version = self.version.rpartition(":")[2]
        if self.format == "deb":
            return f"{self.name}_{version}_{self.architecture}.deb"
        return f"{self.name}-{version}.{self.architecture}.rpm"

    @property
    def epoch(self) -> str:
        return self.version.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository of the tree: path, packages and signing key."""

    path: str  # below the root of the tree: compute/cuda/repos/ubuntu2204/x86_64
    format: Literal["deb", "rpm"]
    packages: tuple[Package, ...]
    label: str  # apt: Release's Label and Origin
    key: Literal["vendor", "archive", "kubernetes"]  # in place of NVIDIA's, of the distribution's
    key_file: str  # the public key's name in the repository: 3bf863cc.pub
    extra: Mapping[str, str] = field(default_factory=dict)  # additional files: name -> text
    sign_packages: bool = False  # rpm: gpgcheck
