# refresh_rpm.sh MESSAGE REPOSITORY...: refresh the metadata of these repositories; all must arrive.
message=$1; shift
for repository; do
    yum -q -y clean expire-cache --disablerepo='*' --enablerepo="$repository" >/dev/null 2>&1
    if ! out=$(yum -q -y makecache --disablerepo='*' --enablerepo="$repository" 2>&1); then
        fail "$message" "$out"
    fi
done
exit 0
