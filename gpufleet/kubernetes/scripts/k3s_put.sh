# k3s_put.sh MESSAGE SHA256 TARGET MODE PART [URL]: a file of k3s' release in its place, whole or not at all. It is in
# PART, or is fetched to it from URL; PART is removed in any case.
message=$1 wanted=$2 target=$3 mode=$4 part=$5 url=${6:-}
trap 'rm -f "$part"' EXIT
if [ -n "$url" ]; then
    if has curl; then
        out=$(curl -fsSL --retry 2 -o "$part" "$url" 2>&1) || fail "$message" "$out"
    elif has wget; then
        out=$(wget -q -O "$part" "$url" 2>&1) || fail "$message" "wget: status $?" "$out"
    else
        fail "$message" 'neither curl nor wget is installed'
    fi
fi
found=$(sha256sum "$part" | cut -d ' ' -f 1)
[ "$found" = "$wanted" ] || fail "$message" "its sha256 is $found, expected $wanted"
out=$( (mkdir -p "${target%/*}" && chmod "$mode" "$part" && mv -f "$part" "$target") 2>&1) || fail "$message" "$out"
