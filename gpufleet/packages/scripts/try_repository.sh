# try_repository.sh BYTES SECONDS MANAGER MESSAGE NAME FOLDER SOURCE KEYRING: read the metadata of one repository, at
# most so much of a file and so long. When that fails, the files are put back to what FOLDER holds, or taken away where it has none of them.
most=$1 seconds=$2 manager=$3 message=$4 name=$5 folder=$6; shift 6
if [ "$manager" = apt ]; then
    out=$(bounded "$most" "$seconds" apt-get update -q -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
    rc=$?
    # apt exits 0 when a repository cannot be reached: its words decide
    # where the distribution keeps its keys is no problem of the repository
    problem=$(printf '%s\n' "$out" | grep -E '^(E:|W:|Err:)' | grep -v 'stored in legacy trusted.gpg')
else
    # metadata that was had by the old address or key does not count
    yum -q -y clean metadata --disablerepo='*' --enablerepo="$name" >/dev/null 2>&1
    problem=''
    out=$(bounded "$most" "$seconds" yum -q -y makecache --disablerepo='*' --enablerepo="$name" 2>&1)
    rc=$?
fi
[ $rc -eq 0 ] || problem="$out (exit status $rc)"
if [ -n "$problem" ]; then
    for path; do
        if [ -e "$folder$path" ]; then cp -p "$folder$path" "$path"; else rm -f "$path"; fi
    done
    rm -rf "$folder"
    fail "$message" "$problem" "$(beyond "$most" "$seconds" $rc "$out")"
fi
rm -rf "$folder"
