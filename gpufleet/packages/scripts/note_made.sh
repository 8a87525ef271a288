# note_made.sh HOME PATH SHA256: PATH had SHA256 ("": did not exist) before a transaction. If the
# packages created or changed it themselves, add it to HOME/written: it is removed with them. A file
# that was changed before is not noted, so that it stays.
home=$1 path=$2 before=$3
now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
[ -n "$now" ] && [ "$now" != "$before" ] || exit 0
tab=$(printf '\t')
if [ -z "$before" ] || grep -qsF "$path$tab" "$home/written" && grep -qsF "$tab$before" "$home/written"; then
    printf '%s\t%s\t%s\n' "$path" "$before" "$now" >>"$home/written"
fi
exit 0
