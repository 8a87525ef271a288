#!/bin/sh
# Imitation of nvidia-modprobe: loads the module, with -u also the unified memory module.
modprobe nvidia || exit 1
case " $* " in *" -u "*) modprobe nvidia-uvm || exit 1 ;; esac
