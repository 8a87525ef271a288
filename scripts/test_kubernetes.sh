#!/usr/bin/env bash
# The cluster tests on one Kubernetes minor after the other; each is built the first time.
# KUBERNETES="1.30 1.24" takes a subset.
set -euo pipefail
cd "$(dirname "$0")/.."
known=$(python -c 'from gpufleet.sandbox.cluster.versions import versions; print(*versions().kubernetes.releases)')
failed=()
for minor in ${KUBERNETES:-$known}; do
    printf '\n== Kubernetes %s\n' "$minor"
    GPUFLEET_TEST_KUBERNETES=$minor pytest -q tests/cluster || failed+=("$minor")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed on: ${failed[*]}" >&2
    exit 1
fi
