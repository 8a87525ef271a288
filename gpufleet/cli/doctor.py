"""`gpufleet doctor`: the state of an inventory's hosts, and their problems."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line
from gpufleet.exporter.files import in_words
from gpufleet.facts.distribution import code_of
from gpufleet.facts.model import NodeFacts
from gpufleet.host.gather import Gathered, NoInventory, NoSuchHost, gather
from gpufleet.node.catalog import Catalog, load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.record import unusable
from gpufleet.node.settings import load_settings
from gpufleet.run.findings import NOT_A_HOST

_COLOURS = {"blocker": "red", "warning": "yellow", "info": "cyan"}


@click.command()
@click.argument("inventory")
@click.option(
    "--limit", multiple=True, metavar="HOST", help="Examine only this host or group; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def doctor(inventory: str, limit: tuple[str, ...], as_json: bool) -> None:
    """Show the state of the hosts of INVENTORY and their problems; changes nothing.

    Exit status: 0 every host responded, whatever was found; 1 a host did not respond; 2 usage
    error; 4 --limit matches nothing.
    """
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra_cli.exceptions import CliError

    try:
        hosts = gather(inventory, limit)
    except NoSuchHost as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(ExitStatus.NOTHING)
    except (NoInventory, PyinfraError, CliError) as error:
        raise click.UsageError(str(error)) from error
    catalog = load_catalog()
    described = {host.name: describe(host, catalog) for host in hosts}
    if as_json:
        click.echo(json.dumps(described, indent=2))
    else:
        console = Console(highlight=False)
        for name, parts in described.items():
            show(console, name, parts)
    answered = all(host.facts or host.cluster for host in hosts)
    sys.exit(ExitStatus.CONVERGED if answered else ExitStatus.FAILED)


def describe(host: Gathered, catalog: Catalog) -> dict[str, Any]:
    """A host as JSON types: one entry per topic, and `findings`. Without contents of files."""
    facts = host.facts
    if host.cluster:
        return {"findings": [NOT_A_HOST().as_dict()]}
    if facts is None:
        why = [host.problem] if host.problem else []
        return {"findings": [finding.as_dict() for finding in (*why, *host.misspelt)]}
    settings, problems = load_settings(host.data)
    findings: list[Finding] = problems
    if damaged := unusable(facts):
        findings += damaged
    elif settings:
        findings = list(plan_node(settings, facts, catalog, int(time.time())).all_findings)
    return {
        **_system(facts, catalog),
        **_driver(facts, catalog),
        **_work(facts),
        "metrics collected by": [in_words([daemon], catalog) for daemon in facts.collectors],
        "findings": [finding.as_dict() for finding in (*findings, *host.misspelt)],
    }


def _system(facts: NodeFacts, catalog: Catalog) -> dict[str, Any]:
    code = code_of(facts.os, catalog.distributions)
    kernel = f"{facts.kernel.release} {facts.kernel.architecture}"
    secure = {None: "not EFI", True: "on", False: "off"}[facts.kernel.secure_boot]
    return {
        "system": f"{facts.os.pretty_name} ({code}), {facts.package_manager}",
        "kernel": f"{kernel}, headers {'installed' if facts.kernel.headers else 'missing'}",
        "secure boot": secure,
    }


def _driver(facts: NodeFacts, catalog: Catalog) -> dict[str, Any]:
    on_disk = facts.module_on_disk
    return {
        "GPUs": [_gpu_name(gpu.device, catalog) + f" at {gpu.slot}" for gpu in facts.gpus],
        "NVSwitches": [switch.slot for switch in facts.nvswitches],
        "driver of the GPUs": sorted({gpu.driver or "none" for gpu in facts.gpus}),
        "module loaded": facts.loaded_driver,
        "module on disk": f"{on_disk.version} ({on_disk.flavour})" if on_disk else None,
        "library": facts.library,
        "DKMS": [
            " ".join(filter(None, (built.name, built.version, built.kernel, built.state)))
            for built in facts.dkms
        ],
        "packages": [
            f"{name} {package.version}" + (" (held)" if package.name in facts.holds else "")
            for name, package in sorted(facts.packages.items())
            if "nvidia" in name or name.startswith("cuda")
        ],
        "device nodes": list(facts.device_nodes),
    }


def _gpu_name(device: int, catalog: Catalog) -> str:
    gpu = catalog.gpu(device)
    return gpu.names[0] if gpu else f"unknown GPU 10de:{device:04x}"


def _work(facts: NodeFacts) -> dict[str, Any]:
    runtimes = [
        f"{runtime.name} {runtime.version} ({runtime.unit}, "
        f"{'running' if runtime.running else 'stopped'}, {runtime.containers} containers)"
        for runtime in facts.runtimes.values()
    ]
    return {
        "runtimes": runtimes,
        "processes on GPUs": [str(work) for work in facts.gpu_processes],
        "Kubernetes": f"kubelet, {facts.gpu_pods} GPU pods" if facts.kubelet else None,
        "package manager": facts.broken or facts.lock_holder or "free",
        "recorded by gpufleet": facts.provenance.exists,
    }


def show(console: Console, name: str, parts: dict[str, Any]) -> None:
    """Print the result of `describe` for one host."""
    console.print(Text(name, style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for topic, value in parts.items():
        if topic == "findings":
            continue
        lines = value if isinstance(value, list) else [_plain(value)]
        text = "\n".join(map(one_line, lines))
        table.add_row(Text(f"  {topic}", style="dim"), Text(text or "none"))
    if table.rows:
        console.print(table)
    for finding in parts["findings"]:
        console.print(
            Text(f"  {finding['code']} {finding['severity']}: ", _COLOURS[finding["severity"]])
            + Text(f"{finding['message']} {finding['remedy']}")
        )
    console.print()


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or "none"
