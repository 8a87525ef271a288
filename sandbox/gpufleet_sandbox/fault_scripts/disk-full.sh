# /var becomes a small, full file system; /var/lib/docker and /var/lib/containerd are not affected.
# Files written to /var meanwhile are lost.
FULL=/run/sim/var-full OLD=/run/sim/var-old
on() {
    if mountpoint -q /var; then return; fi
    mkdir -p $FULL $OLD
    mount --rbind /var $OLD
    mount --make-rslave $OLD # else its end would unmount what lies below /var too
    mount -t tmpfs -o size=4m tmpfs $FULL
    mkdir $FULL/upper $FULL/work
    mount -t overlay overlay -o lowerdir=/var,upperdir=$FULL/upper,workdir=$FULL/work /var
    for name in docker containerd; do
        if mountpoint -q $OLD/lib/$name; then mount --bind $OLD/lib/$name /var/lib/$name; fi
    done
    dd if=/dev/zero of=/var/ballast bs=4k 2> /dev/null || test -s /var/ballast
}
off() {
    if mountpoint -q /var; then
        umount -R -l /var
        umount -l $FULL
        umount -R -l $OLD
    fi
}
