# make_copy.sh FOLDER...: print the path of a new folder with copies of these, for in_copy.sh; root alone can read it.
# Those of ended runs, older than a day, are removed.
has unshare || fail 'the host has no unshare (util-linux)'
find /var/tmp -maxdepth 1 -name 'gpufleet-check.*' -mtime +0 -exec rm -rf {} +
copy=$(mktemp -d /var/tmp/gpufleet-check.XXXXXX 2>&1) || fail "$copy"
give_up() { rm -rf "$copy"; fail "$1"; }
for folder; do
    mkdir -p "$copy$folder" && cp -a "$folder/." "$copy$folder" || give_up "$folder could not be copied"
    printf '%s\n' "$folder" >>"$copy/folders"
done
# what is written behind a link would be written on the host
linked=$(find "$copy" -type l -exec test -d {} \; -print | head -n 1)
[ -z "$linked" ] || give_up "${linked#"$copy"} is a link to a folder"
if [ -d "$copy/etc/apt/apt.conf.d" ]; then # programs that apt runs after an update write elsewhere
    printf '#clear APT::Update::%s;\n' Post-Invoke Post-Invoke-Success >"$copy/etc/apt/apt.conf.d/zz-gpufleet-check"
fi
# shellcheck disable=SC2016 # $0 is for the inner shell
unshare --mount sh -c 'mount --make-rprivate / && mount --bind "$0" "$0"' "$copy" 2>/dev/null ||
    give_up 'the host does not allow mounts of a process of its own'
printf '%s\n' "$copy"
