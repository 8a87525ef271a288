#!/usr/bin/env bash
# Create or destroy the cluster of a CI job.
# GPUFLEET_COMMAND: create or destroy. GPUFLEET_INVENTORY, or GPUFLEET_HOSTS_JSON with the hosts as JSON (a CI
# service may print it: no passwords), or GPUFLEET_HOSTS, a file with them.
# GPUFLEET_WORK: folder for the kubeconfig and the reports cluster.json and cluster.xml.
set -euo pipefail
umask 077 # the hosts' data may have passwords
work=${GPUFLEET_WORK:-$PWD/gpufleet}
mkdir -p "$work"
export GPUFLEET_KUBECONFIG=${GPUFLEET_KUBECONFIG:-$work/kubeconfig}
inventory=${GPUFLEET_INVENTORY:-}
if [ -z "$inventory" ]; then
    if [ -n "${GPUFLEET_HOSTS_JSON:-}" ]; then
        export GPUFLEET_HOSTS=$work/hosts.json
        printf '%s\n' "$GPUFLEET_HOSTS_JSON" >"$GPUFLEET_HOSTS"
    fi
    [ -n "${GPUFLEET_HOSTS:-}" ] || { echo "set an inventory, or the hosts as JSON" >&2 && exit 2; }
    inventory=$(dirname "$0")/../inventories/hosts_json.py
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf 'kubeconfig=%s\njunit=%s\n' "$GPUFLEET_KUBECONFIG" "$work/cluster.xml" >>"$GITHUB_OUTPUT"
fi
case ${GPUFLEET_COMMAND:-create} in
create) exec gpufleet cluster create "$inventory" --yes --json "$work/cluster.json" --junit "$work/cluster.xml" ;;
destroy) exec gpufleet cluster destroy "$inventory" --yes --ignore-gpu-pods --json "$work/destroyed.json" ;;
*) echo "create or destroy, not $GPUFLEET_COMMAND" >&2 && exit 2 ;;
esac
