# An update has installed a newer kernel, which the next boot uses.
on() { /usr/lib/sim/install-kernel "$NEXT_KERNEL" > /dev/null; }
off() { rm -rf "/lib/modules/$NEXT_KERNEL" /boot/*"$NEXT_KERNEL"*; }
