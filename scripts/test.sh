#!/usr/bin/env bash
# test.sh fast|all [pytest's words]. fast: every rung's essence, on the newest Kubernetes, within ten
# minutes on two cores. all: every test, on the newest and the oldest, real DKMS builds too.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
export GOGC=400 # helm and the servers are short-lived: their garbage may wait
case $what in
fast) minors=(1.36) marks="not extended and not slow" ;;
all) minors=(1.36 1.18) marks="slow or not slow" ;;
*) echo "test.sh fast|all, not $what" >&2 && exit 2 ;;
esac
export GPUFLEET_TEST_KUBERNETES=${GPUFLEET_TEST_KUBERNETES:-${minors[*]}}

# The programs of clusters are fetched or built beside the other tests; those on clusters come last then.
mkdir -p build
words=()
for minor in $GPUFLEET_TEST_KUBERNETES; do words+=(--kubernetes "$minor"); done
words+=(--for-tests)
builder=
if ! gpufleet sandbox cluster build "${words[@]}" --check >build/programs.log; then
    echo "Fetching or building beside the tests (build/programs.log):" $(cat build/programs.log)
    gpufleet sandbox cluster build "${words[@]}" >build/programs.log 2>&1 &
    builder=$!
    trap 'if kill -0 $builder 2>/dev/null; then kill $builder; fi' EXIT
    export GPUFLEET_TEST_BUILDING=1
fi
python scripts/generate_docs.py --check
ruff check --quiet . && ruff format --quiet --check . && mypy
pytest -q -m "$marks" --numprocesses "${GPUFLEET_TEST_WORKERS:-4}" --dist loadfile --durations 10 "$@"
[ -z "$builder" ] || wait $builder || { tail -n 5 build/programs.log >&2 && exit 1; }
