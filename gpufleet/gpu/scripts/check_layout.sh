# check_layout.sh MESSAGE FILE: compare MIG and ECC of each GPU of FILE with what nvidia-smi lists.
message=$1 file=$2 wrong=''
smi() { timeout -k 10 60 nvidia-smi "$@" 2>/dev/null </dev/null; }
listed=$(smi -L)
sorted() { sort -rV | tr '\n' ','; }
differs() { [ "$2" = "$3" ] || wrong="$wrong$slot: $1 is ${3:-nothing}, not ${2:-nothing}
"; }
value() { smi -i "$gpu" --query-gpu="$1" --format=csv,noheader | sed '/^WARNING: /d'; }
while read -r slot words; do
    case $slot in '' | '#'*) continue ;; esac
    gpu=$(smi --query-gpu=index,pci.bus_id --format=csv,noheader |
        awk -F', ' -v slot="$slot" 'tolower(substr($2, length($2) - 11)) == slot { print $1 }')
    if [ -z "$gpu" ]; then differs 'the GPU of nvidia-smi' there ''; continue; fi
    there=$(printf '%s\n' "$listed" |
        awk -v gpu="GPU $gpu:" '/^GPU / { on = index($0, gpu) == 1 } on && /^ +MIG / { print $2 }' | sorted)
    # words have no spaces: splitting is meant
    # shellcheck disable=SC2086
    for word in $words; do
        case $word in
            mig=off) differs 'MIG device' '' "$there"; differs 'MIG mode' Disabled "$(value mig.mode.current | sed 's/^\[N\/A\]$/Disabled/')" ;;
            mig=*) differs 'MIG device' "$(printf '%s\n' "${word#mig=}" | tr ',' '\n' | sorted)" "$there" ;;
            ecc=1) differs ECC Enabled "$(value ecc.mode.current)" ;;
            ecc=0) differs ECC Disabled "$(value ecc.mode.current)" ;;
        esac
    done
done <"$file"
[ -z "$wrong" ] || fail "$message" "$wrong"
exit 0
