# apt_closure.sh FOLDER GONE WORD...: the lines of apt-get --print-uris for what WORD... needs on this host if it had
# none of the packages GONE; `error TEXT` if apt refuses. Nothing counts as downloaded.
folder=$1 gone=$2; shift 2
mkdir -p "$folder/archives/partial"
awk -v gone=" $gone " 'BEGIN { RS = ""; ORS = "\n\n" } index(gone, " " $2 " ") == 0' /var/lib/dpkg/status >"$folder/status"
out=$(apt-get -q -y --print-uris --no-install-recommends -o Dir::State::status="$folder/status" \
    -o Dir::Cache::archives="$folder/archives" -o Acquire::ForceHash=SHA256 install "$@" 2>&1)
status=$?
printf '%s\n' "$out" | grep "^'"
[ $status -ne 0 ] || exit 0
why=$(printf '%s\n' "$out" | grep '^E:\| : ' | head -n 5)
printf 'error %s\n' "$(printf '%s\n' "${why:-$out}" | tail -n 5 | tr '\n' ' ')"
exit 0
