"""`gpufleet render`: write what `apply` would do to clusters as files for a GitOps repository."""

from __future__ import annotations

import re
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
from gpufleet.gitops.facts_file import FactsFileError, facts_text, parse_facts
from gpufleet.gitops.findings import NO_SAVED_FACTS
from gpufleet.gitops.operations.clusters import KnownCluster, read_known_cluster, saved_cluster
from gpufleet.gitops.operations.files import foreign_files, write_cluster_files
from gpufleet.gitops.plan import ClusterFiles, plan_files
from gpufleet.gitops.releases import Style
from gpufleet.gpu_stack.model import node_names
from gpufleet.gpu_stack.settings import ClusterSettings, load_cluster_settings
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.run.report_file import FileKind, print_lost, write_file
from gpufleet.verify.inventory import Target

FACTS_FILE = FileKind("a facts file of gpufleet", (b'"gpufleet_facts"',))
NO_FILES = ClusterFiles({}, ())
RENDER_EPILOG = (
    "Exit status: 0 every cluster is rendered; 1 one was blocked or is unreachable, and its files "
    "are unchanged; 2 usage error; 4 --limit matches nothing; 130 interrupted."
)


@click.command(epilog=RENDER_EPILOG)
@INVENTORY_ARGUMENT
@limit_option
@click.option("--output", metavar="DIR", help="Folder for the files; each cluster gets its own.")
@click.option(
    "--format",
    "style",
    type=click.Choice(get_args(Style)),
    default="values",
    show_default=True,
    help="values: the values of each chart; flux: HelmReleases; argocd: Applications.",
)
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
    if offline and save_facts:
        raise click.UsageError("--offline and --save-facts exclude each other.")
    saved = _read_saved(offline) if offline else None
    facts_path = prepare_output(save_facts, "--save-facts", FACTS_FILE)
    targets, chosen = choose_targets(inventory, limit)
    hosts = node_names(target.name for target in targets if NODES_GROUP in target.groups)
    clusters = [target for target in chosen if CLUSTERS in target.groups]
    folders = _folders(clusters)
    known: dict[str, ClusterFacts] = {}
    good = True
    for target in clusters:
        try:
            settings = _settings(target)
            cluster = _known(target.name, settings, offline, saved)
            known[target.name] = cluster.facts
            found = _plan(target.name, settings, cluster, hosts, style) if output else NO_FILES
        except ClusterProblem as problem:
            found = ClusterFiles({}, problem.findings)
        _show(target, found.findings)
        good = good and not any(finding.blocks for finding in found.findings)
        if found.files:
            good = _write(target.name, found, Path(output or "", folders[target.name])) and good
    if facts_path:
        good = write_file(facts_path, lambda: facts_text(known)) and good
    sys.exit(ExitStatus.CONVERGED if good else ExitStatus.FAILED)


def _read_saved(path: str) -> dict[str, ClusterFacts]:
    """The facts in a file. Raises click.UsageError."""
    try:
        return parse_facts(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        why = why if isinstance(error, OSError | FactsFileError) else "it is not text"
        raise click.UsageError(
            f"Cannot use --offline {one_line(path)}: {why}. "
            "Make it with `gpufleet render INVENTORY --save-facts FILE`."
        ) from error


def _folders(clusters: Sequence[Target]) -> dict[str, str]:
    """Cluster -> the name of its folder. Raises click.UsageError without a cluster, or if two would
    share a folder."""
    found = {each.name: re.sub(r"[^\w.-]+", "-", each.name).strip(".-") for each in clusters}
    if not found:
        raise click.UsageError("No cluster to render: the group gpu_cluster names clusters.")
    for name, folder in found.items():
        others = [each for each, other in found.items() if other == folder and each != name]
        if others or not folder:
            raise click.UsageError(f"{name} has no folder name of its own. Rename it.")
    return found


def _known(
    name: str, settings: ClusterSettings, offline: str | None, saved: dict[str, ClusterFacts] | None
) -> KnownCluster:
    """The cluster, read now or from the file. Raises ClusterProblem."""
    if saved is None:
        if not is_quiet():
            print_note(f"Reading {one_line(name)}")
        return read_known_cluster(name, settings)
    if name not in saved:
        raise ClusterProblem(NO_SAVED_FACTS(path=offline, name=name))
    return saved_cluster(saved[name])


def _settings(target: Target) -> ClusterSettings:
    """The settings of a cluster. Raises ClusterProblem."""
    settings, problems = load_cluster_settings(target.data)
    if settings is None:
        raise ClusterProblem(*problems)
    return settings


def _plan(
    name: str, settings: ClusterSettings, known: KnownCluster, hosts: Sequence[str], style: Style
) -> ClusterFiles:
    return plan_files(name, settings, known.facts, hosts, style, known.judge, date.today())


def _show(target: Target, findings: Sequence[Finding]) -> None:
    """Print the findings of a cluster, without accepted ones."""
    shown, _ = split_accepted(findings, accepted_of(target.data), date.today())
    console = result_console()
    for finding in by_severity(shown):
        if not (is_quiet() and finding.severity is Severity.INFO):
            print_finding(console, finding, [target.name])


def _write(name: str, found: ClusterFiles, folder: Path) -> bool:
    """Write the files of a cluster. Returns False if others' files or an error prevent it."""
    console = result_console()
    try:
        foreign = foreign_files(folder, found.files)
        for finding in foreign:
            print_finding(console, finding, [name])
        if foreign:
            return False
        changed = write_cluster_files(folder, found.files)
    except OSError as error:
        print_lost(error.filename or folder, error)
        return False
    if changed or not is_quiet():
        number = count_noun(len(found.files), "file")
        click.echo(f"{one_line(name)}: {number} in {one_line(str(folder))}, {changed} changed")
    return True
