# rpm_closure.sh FOLDER MANAGER GONE WORD...: download into FOLDER what WORD... needs on this host if it had none of the
# packages GONE: `package SHA256 SIZE PATH - -`. `metadata` lines: what the cache has of the repositories. `Repo-` lines:
# their addresses. `error TEXT` if the manager refuses. rpm's database is a copy: keys are imported into it alone. Only for
# packages/in_copy.sh: other processes do not see its mounts.
folder=$1 manager=$2 gone=$3; shift 3
set -f # the names in $gone are no patterns
mkdir -p "$folder/packages"
real=$(rpm --eval '%_dbpath')
cp -a "$real" "$folder/rpmdb" && mount --bind "$folder/rpmdb" "$real" || { echo 'error rpm has no copy of its database'; exit 0; }
for name in $gone; do
    ! rpm -q "$name" >/dev/null 2>&1 || rpm -e --justdb --nodeps --allmatches "$name" >/dev/null 2>&1
done
out=$("$manager" -y --disableplugin=versionlock --downloadonly --downloaddir="$folder/packages" install "$@" 2>&1)
status=$?
umount "$real"
rm -rf "$folder/rpmdb"
if [ $status -ne 0 ] && ! printf '%s\n' "$out" | grep -q 'exiting because "Download Only" specified'; then
    why=$(printf '%s\n' "$out" | grep -A 4 -i '^error\|^ problem' | head -n 5)
    printf 'error %s\n' "$(printf '%s\n' "${why:-$out}" | tail -n 5 | tr '\n' ' ')"
    exit 0
fi
add_line() { # WORD FILE
    sum=$(sha256sum "$2")
    printf '%s %s %s %s - -\n' "$1" "${sum%% *}" "$(stat -c %s "$2")" "$2"
}
find "$folder/packages" -type f -name '*.rpm' | sort | while read -r file; do add_line package "$file"; done
find /var/cache/dnf /var/cache/yum /var/cache/libdnf5 -type f -path '*/repodata/*' 2>/dev/null | sort |
    while read -r file; do add_line metadata "$file"; done
"$manager" -q repolist -v 2>/dev/null | grep '^Repo-\(id\|baseurl\)'
exit 0
