# keep.sh FOLDER RUN FROM MESSAGE MANAGER SECONDS NAME=VERSION...: fetch the installed packages into FOLDER, for a
# roll-back without a repository, and note the health of this host. What RUN has fetched stays.
folder=$1 run=$2 from=$3 message=$4 manager=$5 seconds=$6; shift 6
spare=65536 # KiB that stay free
whole() { [ -e "$1/sums" ] && (cd "$1/packages" && sha256sum -c --status ../sums); }
if [ "$(cat "$folder/run" 2>/dev/null)" = "$run" ] && whole "$folder"; then exit 0; fi
new=$folder.new
rm -rf "$new" && mkdir -p -m 700 "$new/packages" && cd "$new/packages" || exit 1
names=$(for word; do printf '%s\n' "${word%%=*}"; done)
# needed WORD...: KiB of the packages: those that apt would fetch, else those that are installed, which are larger
needed() {
    if [ "$manager" = apt ]; then
        fetched=$(apt-get download -q --print-uris "$@" 2>/dev/null | awk -v count=$# \
            '$3 ~ /^[0-9]+$/ { sum += $3; n++ } END { if (n == count) print int(sum / 1024) + 1 }')
        if [ -n "$fetched" ]; then printf '%s\n' "$fetched"; return; fi
        # shellcheck disable=SC2086
        dpkg-query -W -f '${Installed-Size}\n' $names 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'
    else
        # shellcheck disable=SC2086
        rpm -q --qf '%{SIZE}\n' $names 2>/dev/null | awk '{ sum += $1 } END { print int(sum / 1024) }'
    fi
}
if [ $# -eq 0 ]; then wanted=0; else wanted=$(needed "$@"); fi
free=$(df -Pk "$new" | awk 'NR == 2 { print $4 }')
if [ "${free:-0}" -lt $((wanted + spare)) ]; then
    rm -rf "$new"
    fail "$message" "free: $((${free:-0} / 1024)) MiB" "needed: $(((wanted + spare) / 1024 + 1)) MiB"
fi
# package names have no spaces: splitting is meant
# shellcheck disable=SC2086
if [ $# -eq 0 ]; then
    there='' # nothing is installed by the run: its host's health alone is noted
elif [ "$manager" = apt ]; then
    out=$(apt-get download -q "$@" 2>&1)
    for word; do # one that the repository does not have any more
        name=${word%%=*} version=$(printf '%s' "${word#*=}" | sed 's/:/%3a/')
        for file in /var/cache/apt/archives/"${name}_${version}"_*.deb; do
            if [ -e "$file" ] && [ ! -e "${file##*/}" ]; then cp "$file" . || exit 1; fi
        done
    done
    there=$(for file in *.deb; do dpkg-deb -W --showformat='${Package}=${Version}\n' "$file"; done 2>/dev/null)
else
    out=$("$manager" -y --disableplugin=versionlock reinstall --downloadonly --downloaddir="$new/packages" $names 2>&1)
    there=$(rpm -qp --qf '%{NAME}=%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n' ./*.rpm 2>/dev/null)
fi
lacking=''
for word; do printf '%s\n' "$there" | grep -qFx -- "$word" || lacking="$lacking $word"; done
if [ -n "$lacking" ]; then
    rm -rf "$new"
    fail "$message" "not there:$lacking" "$(printf '%s\n' "$out" | tail -n 5)"
fi
printf '%s\n' "$names" >"$new/names" && printf '%s\n' "$from" >"$new/from" || exit 1
printf '%s\n' "$run" >"$new/run" || exit 1
{
    printf 'gpus %s\n' "$(timeout -k 10 "$seconds" nvidia-smi -L 2>/dev/null | grep -c '^GPU ')"
    printf 'xids %s\nboot %s\n' "$(xids)" "$(boot_id)"
    active_units
} >"$new/health" || exit 1
if [ $# -eq 0 ]; then : >"$new/sums"; else sha256sum ./* >"$new/sums" || exit 1; fi
cd / && rm -rf "$folder" && mv "$new" "$folder"
