# apt_lists.sh FOLDER: `list SHA256 SIZE PATH URL BASE` for the signed release file and every index that apt has read,
# BASE the address of its archive. The indexes are copied into FOLDER, as text: apt may keep them compressed.
folder=$1 number=0
mkdir -p "$folder"
told=$folder/told
tell() { # FILE URL BASE
    number=$((number + 1))
    /usr/lib/apt/apt-helper cat-file "$1" >"$folder/$number" || exit 1
    sum=$(sha256sum "$folder/$number")
    printf 'list %s %s %s %s %s\n' "${sum%% *}" "$(stat -c %s "$folder/$number")" "$folder/$number" "$2" "$3" >>"$told"
}
: >"$told"
apt-get indextargets --format '$(FILENAME)|$(BASE_URI)|$(METAKEY)|$(REPO_URI)' | sort -u >"$folder/targets"
while IFS='|' read -r file base key repository; do
    [ -e "$file" ] || continue
    tell "$file" "$base$key" "$repository"
    prefix=${file%"$(printf '%s' "$key" | tr / _)"*}
    for name in InRelease Release Release.gpg; do
        if [ -e "$prefix$name" ] && ! grep -qF " $base$name " "$told"; then
            tell "$prefix$name" "$base$name" "$repository"
        fi
    done
done <"$folder/targets"
cat "$told"
