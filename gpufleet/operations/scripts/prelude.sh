# Shared by every script: plain POSIX sh, C locale, no questions; folders and files that all may read,
# whatever the login's umask: what nobody else may read says so where it is made.
set -u
umask 022
LC_ALL=C DEBIAN_FRONTEND=noninteractive
export LC_ALL DEBIAN_FRONTEND
PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
has() { command -v "$1" >/dev/null 2>&1; }
# fail MESSAGE TEXT...: the message is ours; what programs said stands behind a bar
fail() {
    printf '%s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/  | /' >&2
    exit 1
}
