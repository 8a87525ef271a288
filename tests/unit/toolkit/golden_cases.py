"""The golden cases: one folder per case under golden/<runtime>/.

- `settings.yaml`: `about`; fields of DesiredRuntime; `main` (containerd: the main file, if
  `before` is a drop-in); `layers` (CRI-O: texts of crio.conf and its drop-ins); `findings` and
  `removal_findings`: the expected codes; `blocked`.
- `before`: the file on the host. Missing if the host has no such file.
- `after`: the result of the merge. Missing if the merge must not change the file.
- `edited`: the user's edit of `after` before the removal. Missing if the user edits nothing.
- `removed`: the result of the removal. Missing if it equals `before`, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from gpufleet.formats.model import EditRecord, Merged
from gpufleet.toolkit.config import containerd, containerd_layers, crio, docker
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.tables import parse_tables

FOLDER = "/etc/crio/crio.conf.d"
GOLDEN = Path(__file__).parent / "golden"
EDITORS: dict[str, tuple[Callable[..., Merged], Callable[..., Merged]]] = {
    "docker": (docker.merge_docker, docker.unmerge_docker),
    "containerd": (containerd.merge_containerd, containerd.unmerge_containerd),
    "crio": (crio.merge_crio, crio.unmerge_crio),
}


@dataclass(frozen=True)
class Case:
    folder: Path

    @property
    def runtime(self) -> str:
        return self.folder.parent.name

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = yaml.safe_load((self.folder / "settings.yaml").read_text())
        return settings

    def text(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_bytes().decode() if path.exists() else None

    @property
    def after(self) -> str | None:
        return self.text("after") if (self.folder / "after").exists() else self.text("before")

    @property
    def desired(self) -> DesiredRuntime:
        names = {field.name for field in fields(DesiredRuntime)}
        chosen = {key: value for key, value in self.settings.items() if key in names}
        if self.runtime == "docker":
            chosen["binary"] = "nvidia-container-runtime"
        if "layers" in self.settings:
            texts = {f"{FOLDER}/{n}": text for n, text in enumerate(self.settings["layers"])}
            chosen["layers"] = crio.read_crio_layers(texts, f"{FOLDER}/0")
        if "main" in self.settings:
            main = {"main": self.settings["main"]}
            chosen["layers"] = containerd_layers.read_containerd_layers(
                main, "main", deep_merge=True
            )
            chosen["new_version"] = containerd_layers.version_of(parse_tables(main["main"]))
        return DesiredRuntime(file=f"/etc/{self.runtime}/case", **chosen)

    def merge(self, text: str | None, record: EditRecord | None = None) -> Merged:
        merge, _ = EDITORS[self.runtime]
        return merge(text, self.desired, record)

    def unmerge(self, text: str | None, record: EditRecord) -> Merged:
        _, unmerge = EDITORS[self.runtime]
        return unmerge(text, record)


def cases(runtime: str = "*") -> list[Case]:
    return [Case(path.parent) for path in sorted(GOLDEN.glob(f"{runtime}/*/settings.yaml"))]
