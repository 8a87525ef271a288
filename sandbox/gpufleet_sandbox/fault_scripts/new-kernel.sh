# An update has put a newer kernel on the disk: the next boot is into it.
on() { /usr/lib/sim/install-kernel "$NEXT_KERNEL" > /dev/null; }
off() { rm -rf "/lib/modules/$NEXT_KERNEL" /boot/*"$NEXT_KERNEL"*; }
