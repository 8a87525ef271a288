# /etc/os-release, and $format: how packages are kept, rpm or dpkg. Parsed by identity.py.
like=
for path in /etc/os-release /usr/lib/os-release; do
    [ -r "$path" ] || continue
    while IFS= read -r text || [ -n "$text" ]; do
        printf '%s\n' "$text"
        case $text in ID=* | ID_LIKE=*) like="$like $text" ;; esac
    done <"$path"
    break
done
format=
for item in $words; do
    case $like in *"${item#*=}"*)
        format=${item%%=*}
        break
        ;;
    esac
done
[ "$format" ] || {
    have rpm && format=rpm
    have dpkg-query && format=dpkg
}
