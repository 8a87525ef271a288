#!/usr/bin/env bash
# image.sh PYTHON [BUILD OPTIONS]: the container image of the controller, from a wheel of this checkout.
# IMAGE: its name, by default localhost/gpufleet:VERSION. Needs podman or docker.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
engine=$(command -v podman || command -v docker) || {
    echo "An image needs podman or docker, and neither is on the PATH." >&2
    exit 1
}
rm -f dist/gpufleet-*.whl
"$python" -m build --no-isolation --wheel --outdir dist . >/dev/null
version=$("$python" -c 'import gpufleet; print(gpufleet.__version__)')
image=${IMAGE:-localhost/gpufleet:$version}
"$engine" build --tag "$image" --file Containerfile "$@" .
echo "Built $image"
