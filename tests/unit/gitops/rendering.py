"""Runs of `gpufleet render` on saved facts, for its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from gpufleet.cli import main
from gpufleet.core.yaml_events import LOADER
from gpufleet.gitops.facts_file import facts_text
from gpufleet.kube.facts import ClusterFacts
from gpufleet.verify.inventory import Target

Run = Callable[..., Result]
Clusters = Mapping[str, ClusterFacts]


def clusters_of(**data: Mapping[str, Any]) -> list[Target]:
    """Clusters of an inventory, by name."""
    return [Target(name, ("gpu_cluster",), dict(keys)) for name, keys in data.items()]


def render_saved(folder: Path, clusters: Clusters, *words: str) -> Result:
    """Save the facts, then render into the folder `out`."""
    file = folder / "facts.json"
    file.write_text(facts_text(clusters))
    asked = ["render", "inv.py", "--offline", str(file), "--output", str(folder / "out"), *words]
    return CliRunner().invoke(main, asked)


def files_in(folder: Path) -> dict[str, str]:
    """Path below the folder -> text."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def documents_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and content of each document of each YAML file."""
    for name, text in files_in(folder).items():
        if name.endswith(".yaml"):
            yield from ((name, body) for body in yaml.load_all(text, LOADER))
