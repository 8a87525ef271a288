# put_files.sh ARCHIVE BACKUP PATH...: unpack ARCHIVE and move each PATH into its place, each in one
# step, with a copy of the previous file under BACKUP. `written` next to BACKUP's folder gets a line
# `PATH sha256-before sha256-after` for each, separated by tabs, for the removal.
archive=$1 backup=$2; shift 2
staging=$archive.d written=${backup%/*/*}/written
digest() { sha256sum "$1" 2>/dev/null | cut -d' ' -f1; }
mkdir -m 700 -p "$staging" || exit 1
new=$staging/none
trap 'rm -rf "$staging" "$archive" "$new"' EXIT
tar -x -p -f "$archive" -C "$staging" || exit 1
for path; do
    mkdir -p "$(dirname "$path")" || exit 1
    target=$(readlink -f "$path") && [ -n "$target" ] || fail "$path leads nowhere"
    mkdir -p "$(dirname "$target")" || exit 1
    if [ -e "$target" ]; then
        mkdir -p -m 700 "$backup$(dirname "$target")" || exit 1
        cp -p "$target" "$backup$target" || exit 1
    fi
    new=$target.gpufleet-new
    # private until it has its owner and mode
    rm -f "$new" && (umask 077 && cat "$staging$path" >"$new") || exit 1
    like=$staging$path
    if [ -e "$target" ]; then like=$target; fi
    chown --reference="$like" "$new" || exit 1
    case $(stat -c %a "$staging$path") in *00) like=$staging$path ;; esac # a secret, whatever was there
    chmod --reference="$like" "$new" || exit 1
    printf '%s\t%s\t%s\n' "$path" "$(digest "$target")" "$(digest "$new")" >>"$written" || exit 1
    mv -f "$new" "$target" || exit 1
    if has restorecon; then restorecon "$target"; fi
done
exit 0
