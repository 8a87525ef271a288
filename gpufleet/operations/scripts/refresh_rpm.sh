# refresh_rpm.sh MESSAGE SWAPPED REPOSITORY...: refresh the metadata of these repositories; all must arrive.
# SWAPPED tells of a key that is not the one trusted here.
message=$1 swapped=$2; shift 2
for repository; do
    yum -q -y clean expire-cache --disablerepo='*' --enablerepo="$repository" >/dev/null 2>&1
    if ! out=$(yum -q -y makecache --disablerepo='*' --enablerepo="$repository" 2>&1); then
        case $out in
            *'signature could not be verified'* | *'Bad GPG signature'*) fail "$swapped" "$out" ;;
        esac
        fail "$message" "$out"
    fi
done
exit 0
