# runtime_config.sh PATH STAGED SHA256 MODE BACKUP CHANGED INVALID IGNORED NOTE NOTED EXPECTED N READER... PARSER...:
# replace PATH by STAGED if PATH still has SHA256 ("": does not exist) and the runtime's own PARSER
# accepts the new file ({path} is its path). An empty STAGED removes PATH. A copy of PATH goes to BACKUP.
# READER, N words, then prints the effective configuration: if no line matches EXPECTED, PATH is restored.
# NOTE already says that PATH is changed: if it is not, NOTE is restored from NOTED (no NOTED: removed).
path=$1 staged=$2 digest=$3 mode=$4 backup=$5 changed=$6 invalid=$7 ignored=$8; shift 8
note=$1 noted=$2 expected=$3 words=$4; shift 4
refuse() {
    if [ -z "$note" ]; then fail "$@"; fi
    if [ -e "$noted" ]; then cp -p "$noted" "$note"; else rm -f "$note"; fi
    fail "$@"
}
now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
[ "$now" = "$digest" ] || refuse "$changed" "sha256 now: ${now:-no file}"
mkdir -p -m 700 "$(dirname "$backup")" || exit 1
if [ -e "$path" ]; then cp -p "$path" "$backup" || exit 1; fi
mkdir -p "$(dirname "$path")" || exit 1
target=$(readlink -f "$path") && [ -n "$target" ] || refuse "$changed" "$path leads nowhere"
if [ -z "$staged" ]; then rm -f "$target"; exit; fi
mkdir -p "$(dirname "$target")" || exit 1
beside=$target.gpufleet-new
trap 'rm -f "$beside"' EXIT
# unreadable for others until it has its owner and mode
rm -f "$beside" && (umask 077 && cat "$staged" >"$beside") && rm -f "$staged" || exit 1
if [ -e "$target" ]; then
    chown --reference="$target" "$beside" && chmod --reference="$target" "$beside" || exit 1
else
    chown 0:0 "$beside" && chmod "$mode" "$beside" || exit 1
fi
read_back() { # WORD...: whether the first $words of them print what is expected
    [ -n "$expected" ] || return 0
    left=$(($# - words)) i=$#
    while [ "$i" -gt 0 ]; do # the first words to the end, the others away
        word=$1; shift
        [ "$i" -le "$left" ] || set -- "$@" "$word"
        i=$((i - 1))
    done
    out=$("$@" 2>&1)
    printf '%s\n' "$out" | grep -qE "$expected"
}
accepted() { # WORD...: whether the words after the first $words accept the new file
    shift "$words"
    [ $# -gt 0 ] || return 0
    i=$#
    while [ "$i" -gt 0 ]; do
        word=$1; shift
        [ "$word" != '{path}' ] || word=$beside
        set -- "$@" "$word"
        i=$((i - 1))
    done
    out=$("$@" 2>&1 >/dev/null)
}
accepted "$@" || refuse "$invalid" "$out"
mv -f "$beside" "$target" || exit 1
if has restorecon; then restorecon "$target"; fi
if ! read_back "$@"; then
    if [ -e "$backup" ]; then cp -p "$backup" "$target"; else rm -f "$target"; fi
    refuse "$ignored" "$(printf '%s\n' "$out" | grep -iE 'error|warn|fail|level=' | tail -n 3)"
fi
exit 0
