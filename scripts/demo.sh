#!/usr/bin/env bash
# The main job, on a sandbox of systemd hosts: provision, run again with no change, verify.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
export GPUFLEET_SANDBOX=demo
began=$SECONDS
step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

step "1/4 Six hosts and a package mirror"
gpufleet sandbox up --name demo ubuntu2204 ubuntu2404 debian12 el7 nogpu nvswitch

step "2/4 From bare machines to GPU nodes: pyinfra -y inventories/sandbox.py deploys/gpu_node.py"
GPUFLEET_REPORT=build/demo-first.json pyinfra -y inventories/sandbox.py deploys/gpu_node.py

step "3/4 The same again: every host must say \"no changes\""
GPUFLEET_REPORT=build/demo-second.json pyinfra -y inventories/sandbox.py deploys/gpu_node.py
python - build/demo-second.json <<'PY'
import json, sys
hosts = json.load(open(sys.argv[1]))["hosts"]
moved = [name for name, host in hosts.items() if host["changed"] or host["failed"]]
sys.exit(f"the second run changed {', '.join(moved)}" if moved or not hosts else 0)
PY

step "4/4 Verified by checks with code of their own: gpufleet verify"
gpufleet verify inventories/sandbox.py

printf '\nAll hosts converged, the second run changed nothing, verify is green: %d s.\n' \
    $((SECONDS - began))
printf 'The commands:              source .venv/bin/activate; export GPUFLEET_SANDBOX=demo\n'
printf 'Look at them:              gpufleet status inventories/sandbox.py\n'
printf 'The hosts are still there: gpufleet sandbox ssh --name demo ubuntu2204 nvidia-smi\n'
printf 'Take them away with:       gpufleet sandbox down --name demo\n'
