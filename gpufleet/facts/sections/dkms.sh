# Modules of DKMS. Parsed by hardware.py.
# What dkms itself looks at: `dkms status` takes as long as the rest of this script.
for path in /var/lib/dkms/*/*/source; do
    [ -L "$path" ] || continue
    path=${path%/source}
    name=${path%/*}
    name=${name##*/}
    state=added
    for built in "$path"/*/*/module; do
        [ -d "$built" ] || continue
        built=${built%/module}
        arch=${built##*/}
        kernel=${built%/*}
        kernel=${kernel##*/}
        state=built
        [ "${path%/*}/kernel-$kernel-$arch" -ef "$built" ] && state=installed
        say "$name/${path##*/}, $kernel, $arch: $state"
    done
    [ $state = added ] && say "$name/${path##*/}: added"
done
# Its tree can have been moved, by /etc/dkms/framework.conf.
[ -d /var/lib/dkms ] || { have dkms && dkms status; }
