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
# `mokutil --disable-validation`: neither shim nor the kernel asks for signatures then.
# https://github.com/lcp/mokutil/issues/9 and https://github.com/lcp/mokutil/pull/17 (read 2026-11-28)
path=/sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23
[ -r "$path" ] && say "unvalidated" $(od -An -tu1 "$path")
