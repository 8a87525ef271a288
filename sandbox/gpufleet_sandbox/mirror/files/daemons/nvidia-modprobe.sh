#!/bin/sh
# Stand-in for nvidia-modprobe: loads the module, -u the unified memory module too.
modprobe nvidia || exit 1
case " $* " in *" -u "*) modprobe nvidia-uvm || exit 1 ;; esac
