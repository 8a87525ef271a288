# initramfs.sh FILE MESSAGE [gone]: rebuild the initramfs of the running kernel and verify that FILE is in
# it, or with `gone` that it is not. The driver packages rebuild it too: an image that is newer than
# FILE is not rebuilt. A FILE that should be gone, but was edited and stays on the host, may stay in the image.
file=$1 message=$2 wanted=${3:-there}
if [ "$wanted" = gone ] && [ -e "$file" ]; then exit 0; fi
kernel=$(uname -r)
# The name of the image is the distribution's, whichever program makes it: Ubuntu 26.04's update-initramfs runs dracut,
# https://github.com/dracut-ng/dracut/issues/2438 (read 2026-11-28)
image=/boot/initrd.img-$kernel
[ -e "$image" ] || image=/boot/initramfs-$kernel.img
[ -e "$image" ] || exit 0
if has update-initramfs; then
    set -- update-initramfs -u -k "$kernel"
elif has dracut; then
    set -- dracut --force "$image" "$kernel"
else
    exit 0
fi
list=lsinitramfs
has "$list" || list=lsinitrd
# right: whether the image's list of files is as wanted; the program that prints it may be missing
right() {
    has "$list" || return 0
    if "$list" "$image" | grep -q "${file#/}"; then [ "$wanted" = there ]; else [ "$wanted" = gone ]; fi
}
if [ -n "$(find "$image" -newermc "$file" 2>/dev/null)" ] && has "$list" && right; then exit 0; fi
out=$("$@" 2>&1) || fail "$message" "$out"
right || fail "$message" "$out"
exit 0
