# exporter_image.sh MESSAGE LIST IMAGE: pull IMAGE if docker lacks it. LIST has the pulled images: a
# removal removes them.
message=$1 list=$2 image=$3
if docker image inspect "$image" >/dev/null 2>&1; then exit 0; fi
mkdir -p -m 700 "$(dirname "$list")" || exit 1
printf '%s\n' "$image" >>"$list" || exit 1 # first, so that a pull that is killed is known
if ! out=$(docker pull "$image" 2>&1); then
    # an image loaded by hand after this is not gpufleet's
    grep -vxF "$image" "$list" >"$list.new"
    mv "$list.new" "$list"
    fail "$message" "$(printf '%s\n' "$out" | tail -n 5)"
fi
exit 0
