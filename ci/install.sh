#!/usr/bin/env bash
# Install gpufleet into a virtual environment of the job, unless it is there.
# GPUFLEET_PACKAGE: what pip installs, by default this checkout. GPUFLEET_VENV: where, by default beside the work folder.
set -euo pipefail
command -v gpufleet >/dev/null && exit 0
venv=${GPUFLEET_VENV:-${RUNNER_TEMP:-${CI_PROJECT_DIR:-$PWD}}/gpufleet-venv}
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "${GPUFLEET_PACKAGE:-$(dirname "$0")/..}"
if [ -n "${GITHUB_PATH:-}" ]; then echo "$venv/bin" >>"$GITHUB_PATH"; fi
