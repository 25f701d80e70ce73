# Runs a test (the arguments) in an empty folder of its own, which is also its TMPDIR, and removes it afterwards.
folder=$(mktemp -d "${TMPDIR:-/tmp}/rubato-test.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
cd "$folder" || exit 1
TMPDIR=$folder "$@"
