# has_file.sh PATH: print whether there is a file: yes or no.
if [ -e "$1" ]; then echo yes; else echo no; fi
