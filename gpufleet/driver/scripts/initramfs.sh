# initramfs.sh FILE MESSAGE [gone]: rebuild the initramfs of the running kernel and verify that FILE is in
# it, or with `gone` that it is not. The driver packages rebuild it too: an image that is newer than
# FILE is not rebuilt.
file=$1 message=$2 wanted=${3:-there}
kernel=$(uname -r)
# right COMMAND...: whether the list that COMMAND prints is as wanted; it may be missing
right() {
    has "$1" || return 0
    if "$@" | grep -q "${file#/}"; then [ "$wanted" = there ]; else [ "$wanted" = gone ]; fi
}
# made IMAGE TOOL: whether the image is newer than FILE on this host, and correct
made() { [ -n "$(find "$1" -newermc "$file" 2>/dev/null)" ] && has "$2" && right "$2" "$1"; }
if has update-initramfs; then
    [ -e "/boot/initrd.img-$kernel" ] || exit 0
    if made "/boot/initrd.img-$kernel" lsinitramfs; then exit 0; fi
    out=$(update-initramfs -u -k "$kernel" 2>&1) || fail "$message" "$out"
    right lsinitramfs "/boot/initrd.img-$kernel" || fail "$message" "$out"
elif has dracut; then
    image=/boot/initramfs-$kernel.img
    [ -e "$image" ] || exit 0
    if made "$image" lsinitrd; then exit 0; fi
    out=$(dracut --force "$image" "$kernel" 2>&1) || fail "$message" "$out"
    right lsinitrd "$image" || fail "$message" "$out"
fi
exit 0
