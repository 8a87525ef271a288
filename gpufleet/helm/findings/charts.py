"""Findings about charts, where they come from, and Kubernetes versions."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CHART_DOES_NOT_FIT = Kind(
    "GF801",
    Severity.BLOCKER,
    "A chart does not fit the cluster",
    "{chart} {version} cannot be installed on Kubernetes {minor}: {error}.",
    "{last} is the last that fits there: remove the version from cluster_chart_versions or pin "
    "that one{way}.",
)
CHART_MADE_TO_FIT = Kind(
    "GF802",
    Severity.WARNING,
    "A chart is made to fit",
    "{chart} {version} goes on Kubernetes {minor} without what that does not know: {error}.",
    'Set cluster_charts = "careful" for a version that fits as it is.',
)
CHART_UNDOCUMENTED = Kind(
    "GF803",
    Severity.WARNING,
    "A chart is outside what upstream documents",
    "{chart} {version} is documented for Kubernetes {documented}, not for {minor}.",
    'Its API may take it all the same; cluster_charts = "careful" stays inside where it can.',
)
CHART_UNKNOWN = Kind(
    "GF804",
    Severity.WARNING,
    "A chart is newer than the catalog",
    "{chart} {version} is newer than {newest}, the newest that the catalog knows.",
    "Try it on a test cluster first: gpufleet sandbox cluster up.",
)
UNKNOWN_KUBERNETES = Kind(
    "GF805",
    Severity.WARNING,
    "The catalog does not know this Kubernetes",
    "Kubernetes {minor} is outside {first} to {last}, which the catalog knows.",
    "What fits {nearest} is chosen; try it on a test cluster first, or update gpufleet.",
)
KUBERNETES_ENDED = Kind(
    "GF806",
    Severity.INFO,
    "Kubernetes is at its end of life",
    "Kubernetes {minor} has had no fixes since {date}.",
    "Upgrade the cluster when its owners can; the charts chosen here still fit it.",
)
VERSION_NOT_OFFERED = Kind(
    "GF810",
    Severity.BLOCKER,
    "The repository does not have the chart",
    "{source} has no {chart} {version}: {offers}.",
    "Put that version there (helm push, or the archive and a new index), pin one that is there in "
    "cluster_chart_versions, or name another place in cluster_chart_repository.",
)
LOGIN_REFUSED = Kind(
    "GF811",
    Severity.BLOCKER,
    "The repository wants another login",
    "{source} refuses to give {chart} {version}: {error}.",
    "Put `machine {host} login USER password PASSWORD` into a file of mode 0600 and name it with "
    "cluster_chart_logins; {had}.",
)
DIGEST_WRONG = Kind(
    "GF812",
    Severity.BLOCKER,
    "A chart is not what its repository announces",
    "The archive of {chart} {version} from {source} is another than announced: {error}. It was "
    "not used.",
    "Make the repository's index anew (helm repo index), or push the chart again. Where it is not "
    "yours, find out who changes downloads on the way.",
)
INDEX_BROKEN = Kind(
    "GF813",
    Severity.BLOCKER,
    "There is no chart repository",
    "What is at {url} is no index of a chart repository: {reason}.",
    "See that the URL is that of the folder with index.yaml, and that no login page answers there.",
)
LOGIN_FILE = Kind(
    "GF814",
    Severity.BLOCKER,
    "The file with logins cannot be used",
    "{path}, which cluster_chart_logins names, cannot be used: {reason}.",
    "It has lines `machine HOST login USER password PASSWORD`; then chmod 600 {path}",
)
PLAIN_HTTP = Kind(
    "GF815",
    Severity.BLOCKER,
    "The registry has no TLS",
    "{source} answers without TLS; {chart} {version} was not fetched.",
    "Give the registry a certificate. Inside a network that you trust: "
    "cluster_chart_plain_http = True.",
)
