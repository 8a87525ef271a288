# refresh_apt.sh BYTES SECONDS MESSAGE SWAPPED FILE...: refresh the package lists; those of FILE must all arrive, none
# larger or slower. SWAPPED: the message about a key that is not the trusted one.
most=$1 seconds=$2 message=$3 swapped=$4; shift 4
out=$(bounded "$most" "$seconds" apt-get update -q -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
for file; do
    out=$(bounded "$most" "$seconds" apt-get update -q -o Dir::Etc::sourcelist="$file" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
    rc=$?
    problem=$(refusals "$out")
    case $problem in *NO_PUBKEY*) fail "$swapped" "$problem" ;; esac
    if [ $rc -ne 0 ] || [ -n "$problem" ]; then fail "$message" "$problem" "$(beyond "$most" "$seconds" $rc "$out")"; fi
done
exit 0
