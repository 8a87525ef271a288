# apt_lists.sh FOLDER: `list SHA256 SIZE PATH URL BASE` for the signed release file and every index that apt has read, as
# its archive has them: apt asks for the compressed files that the release file lists, by name or by digest. BASE: the
# address of the archive. The files are in FOLDER.
folder=$1 number=0
mkdir -p "$folder"
lines=$folder/lines
: >"$lines"
next() { number=$((number + 1)); copy=$folder/$number; }
add_line() { # URL...: of the file $copy
    sum=$(sha256sum "$copy")
    for url; do
        printf 'list %s %s %s %s %s\n' "${sum%% *}" "$(stat -c %s "$copy")" "$copy" "$url" "$repository" >>"$lines"
    done
}
indexes() { # RELEASE KEY BASE: the files of an index that the release file lists
    by_hash=$(grep -ci '^Acquire-By-Hash: *yes' "$1")
    awk -v key="$2" '/^[^ ]/ { seen = ($1 == "SHA256:") }
        seen && ($3 == key || index($3, key ".") == 1) { print $1, $3 }' "$1" >"$folder/listed"
    while read -r wanted listed; do
        next
        hashed=$3${listed%"${listed##*/}"}by-hash/SHA256/$wanted
        for url in "$3$listed" "$hashed"; do
            [ ! -e "$copy" ] || continue
            /usr/lib/apt/apt-helper download-file "$url" "$copy" "SHA256:$wanted" >/dev/null 2>&1 || rm -f "$copy"
        done
        [ -e "$copy" ] || continue
        if [ "$by_hash" -gt 0 ]; then add_line "$3$listed" "$hashed"; else add_line "$3$listed"; fi
    done <"$folder/listed"
}
apt-get indextargets --format '$(FILENAME)|$(BASE_URI)|$(METAKEY)|$(REPO_URI)' | sort -u >"$folder/targets"
while IFS='|' read -r file base key repository; do
    [ -e "$file" ] || continue
    prefix=${file%"$(printf '%s' "$key" | tr / _)"*}
    for name in InRelease Release Release.gpg; do
        [ -e "$prefix$name" ] || continue
        [ "$name" = Release.gpg ] || indexes "$prefix$name" "$key" "$base"
        if ! grep -qF " $base$name " "$lines"; then next; cp "$prefix$name" "$copy"; add_line "$base$name"; fi
    done
done <"$folder/targets"
cat "$lines"
