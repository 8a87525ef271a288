# Shared by every script: plain POSIX sh, C locale, no questions; folders and files that all may read,
# whatever the login's umask: private files get their mode where they are created.
set -u
umask 022
LC_ALL=C DEBIAN_FRONTEND=noninteractive
# needrestart is apt's hook that restarts services of others, containerd among them; from Ubuntu 24.04 on without a
# question: https://discourse.ubuntu.com/t/needrestart-changes-in-ubuntu-24-04-service-restarts/44671 (2024-04)
NEEDRESTART_SUSPEND=gpufleet
export LC_ALL DEBIAN_FRONTEND NEEDRESTART_SUSPEND
PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
export PATH
has() { command -v "$1" >/dev/null 2>&1; }
# fail MESSAGE TEXT...: the message is ours; output of programs is quoted behind a bar
fail() {
    printf '%s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '%s\n' "$@" | sed '/^$/d; s/^/  | /' >&2
    [ "$(systemctl is-system-running 2>/dev/null)" != stopping ] || echo '  | gpufleet: the host is shutting down' >&2
    exit 1
}
# extra KEY WHAT TEXT: a part does not work that nothing else needs, and that the setting KEY leaves out
extra() { printf 'extra failed %s %s: %s\n' "$1" "$2" "$(printf '%s\n' "$3" | sed '/^$/d' | tail -n 1)"; }
# bounded BYTES SECONDS COMMAND...: no file that it writes has more bytes, and it ends in time or with status 124
bounded() {
    (
        trap '' XFSZ # a write fails instead
        ulimit -f $(($1 / 512))
        seconds=$2
        shift 2
        exec timeout -k 10 "$seconds" "$@"
    )
}
# beyond BYTES SECONDS STATUS OUTPUT: what a bounded command did too much, "" where that was not why it failed
beyond() {
    case $3,$4 in
        124,* | 137,*) echo "it was not done after $2 s, the longest wait for a repository" ;;
        *'File too large'*) echo "it sends more than $(($1 / 1048576)) MiB, the limit for a file of a repository" ;;
    esac
}
