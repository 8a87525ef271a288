# refresh_rpm.sh BYTES SECONDS MESSAGE SWAPPED REPOSITORY...: refresh the metadata of these repositories; all must
# arrive, no file larger or slower. SWAPPED: the message about a key that is not the trusted one.
most=$1 seconds=$2 message=$3 swapped=$4; shift 4
for repository; do
    yum -q -y clean expire-cache --disablerepo='*' --enablerepo="$repository" >/dev/null 2>&1
    # with skip_if_unavailable, of the user or in /etc/dnf/dnf.conf, makecache succeeds whatever happens
    out=$(bounded "$most" "$seconds" yum -q -y makecache --setopt='*.skip_if_unavailable=False' \
        --disablerepo='*' --enablerepo="$repository" 2>&1)
    rc=$?
    if [ $rc -ne 0 ]; then
        case $out in
            *'signature could not be verified'* | *'Bad GPG signature'*) fail "$swapped" "$out" ;;
        esac
        fail "$message" "$out" "$(beyond "$most" "$seconds" $rc "$out")"
    fi
done
exit 0
