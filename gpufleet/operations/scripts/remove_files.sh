# remove_files.sh HOME [PATH SHA256]...: take away what gpufleet wrote: these files, and those that
# HOME/written names. Where another file was in the place, it is put back from HOME/backup.
# What somebody changed since stays: `changed PATH`.
home=$1; shift
tab=$(printf '\t')
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
while [ $# -gt 1 ]; do printf '%s\t\t%s\n' "$1" "$2"; shift 2; done >"$list"
[ ! -e "$home/written" ] || cat "$home/written" >>"$list"

# put_back PATH SHA256: the copy with this content takes its place again, with its own mode and owner
put_back() {
    for copy in "$home"/backup/*"$1"; do
        [ "$(sha256sum "$copy" 2>/dev/null | cut -d' ' -f1)" = "$2" ] || continue
        cp -p "$copy" "$1.gpufleet-new" && mv -f "$1.gpufleet-new" "$1"
        return
    done
    return 1
}

cut -f1 "$list" | sort -u | while IFS= read -r path; do
    case $path in "$home"/*) continue ;; esac
    now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
    [ -n "$now" ] || continue
    if ! awk -F"$tab" -v path="$path" -v now="$now" '$1 == path && $3 == now { found = 1 } END { exit !found }' "$list"; then
        # put back already, by a removal that was stopped later
        before=$(awk -F"$tab" -v path="$path" '$1 == path && $2 != "" { print $2; exit }' "$list")
        [ "$now" = "$before" ] || echo "changed $path"
        continue
    fi
    before=$(awk -F"$tab" -v path="$path" '$1 == path && NF == 3 { print $2 }' "$home/written" 2>/dev/null | head -n 1)
    if [ -z "$before" ]; then rm -f "$path" || exit 1
    elif [ "$before" != "$now" ]; then put_back "$path" "$before" || exit 1
    fi
    case $path in
        *.service.d/gpufleet.conf)
            rmdir "$(dirname "$path")" 2>/dev/null
            systemctl daemon-reload ;;
        /etc/systemd/system/gpufleet-*.service) systemctl daemon-reload ;;
        */nvidia-container-runtime/* | */dcgm-exporter/*) rmdir "$(dirname "$path")" 2>/dev/null ;;
    esac
done || fail 'a file could not be removed'
exit 0
