#!/bin/sh
# Keys: made, told apart, never printed, never overwritten, and refused when others may read them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# a new key is its owner's alone, whatever the umask, and its id is all that is printed
(umask 0 && "$RUBATO" key new job.key >id)
[ "$(stat -c %a job.key)" = 600 ] || fail 'a new key has not mode 600'
grep -Eqx '[0-9a-f]{16}' id || fail 'the id is not 16 hexadecimal digits'
[ "$(wc -l <job.key)" -eq 1 ] || fail 'a key is not one line'
grep -Eqx "rubato-key-1 $(cat id) [0-9a-f]{64}" job.key || fail 'the key has another form'
expect 0 key show job.key
cmp -s "$out" id || fail 'show prints another id'
"$RUBATO" key show - <job.key | cmp -s - id || fail 'show - prints another id'

# two keys differ
expect 0 key new other.key
if cmp -s "$out" id; then fail 'two keys have one id'; fi

# what is there stays there
cp job.key copy
expect 1 key new job.key
says 'job.key: is there already'
cmp -s job.key copy || fail 'a key was overwritten'
expect 1 key new no/such/folder.key
says 'no/such/folder.key: cannot be made'
expect 2 key new -
says 'a key is not printed'
[ ! -e ./- ] || fail 'a file with the name - was made'

# others' eyes, damage, what is no key: a sentence that says what to do and shows nothing of the content
chmod 644 copy
expect 1 key show copy
says 'chmod 600 copy'
for bad in '' 'hunter2' 'rubato-key-9 aa bb' "$(cut -c1-80 job.key)" "$(sed 's/.$/x/' job.key)"; do
    rm -f copy
    (umask 077 && printf '%s\n' "$bad" >copy)
    expect 1 key show copy
    says 'copy: '
    if grep -qF -e hunter2 -e "$(cut -c31-60 job.key)" "$err"; then fail 'a message shows what the file holds'; fi
    [ ! -s "$out" ] || fail 'something is printed about what is no key'
done
mkfifo -m 600 pipe # nobody writes to it: it must not be waited for
expect 1 key show pipe
says 'pipe: is no plain file'
expect 1 key show nowhere.key
says 'rubato key new FILE'

# without OpenSSL there are no keys, and a sentence says so; what needs none works
mkdir broken
: >broken/libssl.so.3
(
    export LD_LIBRARY_PATH="$PWD/broken"
    for command in 'key new third.key' 'key show job.key'; do
        # shellcheck disable=SC2086 # words
        expect 1 $command
        says 'need OpenSSL, which cannot be loaded'
        says 'libssl.so.3'
    done
    [ ! -e third.key ] || fail 'a key was made without OpenSSL'
    expect 0 gen lr --rows 10 --cols 5 --nnz 2 --out ten.svm
    expect 0 train lr --data ten.svm --epochs 1
) || exit 1

# usage
expect 2 key
says "what is to be done? \`key new FILE\` makes a key"
expect 2 key make job.key
says "unknown word 'make'; \`key new FILE\` makes a key"
expect 2 key new
says 'which file?'
expect 2 key new a b
expect 2 key new a --force
