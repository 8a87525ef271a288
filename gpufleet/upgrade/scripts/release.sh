# release.sh FOLDER RUN ORIGIN: RUN ends and has changed nothing here: FOLDER is free for other runs. One that RUN has
# taken from ORIGIN ("" for none) is ORIGIN's again.
folder=$1 run=$2 origin=$3
if [ "$(run_of "$folder")" != "$run" ] || [ "$(state_of "$folder")" != prepared ]; then exit 0; fi
if [ -n "$origin" ]; then mark "$folder" changed "$origin"; else mark "$folder" released "$run"; fi
