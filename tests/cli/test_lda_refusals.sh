#!/bin/sh
# What lda has no use for is refused, and not ignored or read as something else.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

printf '2 0:1 3:2\n2 2:1 4:1\n1 1:5\n' >good.ldac
expect 0 train lda --data good.ldac --topics 2 --workers 1 --out model.rbt --quiet

# --- documents whose lines are wrong are documents all the same
printf '2 1:1 3:2\n3 2:1 4:1\n1 1:5\n' >lies.ldac
expect 1 train lda --data lies.ldac --topics 2 --workers 1
says 'lies.ldac:2: the line promises 3 words and has fewer'
printf '1\n2\n1\n1 1 1.5\n' >docword
expect 1 train lda --data docword --topics 2 --workers 1
says "docword:4: '1 1 1.5': expected three whole numbers: document, word, count"

# --- ratings
printf '1::a::3\n1::b::4\n2::a::5\n2::c::2\n' >ratings.dat
expect 1 train lda --data ratings.dat
says 'lda cannot use ratings: items are numbered anew in every file'
for command in eval predict; do
    expect 1 $command --model model.rbt --data ratings.dat
    says 'lda cannot use ratings'
done

# --- rules that would change nothing: counts are added up, whatever the rule
for rule in adarev momentum dyn; do
    expect 2 train lda --data good.ldac --rule $rule
    says "--rule $rule makes no sense for lda, whose updates must add up"
done
