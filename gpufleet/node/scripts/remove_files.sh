# remove_files.sh HOME all|listed [PATH SHA256]...: remove the files that gpufleet wrote: these, and with
# `all` every other one in HOME/written, which also has what they replaced. A file that they replaced is restored from HOME/backup.
# A file that was changed since stays: `changed PATH`. So does a repository key that a remaining source
# names: `needed PATH`.
home=$1 scope=$2; shift 2
tab=$(printf '\t')
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
while [ $# -gt 1 ]; do printf '%s\t\t%s\n' "$1" "$2"; shift 2; done >"$list"
if [ -e "$home/written" ]; then
    [ "$scope" = all ] || noted=$(awk -F"$tab" 'NR == FNR { wanted[$1]; next } $1 in wanted' "$list" "$home/written")
    [ "$scope" = listed ] || noted=$(cat "$home/written")
    printf '%s\n' "$noted" >>"$list"
fi

# put_back PATH TARGET SHA256: restore the copy with this content, with its mode and owner. It is
# stored under the name of TARGET, to which PATH, possibly a symbolic link, leads.
put_back() {
    for copy in "$home"/backup/*"$2" "$home"/backup/*"$1"; do
        [ "$(sha256sum "$copy" 2>/dev/null | cut -d' ' -f1)" = "$3" ] || continue
        cp -p "$copy" "$2.gpufleet-new" && mv -f "$2.gpufleet-new" "$2"
        return
    done
    return 1
}
# named PATH: whether a remaining source of apt, yum or dnf names the key at PATH
named() {
    grep -rqsF -e "$1" /etc/apt/sources.list /etc/apt/sources.list.d /etc/yum.repos.d /etc/zypp/repos.d
}
# keys last, after the sources that name them
{
    cut -f1 "$list" | sort -u | grep -vE '/(keyrings|rpm-gpg)/'
    cut -f1 "$list" | sort -u | grep -E '/(keyrings|rpm-gpg)/'
} | while IFS= read -r path; do
    case $path in "$home"/*) continue ;; esac
    now=$(sha256sum "$path" 2>/dev/null | cut -d' ' -f1)
    [ -n "$now" ] || continue
    if ! awk -F"$tab" -v path="$path" -v now="$now" '$1 == path && $3 == now { found = 1 } END { exit !found }' "$list"; then
        # already restored by an interrupted removal
        before=$(awk -F"$tab" -v path="$path" '$1 == path && $2 != "" { print $2; exit }' "$list")
        [ "$now" = "$before" ] || echo "changed $path"
        continue
    fi
    case $path in
        */keyrings/* | */rpm-gpg/*) if named "$path"; then echo "needed $path"; continue; fi ;;
    esac
    target=$(readlink -f "$path")
    before=$(awk -F"$tab" -v path="$path" '$1 == path && NF == 3 { print $2 }' "$home/written" 2>/dev/null | head -n 1)
    if [ -z "$before" ]; then rm -f "$target" || exit 1
    elif [ "$before" != "$now" ]; then put_back "$path" "$target" "$before" || exit 1
    fi
    case $path in
        *.service.d/gpufleet.conf)
            rmdir "${path%/*}" 2>/dev/null
            unit=${path%.d/gpufleet.conf}
            read_units "${unit##*/}" ;;
        /etc/systemd/system/gpufleet-*.service) read_units "${path##*/}" >/dev/null ;;
        /etc/containerd/certs.d/*) rmdir "${path%/*}" /etc/containerd/certs.d 2>/dev/null ;;
        */nvidia-container-runtime/* | */dcgm-exporter/* | /etc/cdi/*) rmdir "$(dirname "$path")" 2>/dev/null ;;
    esac
done || fail 'a file could not be removed'
exit 0
