#!/usr/bin/env bash
# A GPU stack on a real control plane with simulated nodes: deployed, run again with no change, checked.
# GPUFLEET_CHARTS: a folder of the real charts' archives. Without it the charts come from their repositories; where
# these cannot be reached, fakes are built.
# KUBERNETES: the minor, 1.36 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
export GPUFLEET_CLUSTER=demo
kubernetes=${KUBERNETES:-1.36}
began=$SECONDS
step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

step "1/4 Kubernetes $kubernetes: real servers, three simulated nodes with 8 GPUs each"
gpufleet sandbox cluster up --name demo --kubernetes "$kubernetes"
if [ -z "${GPUFLEET_CHARTS:-}" ]; then
    if unreachable=$(python -m scripts.chart_repositories); then
        charts="the real ones, from their repositories"
    else
        export GPUFLEET_CHARTS=build/charts
        python -m tests.cluster.fake_charts "$GPUFLEET_CHARTS"
        charts="fakes, in $GPUFLEET_CHARTS. GPUFLEET_CHARTS names a folder of the real ones. Not reached: $unreachable"
    fi
else
    charts="archives in $GPUFLEET_CHARTS"
fi
echo "Charts: $charts"

step "2/4 From a bare cluster to a GPU cluster: pyinfra -y inventories/cluster.py deploys/gpu_cluster.py"
GPUFLEET_REPORT=build/demo-cluster-first.json pyinfra -y inventories/cluster.py deploys/gpu_cluster.py

step "3/4 The same again: it must say \"no changes\""
second=$(date +%s%N)
GPUFLEET_REPORT=build/demo-cluster-second.json pyinfra -y inventories/cluster.py deploys/gpu_cluster.py
milliseconds=$((($(date +%s%N) - second) / 1000000))
python - build/demo-cluster-second.json <<'PY'
import json, sys
(cluster,) = json.load(open(sys.argv[1]))["hosts"].values()
if cluster["changed"] or cluster["failed"]:
    sys.exit("the second run changed something")
PY

step "4/4 Checked by code that shares nothing with the deploy: gpufleet verify"
# no pod of Prometheus runs on a simulated node: it answers nothing
gpufleet verify inventories/cluster.py -k "not prometheus_answers"

printf '\nThe stack is there, the second run changed nothing in %d ms, the checks are green: %d s.\n' \
    "$milliseconds" $((SECONDS - began))
printf 'Charts: %s\n' "$charts"
printf 'Pods are simulated by kwok: what needs a kubelet was skipped above, with the reason. The check that Prometheus\n'
printf 'answers was left out.\n'
printf 'Take it away:     gpufleet sandbox cluster down --name demo\n'
