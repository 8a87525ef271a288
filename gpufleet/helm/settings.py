"""Settings of the access to a cluster and of its charts: keys `cluster_*`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gpufleet.core.settings import RoleSettings, Url, must_match
from gpufleet.helm.chart_choice import load_charts


def _text_only(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"is a number ({value!r}); write versions in quotes")
    return value


def _known_charts(by_chart: dict[str, str]) -> dict[str, str]:
    known = load_charts().charts
    for name in by_chart:
        if name not in known:
            raise ValueError(f"names the chart {name!r}; known charts: {', '.join(known)}")
    return by_chart


def _no_login(value: str) -> str:
    if "@" in value.split("://")[1]:
        raise ValueError("must not contain a password; use cluster_chart_logins")
    return value.rstrip("/")


ChartVersion = Annotated[
    str,
    BeforeValidator(_text_only),
    must_match(r"v?[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*", "a version, such as v25.3.0 or 0.17.1"),
]
ChartVersions = Annotated[dict[str, ChartVersion], AfterValidator(_known_charts)]
ChartRepository = Annotated[
    str,
    must_match(
        r"(https?|oci)://[^\s'\"`$\\?#]+",
        "a URL of https, http or oci, such as oci://registry.example.com/charts",
    ),
    AfterValidator(_no_login),
]
ChartRepositories = Annotated[dict[str, ChartRepository], AfterValidator(_known_charts)]
Name = Annotated[
    str,
    must_match(
        r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        "a name in Kubernetes: at most 63 of a to z, 0 to 9 and -, which is neither first nor last",
    ),
]


class ClusterAccess(RoleSettings):
    """The cluster, and how its charts are chosen."""

    prefix = "cluster_"

    kubeconfig: str | None = Field(
        None, description="Path of the kubeconfig. Default: $KUBECONFIG, then ~/.kube/config."
    )
    context: str | None = Field(
        None, description="Context of the kubeconfig. Default: the current one."
    )
    uid: str | None = Field(
        None,
        description="UID of the namespace kube-system: no other cluster is changed, whatever the "
        "kubeconfig says.",
    )
    lock_timeout: int = Field(
        600,
        ge=0,
        le=7200,
        description="Seconds to wait while another run of gpufleet holds the lock of the cluster. "
        "The lock of a run that was killed expires after 60 s.",
    )
    charts: Literal["careful", "newest"] = Field(
        "careful",
        description="`careful`: versions that upstream documents for this Kubernetes and that were "
        "tested on it, if there are any. `newest`: the newest that its API accepts, with "
        "values that make it compatible.",
    )
    chart_versions: ChartVersions = Field(
        {}, description="Versions to use instead: chart -> version."
    )
    chart_dir: str | None = Field(
        None, description="Folder of chart archives, CHART-VERSION.tgz, instead of repositories."
    )
    chart_repository: ChartRepository | ChartRepositories | None = Field(
        None,
        description="Source of charts instead of upstream: the https:// URL of a repository, "
        "or oci://REGISTRY/FOLDER, which has each chart under its name. As a mapping, chart -> "
        "repository, only for those charts.",
    )
    chart_logins: str | None = Field(
        None,
        description="Path of a netrc file with credentials for repositories, readable only by its "
        "owner.",
    )
    chart_plain_http: bool = Field(
        False,
        description="Allow OCI registries without TLS and http:// repositories. Everyone on the "
        "network path can then change what is installed.",
    )
    stack: Literal["device-plugin", "gpu-operator"] = Field(
        "device-plugin",
        description="`device-plugin`: device plugin and exporter as separate releases. "
        "`gpu-operator`: NVIDIA's operator installs both.",
    )
    timeout: int = Field(
        600,
        ge=10,
        le=7200,
        description="Seconds to wait for a release to become ready. A call of helm, with its "
        "hooks, has 300 s in addition.",
    )
    helm: str | None = Field(
        None, description="Path of the helm program. Default: helm on PATH, else it is downloaded."
    )
    helm_url: Url | None = Field(
        None,
        description="URL of the folder to download helm from if it is missing. Default: the site "
        "of its project. The checksum is the same.",
    )
    force_conflicts: bool = Field(
        False, description="Overwrite fields that another manager changed (helm 4)."
    )
    allow_disruption: bool = Field(
        False,
        description="Let a removal take the device plugin or the GPU Operator away, and a run "
        "change how nodes share GPUs, while pods use them.",
    )
    adopt_releases: bool = Field(
        False,
        description="Take over releases under gpufleet's names that it did not create: their chart "
        "and values become those of the inventory.",
    )
