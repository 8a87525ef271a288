# in_copy.sh COPY COMMAND...: run a command that finds the folders of COPY, which make_copy.sh made, in the place of
# the host's, and empty caches; packages that are downloaded already are there. Other processes see nothing of it.
# The first mount keeps what follows in this namespace: util-linux before 2.27 does not.
exec unshare --mount sh -c '
    copy=$1; shift
    over() { mount --bind "$1" "$2" || exit 125; }
    mount --make-rprivate / || exit 125
    while read -r folder; do over "$copy$folder" "$folder"; done <"$copy/folders"
    for cache in /var/cache/apt /var/cache/yum /var/cache/dnf /var/cache/libdnf5; do
        [ -d "$cache" ] || continue
        mkdir -p "$copy$cache/archives/partial"
        [ ! -d "$cache/archives" ] || over "$cache/archives" "$copy$cache/archives"
        mount --rbind "$copy$cache" "$cache" || exit 125
    done
    exec "$@"
' in_copy "$@"
