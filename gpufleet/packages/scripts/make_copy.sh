# make_copy.sh FOLDER...: print the path of a new folder with copies of these, for in_copy.sh; root alone can read it.
# Those of ended runs, older than a day, are removed.
has unshare || fail 'the host has no unshare (util-linux)'
find /var/tmp -maxdepth 1 -name 'gpufleet-check.*' -mtime +0 -exec rm -rf {} +
copy=$(mktemp -d /var/tmp/gpufleet-check.XXXXXX 2>&1) || fail "$copy"
for folder; do
    mkdir -p "$copy$folder" && cp -a "$folder/." "$copy$folder" || { rm -rf "$copy"; fail "$folder could not be copied"; }
    printf '%s\n' "$folder" >>"$copy/folders"
done
unshare --mount true || { rm -rf "$copy"; fail 'the host does not allow a mount namespace'; }
printf '%s\n' "$copy"
