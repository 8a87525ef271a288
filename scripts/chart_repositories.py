"""Whether this machine reaches the repositories of the charts that `make demo-cluster` installs.

    python -m scripts.chart_repositories

Prints each repository that it cannot reach and why; exit status 1 if there is one.
"""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterable

from gpufleet.helm.chart_choice import load_charts

DEMO_CHARTS = ("kube-prometheus-stack", "nvidia-device-plugin", "dcgm-exporter")
TIMEOUT_SECONDS = 10


def find_unreachable(repositories: Iterable[str]) -> list[str]:
    """Repositories whose index cannot be read, with the reason.

    Example: `https://charts.example: <urlopen error [Errno -2] Name or service not known>`
    """
    found = []
    for url in sorted(set(repositories)):
        try:
            with urllib.request.urlopen(f"{url}/index.yaml", timeout=TIMEOUT_SECONDS) as answer:
                answer.read(1)
        except OSError as error:
            found.append(f"{url}: {error}")
    return found


def main() -> int:
    charts = load_charts().charts
    unreachable = find_unreachable(charts[name].repository for name in DEMO_CHARTS)
    print("\n".join(unreachable))
    return 1 if unreachable else 0


if __name__ == "__main__":
    sys.exit(main())
