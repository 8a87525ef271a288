# unreadable: why apt cannot read its sources, all of them together; "" if it can
unreadable() { apt-get indextargets --format '$(SITE)' 2>&1 >/dev/null | grep '^E:' | sort -u; }
