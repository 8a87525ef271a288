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
builder='' lint=''
stop() { # what is still at work beside the tests
    if [ -n "$builder" ] && kill -0 "$builder" 2>/dev/null; then kill -- "-$builder"; fi
    if [ -n "$lint" ] && kill -0 "$lint" 2>/dev/null; then kill "$lint"; fi
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
# beside the tests: it has one thread, they have many; what mypy knows is the same in every clone
lint() { ruff check . && ruff format --check . && codespell && exec mypy; }
MYPY_CACHE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/gpufleet/mypy lint >build/lint.log 2>&1 &
lint=$!
pytest -q -m "$marks" --numprocesses "${GPUFLEET_TEST_WORKERS:-5}" --dist loadfile --durations 10 "$@"
wait "$lint" || { cat build/lint.log >&2 && exit 1; }
[ -z "$builder" ] || wait "$builder" || { tail -n 5 build/programs.log >&2 && exit 1; }
