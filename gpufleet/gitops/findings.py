"""Findings about files for a GitOps repository."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

SECRET_IN_FILE = blocker(
    "GF981",
    "Secret in a rendered file",
    "{what} would hold a secret in {keys}. Everyone who reads the repository could read it.",
    "Put it into a Secret of the cluster, name that Secret in the values of the chart "
    "(existingSecret, secretKeyRef), and remove the secret from the inventory.",
)
NO_CHART_SOURCE = blocker(
    "GF982",
    "Chart is only on this machine",
    "Flux and Argo CD cannot read chart {chart} from {location} (cluster_chart_dir).",
    "Push the charts to a registry or repository (`gpufleet bundle push` does), and set "
    "cluster_chart_repository instead. Or render plain values: --format values.",
)
FILE_OF_OTHERS = blocker(
    "GF983",
    "File not written by gpufleet",
    "{path} has no mark of gpufleet render, which would overwrite it.",
    "Move it out of that folder, or render into another one.",
)
FILE_NOT_WRITTEN = blocker(
    "GF987",
    "File could not be written",
    "Cannot write {path}: {why}. The files of this cluster are incomplete.",
    "Free space or correct the place, then run again.",
)
SECRET_NEEDED = info(
    "GF984",
    "Secret to create in the cluster",
    "{user} reads the Secret {secret}, which needs {keys}. Rendered files contain no Secrets.",
    "Create it in the cluster, with a sealed or external secret or with kubectl, before the files "
    "are applied.",
)
NODES_TO_LABEL = warning(
    "GF985",
    "Nodes need labels",
    "{keys} needs labels of nodes, and a repository has no file for nodes. To set: {nodes}.",
    "kubectl label --overwrite node NODE LABELS, with the labels in brackets; LABEL- removes one.",
)
NO_SAVED_FACTS = blocker(
    "GF986",
    "No facts of the cluster",
    "{path} has no facts of {name}.",
    "Write the file again where the cluster can be reached: `gpufleet render INVENTORY "
    "--save-facts FILE`.",
)
