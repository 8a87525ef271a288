# k3s_put.sh MESSAGE SHA256 TARGET MODE PART [URL BYTES SECONDS]: a file of k3s' release in its place, whole or not at
# all. It is in PART, or is fetched to it from URL within BYTES and SECONDS; PART is removed in any case.
message=$1 wanted=$2 target=$3 mode=$4 part=$5 url=${6:-} most=${7:-0} seconds=${8:-0} new=''
trap 'rm -f "$part" ${new:+"$new"}' EXIT
if [ -n "$url" ]; then
    if has curl; then
        out=$(bounded "$most" "$seconds" curl -fsSL --connect-timeout 20 --retry 2 -o "$part" "$url" 2>&1)
    elif has wget; then
        out=$(bounded "$most" "$seconds" wget -q -T 60 -t 3 -O "$part" "$url" 2>&1)
    else
        fail "$message" 'neither curl nor wget is installed'
    fi
    case $? in
        0) ;;
        124 | 137) fail "$message" "it was not done after $seconds s, the longest wait for a file of k3s" ;;
        *)
            if [ -e "$part" ] && [ "$(wc -c <"$part")" -ge "$most" ]; then
                fail "$message" "it has more than $((most / 1048576)) MiB, the limit for a file of k3s"
            fi
            fail "$message" "the download failed" "$out"
            ;;
    esac
fi
found=$(sha256sum "$part" | cut -d ' ' -f 1)
[ "$found" = "$wanted" ] || fail "$message" "its sha256 is $found, expected $wanted"
# PART may be on another filesystem, where mv would write the target bit by bit
folder=${target%/*}
out=$(mkdir -p "$folder" 2>&1) || fail "$message" "$out"
new=$(mktemp "$folder/.gpufleet.XXXXXX" 2>&1) || { out=$new new=''; fail "$message" "$out"; }
out=$( (cp "$part" "$new" && chmod "$mode" "$new" && mv -f "$new" "$target") 2>&1) || fail "$message" "$out"
