# note_begun.sh FILE NAME...: a transaction is about to install NAMEs. Appends: the names of a killed run
# count as ours until a run is recorded.
file=$1; shift
: >>"$file" || exit 1
[ $# -eq 0 ] || printf '%s\n' "$@" >>"$file"
