#!/usr/bin/env bash
# setup.sh VENV: the Debian packages that the sandbox needs, a virtual environment, the Python
# packages at the versions of constraints.txt. Safe to repeat.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

mapfile -t wanted < <(grep -v '^#' scripts/debian-packages.txt)
missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || missing+=("$package")
done
python=$(command -v python3)
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "gpufleet needs Python 3.10 or newer; $python is $("$python" --version)." >&2
    exit 1
}

debian_packages() { # into $log: one waits for the network where the other computes
    { $as_root apt-get update -q && DEBIAN_FRONTEND=noninteractive $as_root $install; } >"$log" 2>&1
}

if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif sudo -n true 2>/dev/null; then
        as_root="sudo"
    else
        echo "gpufleet's sandbox needs Debian packages that only root can install. Type this once:" >&2
        echo "  sudo apt-get update && sudo $install" >&2
        exit 1
    fi
    echo "Installing Debian packages: ${missing[*]}"
    log=$(mktemp)
    debian_packages &
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@" -c constraints.txt; }
echo "Installing Python packages into $venv"
pip install uv
if ! "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -c constraints.txt -e '.[test]'; then
    echo "uv could not install them, so pip does, with its own settings"
    pip install -e '.[test]'
fi

if [ ${#missing[@]} -gt 0 ]; then
    wait $! || {
        tail -n 20 "$log" >&2
        echo "The Debian packages could not be installed; the whole output is in $log." >&2
        exit 1
    }
    rm -f "$log"
fi
touch "$venv/.ready"
