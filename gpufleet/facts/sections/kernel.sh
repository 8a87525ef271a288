# The running kernel ($release) and those with modules. Parsed by hardware.py.
# uname prints these in an order of its own: name, release, architecture.
set -- $(uname -nrm)
say "uname $*"
release=$2
for path in /lib/modules/*; do
    [ -e "$path/modules.order" ] || [ "${path##*/}" = "$release" ] || continue
    headers=no
    [ -d "$path/build" ] && headers=yes
    say "installed $headers ${path##*/}"
done
path=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
[ -r "$path" ] && say "secureboot" $(od -An -tu1 "$path")
