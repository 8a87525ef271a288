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

apt=
log=
finish() { # apt is never left behind, whatever else fails
    [ -n "$apt" ] || return 0
    if ! wait "$apt"; then
        tail -n 20 "$log" >&2
        echo "The Debian packages could not be installed; the whole output is in $log." >&2
        exit 1
    fi
    rm -f "$log"
}
trap finish EXIT

if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    update="apt-get update -q"
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        echo "gpufleet's sandbox needs Debian packages that only root can install. Type this once:" >&2
        echo "  sudo apt-get update && sudo $install" >&2
        exit 1
    fi
    echo "Installing Debian packages: ${missing[*]}"
    log=$(mktemp)
    quiet="env DEBIAN_FRONTEND=noninteractive"
    { $as_root $update && $as_root $quiet $install; } >"$log" 2>&1 </dev/null & # beside pip
    apt=$!
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
uv() { "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }
echo "Installing Python packages into $venv"
# uv does not read pip's settings: where they name an index, pip keeps to it
if pip config list | grep -q index || ! pip install -c constraints.txt uv ||
    ! uv -c constraints.txt -e '.[test]' -e ./sandbox; then
    pip install -c constraints.txt -e '.[test]' -e ./sandbox
fi
trap - EXIT
finish
touch "$venv/.ready"
