#!/usr/bin/env bash
# test.sh fast|all [PYTEST ARGS]. fast: not `extended`, not `slow`, on Kubernetes 1.36 (docs/explanation/testing.md has
# its time). all: every test, on Kubernetes 1.36 and 1.18, with real DKMS builds.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
export GOGC=400 # less garbage collection in helm and the servers: memory is not the limit
case $what in
fast) minors=(1.36) marks="not extended and not slow and not gpu" ;;
all) minors=(1.36 1.18) marks="(slow or not slow) and not gpu" ;; # conftest skips slow tests unless -m names them
*) echo "test.sh fast|all, not $what" >&2 && exit 2 ;;
esac
export GPUFLEET_TEST_KUBERNETES=${GPUFLEET_TEST_KUBERNETES:-${minors[*]}}

mkdir -p build
words=(--for-tests)
[ "$what" = fast ] || words+=(--real --stack --kubernetes 1.32) # the older minor of tests/hosts/test_kubeadm.py
for minor in $GPUFLEET_TEST_KUBERNETES; do words+=(--kubernetes "$minor"); done
builder='' types=''
stop() { # what is still at work beside the tests
    if [ -n "$builder" ] && kill -0 "$builder" 2>/dev/null; then kill -- "-$builder"; fi
    if [ -n "$types" ] && kill -0 "$types" 2>/dev/null; then kill "$types"; fi
}
trap stop EXIT
if ! gpufleet sandbox cluster build "${words[@]}" --check >build/missing; then
    [ -s build/missing ] || exit 1 # its own error is on the screen
    echo "Fetching or building beside the tests (build/programs.log):" $(cat build/missing)
    set -m # a process group of its own
    gpufleet sandbox cluster build "${words[@]}" >build/programs.log 2>&1 &
    builder=$!
    set +m
    export GPUFLEET_TEST_BUILDING=1
fi
python -m scripts.generate_docs --check
ruff check --quiet .
ruff format --quiet --check .
codespell
# it has one thread, the tests have many; what it knows of the modules is the same in every clone
MYPY_CACHE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/gpufleet/mypy mypy >build/mypy.log 2>&1 &
types=$!
pytest -q -m "$marks" --numprocesses "${GPUFLEET_TEST_WORKERS:-5}" --dist loadfile --durations 10 "$@"
wait "$types" || { cat build/mypy.log >&2 && exit 1; }
[ -z "$builder" ] || wait "$builder" || { tail -n 5 build/programs.log >&2 && exit 1; }
