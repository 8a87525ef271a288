# Shared by the scripts that hold and release packages.
# version_locks NAME...: the entries of the lists of yum's and dnf's versionlock that lock these very packages, and
# no other whose name begins or ends like theirs. yum 3 writes epoch:name-version-release.arch, dnf
# name-epoch:version-release.arch; in the list of dnf 5 an entry is the name. Excludes (!) are the user's.
version_locks() {
    {
        sed -n 's/^[[:space:]]*locklist[[:space:]]*=[[:space:]]*//p' \
            /etc/yum/pluginconf.d/versionlock.conf /etc/dnf/plugins/versionlock.conf 2>/dev/null | sed 's/^file://'
        printf '%s\n' /etc/yum/pluginconf.d/versionlock.list /etc/dnf/plugins/versionlock.list /etc/dnf/versionlock.toml
    } | sort -u | while IFS= read -r list; do
        [ ! -r "$list" ] || awk -v names=" $* " '
            function ours(name) { return index(names, " " name " ") > 0 }
            /^[ \t]*name[ \t]*=/ {
                gsub(/^[^=]*=[ \t]*["\047]|["\047].*$/, "")
                if (ours($0)) print
                next
            }
            /^[ \t]*[^#! \t]/ {
                name = $1
                sub(/^[0-9]+:/, "", name)
                if (sub(/-[^-]+-[^-]+$/, "", name) && ours(name)) print $1
            }' "$list"
    done
}
