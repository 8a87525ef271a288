# note_begun.sh FILE NAME...: a transaction is about to install NAMEs. Added to what is there: the names
# of a run that was killed count as ours until one is recorded.
file=$1; shift
: >>"$file" || exit 1
[ $# -eq 0 ] || printf '%s\n' "$@" >>"$file"
