# The mirror's machine answers, its server does not run.
on() { systemctl stop mirror; }
off() { systemctl start mirror; }
