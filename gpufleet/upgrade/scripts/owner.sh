# Shared by the scripts that use the folder of a run. The first line of FOLDER/state is the state of the host's change,
# the second is the run that the folder belongs to; without the file it belongs to none.
state_of() { sed -n 1p "$1/state" 2>/dev/null; }
run_of() { sed -n 2p "$1/state" 2>/dev/null; }
# mark FOLDER STATE RUN: one rename, so that no kill leaves the state of one run beside the name of another
mark() {
    printf '%s\n%s\n' "$2" "$3" >"$1/state.new" && mv "$1/state.new" "$1/state" || exit 1
}
# own FOLDER RUN OTHER: fail with OTHER unless the folder is the run's
own() {
    if [ "$(run_of "$1")" = "$2" ]; then return; fi
    there=$(run_of "$1")
    fail "$3" "run: ${there:-none}" "state: $(state_of "$1")"
}
