"""`gpufleet catalog node-problems`: the GPU checks for the user's own Node Problem Detector."""

from __future__ import annotations

import click

from gpufleet.core.yaml_text import yaml_text
from gpufleet.monitoring.node_problems import load_node_problems, monitor_files


@click.command("node-problems")
@click.option("--name", default="gpu-monitor", show_default=True, help="Name of the ConfigMap.")
@click.option(
    "--namespace", default="kube-system", show_default=True, help="Namespace of the ConfigMap."
)
def node_problems(name: str, namespace: str) -> None:
    """Print a ConfigMap with the GPU monitor and its scripts."""
    catalog = load_node_problems()
    about = {"name": name, "namespace": namespace}
    files = monitor_files(catalog)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": files}
    click.echo(f"# mounted at {catalog.folder}; the node's root at {catalog.host}, read-only, and")
    click.echo(f"# --config.custom-plugin-monitor={catalog.folder}/{catalog.monitor}.json")
    click.echo(yaml_text(body), nl=False)
