#!/usr/bin/env bash
# The driver of four real nodes is changed under work: the canary fails and is rolled back, the second try
# goes through. No request is lost, the training goes on from its checkpoint.
set -euo pipefail
cd "$(dirname "$0")/.."
export GPUFLEET_SANDBOX=demo-upgrade GPUFLEET_CHARTS=build/charts GPUFLEET_DEMO=build/demo-upgrade
export CANARY=ubuntu2404-2 TARGET=595.91.07
export XDG_STATE_HOME=$PWD/$GPUFLEET_DEMO # the records of the two runs
inventory=inventories/sandbox_upgrade.py
began=$SECONDS
step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
kubectl() { gpufleet sandbox ssh ubuntu2404 kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
demo() { python -m scripts.demo_upgrade "$@"; }
upgrade() { # upgrade STATUS: the upgrade must end with it
    local status=0
    gpufleet upgrade "$inventory" --to "$TARGET" --yes || status=$?
    if [ "$status" -ne "$1" ]; then
        echo "gpufleet upgrade ended with status $status instead of $1" >&2
        exit 1
    fi
}
end() { # the requests, and what else runs beside
    for job in $(jobs -p); do kill "$job"; done
    wait
}
trap end EXIT

step "1/7 Four hosts become a Kubernetes cluster with GPUs"
gpufleet sandbox down --name demo-upgrade
rm -rf "$GPUFLEET_DEMO"
mkdir -p "$GPUFLEET_DEMO"
python -m tests.cluster.fake_charts "$GPUFLEET_CHARTS"
gpufleet sandbox cluster up --real --sandbox demo-upgrade --nodes 4

step "2/7 Work: a training with checkpoints, inference with a disruption budget (scripts/demo_upgrade_work)"
image=$(python -c 'from gpufleet_sandbox.kubernetes.images import GPU_PROBE; print(GPU_PROBE)')
work() { sed "s|IMAGE|$image|; s|CANARY|$CANARY|" "scripts/demo_upgrade_work/$1.yaml" | kubectl apply -f -; }
work training
kubectl wait pod --selector app=training --for condition=Ready --timeout 5m
work inference
kubectl rollout status deployment/inference --timeout 5m
demo note before
kubectl get pods -o wide

step "3/7 Requests to the inference, through every node, until the end"
addresses=$(kubectl get nodes -o "jsonpath='{.items[*].status.addresses[?(@.type==\"InternalIP\")].address}'")
# shellcheck disable=SC2086
python -m scripts.demo_upgrade requests $addresses & # no function: a signal must reach it

step "4/7 The plan: gpufleet upgrade $inventory --to $TARGET --plan"
gpufleet upgrade "$inventory" --to "$TARGET" --plan

step "5/7 First try: on the canary $CANARY the new driver cannot be built"
gpufleet sandbox fault "$CANARY" dkms-failure on
python -m scripts.demo_upgrade driver-works &
works=$!
upgrade 1
wait "$works"
demo note between
gpufleet upgrade status "$inventory"

step "6/7 Second try"
upgrade 0
demo note after
gpufleet upgrade status "$inventory"
kubectl get pods -o wide

step "7/7 What was seen"
end
demo report
printf '\nThe driver of every node was changed under work: %d s.\n' $((SECONDS - began))
printf 'The logs:                 %s/gpufleet/upgrades\n' "$GPUFLEET_DEMO"
printf 'The nodes are still there: gpufleet sandbox ssh --name demo-upgrade ubuntu2404 nvidia-smi\n'
printf 'Take them away with:       gpufleet sandbox down --name demo-upgrade\n'
