# initramfs.sh FILE MESSAGE: rebuild the initramfs of the running kernel and see that FILE is in it.
file=$1 message=$2
kernel=$(uname -r)
if has update-initramfs; then
    [ -e "/boot/initrd.img-$kernel" ] || exit 0
    out=$(update-initramfs -u -k "$kernel" 2>&1) || fail "$message" "$out"
    ! has lsinitramfs || lsinitramfs "/boot/initrd.img-$kernel" | grep -q "${file#/}" || fail "$message" "$out"
elif has dracut; then
    image=/boot/initramfs-$kernel.img
    [ -e "$image" ] || exit 0
    out=$(dracut --force "$image" "$kernel" 2>&1) || fail "$message" "$out"
    ! has lsinitrd || lsinitrd "$image" | grep -q "${file#/}" || fail "$message" "$out"
fi
exit 0
