"""`gpufleet render`: write what `apply` would do to clusters as files for a GitOps repository."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import get_args

import click

from gpufleet.cli.deploy import INVENTORY_ARGUMENT, choose_targets
from gpufleet.cli.output import limit_option, output_options, prepare_output, print_note
from gpufleet.core.accepted import accepted_of, split_accepted
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding, Severity, by_severity
from gpufleet.core.inventory import CLUSTERS, NODES_GROUP
from gpufleet.core.live import is_quiet
from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.gitops.facts_file import FactsFileError, facts_text
from gpufleet.gitops.operations.clusters import (
    RenderRequest,
    SavedFacts,
    read_saved,
    render_cluster,
)
from gpufleet.gitops.operations.files import write_cluster
from gpufleet.gitops.releases import Style
from gpufleet.gitops.render import folder_names
from gpufleet.kube.facts import ClusterFacts
from gpufleet.run.report_file import FileKind, write_file
from gpufleet.verify.inventory import Target

FACTS_FILE = FileKind("a facts file of gpufleet", (b'"gpufleet_facts"',))
RENDER_EPILOG = (
    "Exit status: 0 every cluster is rendered; 1 one was blocked or is unreachable, and its files "
    "are unchanged; 2 usage error; 4 --limit matches nothing; 130 interrupted."
)


@click.command(epilog=RENDER_EPILOG)
@INVENTORY_ARGUMENT
@limit_option
@click.option("--output", metavar="DIR", help="Folder for the files; each cluster gets its own.")
@click.option("--format", "style", type=click.Choice(get_args(Style)), default="values",
              show_default=True,
              help="values: for each chart; flux: HelmReleases; argocd: Applications.")  # fmt: skip
@click.option("--save-facts", metavar="FILE", help="Write the clusters' facts for --offline.")
@click.option("--offline", metavar="FILE", help="Use the facts in FILE; connect to no cluster.")
@output_options
def render(
    inventory: str,
    limit: tuple[str, ...],
    output: str | None,
    style: Style,
    save_facts: str | None,
    offline: str | None,
) -> None:
    """Write what apply would do to clusters as files.

    For a repository from which Flux or Argo CD installs the GPU stack. Changes no cluster. Files
    hold no secrets: they name the Secrets to create.
    """
    if not (output or save_facts):
        raise click.UsageError("Nothing to write. Give --output DIR or --save-facts FILE.")
    saved = _read_offline(offline) if offline else None
    facts_path = prepare_output(save_facts, "--save-facts", FACTS_FILE)
    targets, chosen = choose_targets(inventory, limit)
    places = _places(chosen, Path(output or ""))
    data = {target.name: target.data for target in targets if NODES_GROUP in target.groups}
    asked = RenderRequest(data, style if output else None, saved, date.today())
    good, known = _render_all(places, asked)
    if facts_path:
        good = write_file(facts_path, lambda: facts_text(known)) and good
    sys.exit(ExitStatus.CONVERGED if good else ExitStatus.FAILED)


def _render_all(
    places: Sequence[tuple[Target, Path]], asked: RenderRequest
) -> tuple[bool, dict[str, ClusterFacts]]:
    """Render clusters into their folders. Returns whether all succeeded, and the known facts."""
    known: dict[str, ClusterFacts] = {}
    good = True
    for target, path in places:
        name = one_line(target.name)
        if not (asked.saved or is_quiet()):
            print_note(f"Reading {name}")
        found, facts = render_cluster(target.name, target.data, asked)
        known |= {target.name: facts} if facts else {}
        changed, problems = write_cluster(path, found.files) if found.files else (0, [])
        _show(target, [*found.findings, *problems])
        good = good and not (found.blocked or problems)
        if found.files and not problems and (changed or not is_quiet()):
            files = count_noun(len(found.files), "file")
            click.echo(f"{name}: {files} in {one_line(str(path))}, {changed} changed")
    return good, known


def _places(chosen: Sequence[Target], output: Path) -> list[tuple[Target, Path]]:
    """The clusters and their folders. Raises click.UsageError."""
    clusters = [target for target in chosen if CLUSTERS in target.groups]
    folders = folder_names(target.name for target in clusters)
    if not clusters:
        raise click.UsageError("No cluster to render: the group gpu_cluster names clusters.")
    if alike := [one_line(name) for name, folder in folders.items() if not folder]:
        raise click.UsageError(f"No folder names of their own: {', '.join(alike)}. Rename them.")
    return [(target, output / folders[target.name]) for target in clusters]


def _read_offline(path: str) -> SavedFacts:
    try:
        return read_saved(path)
    except FactsFileError as error:
        raise click.UsageError(
            f"Cannot use --offline {one_line(path)}: {error}. "
            "Make it with `gpufleet render INVENTORY --save-facts FILE`."
        ) from error


def _show(target: Target, found: Sequence[Finding]) -> None:
    """Print the findings of a cluster, without accepted ones."""
    shown, _ = split_accepted(found, accepted_of(target.data), date.today())
    for finding in by_severity(shown):
        if not (is_quiet() and finding.severity is Severity.INFO):
            print_finding(result_console(), finding, [target.name])
