"""Settings of the way to a cluster and of its charts: keys `cluster_*`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gpufleet.core.settings import RoleSettings, Url, matching

CHARTS = (
    "kube-prometheus-stack",
    "node-feature-discovery",
    "nvidia-device-plugin",
    "dcgm-exporter",
    "prometheus-adapter",
    "node-problem-detector",
    "gpu-operator",
)


def _text_only(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"is a number ({value!r}); write versions in quotes")
    return value


def _known_charts(by_chart: dict[str, str]) -> dict[str, str]:
    for name in by_chart:
        if name not in CHARTS:
            raise ValueError(f"names the chart {name!r}; there are {', '.join(CHARTS)}")
    return by_chart


def _no_login(value: str) -> str:
    if "@" in value.split("://")[1]:
        raise ValueError("must not hold a password; cluster_chart_logins names a file for it")
    return value.rstrip("/")


ChartVersion = Annotated[
    str,
    BeforeValidator(_text_only),
    matching(r"v?[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*", "a version, such as v25.3.0 or 0.17.1"),
]
ChartVersions = Annotated[dict[str, ChartVersion], AfterValidator(_known_charts)]
ChartRepository = Annotated[
    str,
    matching(
        r"(https?|oci)://[^\s'\"`$\\?#]+",
        "a URL of https, http or oci, such as oci://registry.example.com/charts",
    ),
    AfterValidator(_no_login),
]
ChartRepositories = Annotated[dict[str, ChartRepository], AfterValidator(_known_charts)]
Name = Annotated[
    str,
    matching(
        r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        "a name in Kubernetes: at most 63 of a to z, 0 to 9 and -, which is neither first nor last",
    ),
]
Values = dict[str, Any]


class ClusterAccess(RoleSettings):
    """Which cluster, and how charts for it are chosen."""

    prefix = "cluster_"

    kubeconfig: str | None = Field(
        None, description="Path of the kubeconfig. Default: $KUBECONFIG, then ~/.kube/config."
    )
    context: str | None = Field(None, description="Context in it. Default: its current one.")
    uid: str | None = Field(
        None,
        description="uid of the namespace kube-system: no other cluster is touched, whatever the "
        "kubeconfig says.",
    )
    lock_timeout: int = Field(
        600,
        ge=0,
        le=7200,
        description="Seconds to wait for another run of gpufleet that is at work on the cluster. "
        "One that was killed without a trace is gone after 30.",
    )
    charts: Literal["careful", "newest"] = Field(
        "careful",
        description="`careful`: the versions that upstream documents for this Kubernetes and that "
        "were tried on it. `newest`: the newest that its API takes, with values that make it fit.",
    )
    chart_versions: ChartVersions = Field(
        {}, description="Versions that you want instead: chart -> version."
    )
    chart_dir: str | None = Field(
        None, description="Folder of chart archives, CHART-VERSION.tgz, instead of repositories."
    )
    chart_repository: ChartRepository | ChartRepositories | None = Field(
        None,
        description="Where charts come from instead of upstream: the https:// URL of a repository, "
        "or oci://REGISTRY/FOLDER, which has each chart under its name. As a mapping, chart -> "
        "repository, for those charts alone.",
    )
    chart_logins: str | None = Field(
        None,
        description="Path of a file with names and passwords for repositories, in netrc's form, "
        "readable by its owner alone.",
    )
    chart_plain_http: bool = Field(
        False,
        description="Talk to OCI registries without TLS, and take http:// repositories, where "
        "yours have none: whoever is between can change what is installed.",
    )
    stack: Literal["device-plugin", "gpu-operator"] = Field(
        "device-plugin",
        description="`device-plugin`: device plugin and exporter as releases of their own. "
        "`gpu-operator`: NVIDIA's operator brings both.",
    )
    timeout: int = Field(
        600, ge=10, le=7200, description="Seconds to wait until a release is ready."
    )
    helm: str | None = Field(
        None, description="Path of the helm program. Default: the one on PATH, else it is fetched."
    )
    helm_url: Url | None = Field(
        None,
        description="Folder from which helm is fetched where it is missing. Default: the site of "
        "its project. The checksum is the same.",
    )
    force_conflicts: bool = Field(
        False, description="Take back fields that another manager changed (helm 4)."
    )
    adopt_releases: bool = Field(
        False,
        description="Take over releases of our names and charts that something else made, although "
        "values of theirs get lost.",
    )
