"""Findings about charts, their sources, and Kubernetes versions."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

CHART_DOES_NOT_FIT = blocker(
    "GF801",
    "Chart version does not support the cluster",
    "{chart} {version} cannot be installed on Kubernetes {minor}: {error}.",
    "{last} is the newest that can: remove the version from cluster_chart_versions or pin that "
    "one{way}.",
)
CHART_MADE_TO_FIT = warning(
    "GF802",
    "Unsupported fields disabled",
    "{chart} {version} is installed with the fields that Kubernetes {minor} does not support "
    "disabled: {error}.",
    'Set cluster_charts = "careful" for a version that needs no such change.',
)
CHART_UNTESTED = warning(
    "GF803",
    "Chart version outside its documented range, or newer than the catalog",
    "{chart} {version} is {why}.",
    "It may work: try it on a test cluster first (gpufleet sandbox cluster up). cluster_charts = "
    '"careful" stays inside the documented range where possible.',
    description="Upstream documents this version of the chart for other minors of Kubernetes, or "
    "the catalog does not have it yet.",
)
UNKNOWN_KUBERNETES = warning(
    "GF805",
    "Kubernetes version not in the catalog",
    "Kubernetes {minor} is outside the catalog's range, {first} to {last}.",
    "Chart versions for {nearest} were selected; try them on a test cluster first, or update "
    "gpufleet.",
)
KUBERNETES_ENDED = info(
    "GF806",
    "Kubernetes version is end of life",
    "Kubernetes {minor} has had no upstream fixes since {date}.",
    "Plan an upgrade of the cluster, unless its provider still supports this version (EKS: "
    "extended support).",
)
VERSION_NOT_OFFERED = blocker(
    "GF810",
    "Chart version not in the repository",
    "{source} has no {chart} {version}: {offers}.",
    "Upload that version (helm push, or the archive and a new index), pin an available version in "
    "cluster_chart_versions, or set cluster_chart_repository to another repository.",
)
LOGIN_REFUSED = blocker(
    "GF811",
    "Chart repository rejected the login",
    "{source} denied access to {chart} {version}: {error}.",
    "Write `machine {host} login USER password PASSWORD` to a file with mode 0600 and set "
    "cluster_chart_logins to it; {had}.",
)
DIGEST_WRONG = blocker(
    "GF812",
    "Checksum mismatch",
    "Checksum mismatch for {what} from {source}: {error}. It was not used.",
    "If it is your mirror or repository, upload the right archive, and regenerate the index of "
    "charts (helm repo index). Otherwise find out what modifies downloads in transit.",
)
