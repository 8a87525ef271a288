# runtime_config.sh PATH STAGED SHA256 MODE BACKUP CHANGED INVALID [PARSER...]: put STAGED in the place
# of PATH, if PATH still has SHA256 ("": is not there) and the runtime's own PARSER accepts the new
# file ({path} stands for it). An empty STAGED takes PATH away. A copy of PATH goes to BACKUP.
path=$1 staged=$2 digest=$3 mode=$4 backup=$5 changed=$6 invalid=$7; shift 7
now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
[ "$now" = "$digest" ] || fail "$changed" "sha256 now: ${now:-no file}"
mkdir -p -m 700 "$(dirname "$backup")" || exit 1
target=$(readlink -f "$path")
if [ -e "$path" ]; then cp -p "$path" "$backup" || exit 1; fi
if [ -z "$staged" ]; then rm -f "$path"; exit; fi
mkdir -p "$(dirname "$target")" || exit 1
beside=$target.gpufleet-new
cp "$staged" "$beside" && rm -f "$staged" && chmod "$mode" "$beside" && chown 0:0 "$beside" || exit 1
if [ -e "$target" ]; then chown --reference="$target" "$beside" && chmod --reference="$target" "$beside" || exit 1; fi
if [ $# -gt 0 ]; then
    i=$#
    while [ "$i" -gt 0 ]; do
        word=$1; shift
        [ "$word" != '{path}' ] || word=$beside
        set -- "$@" "$word"
        i=$((i - 1))
    done
    if ! out=$("$@" 2>&1 >/dev/null); then
        rm -f "$beside"
        fail "$invalid" "$out"
    fi
fi
mv -f "$beside" "$target" || exit 1
if has restorecon; then restorecon "$target"; fi
exit 0
