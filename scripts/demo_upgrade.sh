#!/usr/bin/env bash
# The driver of three hosts at work is changed: the canary's module is not built, it is rolled back; then it goes through.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/demo-upgrade
export GPUFLEET_SANDBOX=demo-upgrade XDG_STATE_HOME=$PWD/build/demo-upgrade/state
rm -rf "$XDG_STATE_HOME"
old=580.159.03 new=580.178.04 canary=ubuntu2204 last=ubuntu2204-3
inventory=build/demo-upgrade/inventory.py
began=$SECONDS
step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
on() { gpufleet sandbox ssh --name demo-upgrade "$@"; }
fault() { gpufleet sandbox fault --name demo-upgrade "$@"; }

step "1/4 Three hosts with driver $old, a training job on the last one"
gpufleet sandbox up --name demo-upgrade ubuntu2204 --copies 3
cat >$inventory <<END
from gpufleet_sandbox.inventory import group_data, nodes

gpu_nodes = (
    nodes("demo-upgrade"),
    {**group_data(), "driver_branch": "580", "driver_version": "$old", "upgrade_soak": 5, "upgrade_max_unavailable": 2,
     "upgrade_wave": "100%"},
)
END
pyinfra -y $inventory deploys/gpu_node.py >build/demo-upgrade/install.log 2>&1
fault $last gpu-busy on

step "2/4 The plan: gpufleet upgrade $inventory --to $new --plan"
gpufleet upgrade $inventory --to $new --plan

step "3/4 The module cannot be built on the canary: it is rolled back, no other host is begun"
fault $canary dkms-failure on
repair() { # the fault is gone when the roll-back begins
    until grep -qs 'change failed' "$XDG_STATE_HOME"/gpufleet/upgrades/*/record.jsonl; do sleep 0.2; done
    fault $canary dkms-failure off
}
repair &
if gpufleet upgrade $inventory --to $new --yes; then echo "the canary did not fail"; exit 1; fi
wait
gpufleet upgrade status
[ "$(on $canary cat /sys/module/nvidia/version)" = $old ]

step "4/4 The second attempt goes through; the job on $last is waited for"
finish() {
    until gpufleet upgrade status | grep -qE "^$last +draining"; do sleep 1; done
    on $last systemctl is-active gpu-job
    fault $last gpu-busy off
}
finish &
gpufleet upgrade $inventory --to $new --yes
wait
gpufleet upgrade status
for host in $canary ubuntu2204-2 $last; do [ "$(on $host cat /sys/module/nvidia/version)" = $new ]; done

printf '\nThree hosts have %s, no job was ended: %d s.\n' $new $((SECONDS - began))
printf 'Take them away with: gpufleet sandbox down --name demo-upgrade\n'
