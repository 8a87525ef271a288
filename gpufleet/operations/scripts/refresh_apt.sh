# refresh_apt.sh MESSAGE SWAPPED FILE...: refresh the package lists; those of FILE must all arrive. SWAPPED
# tells of a key that is not the one trusted here.
message=$1 swapped=$2; shift 2
out=$(apt-get update -q -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
for file; do
    out=$(apt-get update -q -o Dir::Etc::sourcelist="$file" -o Dir::Etc::sourceparts=- \
        -o APT::Get::List-Cleanup=0 -o Acquire::Retries=2 -o Acquire::http::Timeout=60 2>&1)
    rc=$?
    # apt exits 0 when a repository cannot be reached: its words decide
    problem=$(printf '%s\n' "$out" | grep -E '^(E:|W:|Err:)')
    case $problem in *NO_PUBKEY*) fail "$swapped" "$problem" ;; esac
    if [ $rc -ne 0 ] || [ -n "$problem" ]; then fail "$message" "$problem"; fi
done
exit 0
