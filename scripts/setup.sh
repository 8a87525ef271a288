#!/usr/bin/env bash
# setup.sh VENV: a virtual environment with the Python packages at the versions of constraints.txt.
# Safe to repeat. Needs neither root nor Debian: setup_sandbox.sh installs what the sandbox needs.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

python=$(command -v python3) || {
    echo "gpufleet needs Python 3.10 or newer, and there is no python3 on the PATH." >&2
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "gpufleet needs Python 3.10 or newer; $python is $("$python" --version)." >&2
    exit 1
}

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
uv() { "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }
echo "Installing Python packages into $venv"
# uv does not read pip's settings: where they name an index, pip keeps to it
if pip config list | grep -q index || ! pip install -c constraints.txt uv ||
    ! uv -c constraints.txt -e '.[test]' -e ./sandbox; then
    pip install -c constraints.txt -e '.[test]' -e ./sandbox
fi
touch "$venv/.ready"
