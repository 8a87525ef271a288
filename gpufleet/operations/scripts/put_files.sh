# put_files.sh ARCHIVE BACKUP PATH...: unpack ARCHIVE and move each PATH into its place, each in one
# step, with a copy of what was there before under BACKUP. `written` beside BACKUP's folder gets a line
# `PATH sha256-before sha256-after` for each, apart by tabs: what a removal goes by.
archive=$1 backup=$2; shift 2
staging=$archive.d written=${backup%/*/*}/written
digest() { sha256sum "$1" 2>/dev/null | cut -d' ' -f1; }
mkdir -m 700 -p "$staging" || exit 1
trap 'rm -rf "$staging" "$archive"' EXIT
tar -x -p -f "$archive" -C "$staging" || exit 1
for path; do
    target=$(readlink -f "$path" 2>/dev/null) || target=$path
    [ -n "$target" ] || target=$path
    mkdir -p "$(dirname "$target")" || exit 1
    if [ -e "$target" ]; then
        mkdir -p -m 700 "$backup$(dirname "$target")" || exit 1
        cp -p "$target" "$backup$target" || exit 1
    fi
    beside=$target.gpufleet-new
    cp -p "$staging$path" "$beside" && chown 0:0 "$beside" || exit 1
    if [ -e "$target" ]; then
        chown --reference="$target" "$beside" && chmod --reference="$target" "$beside" || exit 1
    fi
    printf '%s\t%s\t%s\n' "$path" "$(digest "$target")" "$(digest "$beside")" >>"$written" || exit 1
    mv -f "$beside" "$target" || exit 1
    if has restorecon; then restorecon "$target"; fi
done
exit 0
