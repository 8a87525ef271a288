# try_repository.sh BYTES SECONDS MANAGER MESSAGE SPOILT NAME FOLDER SOURCE KEYRING: read the metadata of one repository,
# within BYTES per file and SECONDS, then all sources of apt together. On failure, restore the files from FOLDER, or
# remove those that it lacks. SPOILT: the message if apt cannot read its sources any more.
most=$1 seconds=$2 manager=$3 message=$4 spoilt=$5 name=$6 folder=$7; shift 7
restore() {
    for path; do
        if [ -e "$folder$path" ]; then cp -p "$folder$path" "$path"; else rm -f "$path"; fi
    done
    rm -rf "$folder"
}
if [ "$manager" = apt ]; then
    out=$(bounded "$most" "$seconds" apt-get update -q -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
    rc=$?
    problem=$(refusals "$out")
else
    # metadata from the old address or key does not count
    yum -q -y clean metadata --disablerepo='*' --enablerepo="$name" >/dev/null 2>&1
    problem=''
    # with skip_if_unavailable, of the user or in /etc/dnf/dnf.conf, makecache succeeds whatever happens
    out=$(bounded "$most" "$seconds" yum -q -y makecache --setopt='*.skip_if_unavailable=False' \
        --disablerepo='*' --enablerepo="$name" 2>&1)
    rc=$?
fi
[ $rc -eq 0 ] || problem="$out (exit status $rc)"
if [ -n "$problem" ]; then
    restore "$@"
    fail "$message" "$problem" "$(beyond "$most" "$seconds" $rc "$out")"
fi
problem=''
[ "$manager" != apt ] || problem=$(unreadable)
if [ -n "$problem" ]; then
    restore "$@"
    fail "$spoilt" "$problem"
fi
rm -rf "$folder"
