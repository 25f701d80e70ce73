#!/bin/sh
# Topic models from the command line: every token is counted once under every protocol, the same bits come out on every
# runtime under BSP, topics that are there are found, and the model is applied to new documents, evaluated and described.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# 120 documents of 24 tokens over 40 words: each document has words of one of four ranges, two of each
awk 'BEGIN { for (d = 0; d < 120; d++) { t = d % 4; line = 0; for (i = 0; i < 10; i++) if ((i * 7 + d) % 10 >= 4)
    line = line " " t * 10 + i + 1 ":" 2 + ((i + d) % 3 == 0) * 2; print line } }' >docs.svm
tokens=$(awk '{ for (i = 2; i <= NF; i++) { split($i, a, ":"); n += a[2] } } END { print n }' docs.svm)

for runtime in local sim; do
    expect 0 train lda --data docs.svm --topics 4 --alpha 0.1 --workers 3 --sync bsp --epochs 20 --runtime $runtime \
        --out $runtime.rbt --json $runtime.json --quiet
    check $runtime.json "last['table_sum'] == $tokens and last['clocks'] == 202 and last['loss'] < 2.6"
done
expect 0 launch --local 3 -- train lda --data docs.svm --topics 4 --alpha 0.1 --workers 3 --sync bsp --epochs 20 \
    --json cluster.json --quiet
cat sim.json cluster.json >>local.json
check local.json 'len({l["param_hash"] for l in lines if l["event"] == "done"}) == 1'
cmp local.rbt sim.rbt || fail 'the models of two runtimes differ'
for options in '--sync bsp --cut documents' '--sync ssp --staleness 20 --eager off' '--sync asp --cut documents --batch 20%'; do
    # shellcheck disable=SC2086 # several words
    expect 0 train lda --data docs.svm --topics 4 --alpha 0.1 --workers 3 $options --epochs 5 --runtime sim --out told.rbt \
        --json told.json --quiet
    expect 0 info told.rbt # the loss is what the servers' counts say, whatever workers have seen of them
    check told.json "abs(last['loss'] + $(awk '/log_likelihood:/ { print $2 }' "$out")) < 1e-6 and last['table_sum'] == $tokens"
done

# bags of words, which one process reads, and a cache, of which each reads its rows; a document that is refused is told by its number of all
{
    awk 'END { print NR }' docs.svm
    echo 40
    awk '{ n += NF - 1 } END { print n }' docs.svm
    awk '{ for (i = 2; i <= NF; i++) { split($i, a, ":"); print NR, a[1], a[2] } }' docs.svm
} >docword.txt
expect 0 convert --data docword.txt --out docs.cache
expect 0 export --model local.rbt --format npy --out local.npy
for data in docword.txt docs.cache; do
    expect 0 launch --local 3 -- train lda --data $data --topics 4 --alpha 0.1 --workers 3 --sync bsp --epochs 20 --out other.rbt --quiet
    expect 0 export --model other.rbt --format npy --out other.npy # the file also says how the data was read
    cmp local.npy other.npy || fail "$data gives another model"
done
{ cat docs.svm && echo '0 1:2 3:0.5'; } >bad.svm
expect 1 launch --local 3 -- train lda --data bad.svm --topics 4 --workers 3
says 'document 121 has word 3 0.5 times'

# other protocols, parts of a pass, more servers, more workers than a pass has documents for, a stop at a target. Under asp threads
# take turns as the machine lets them, and so the loss falls fast or slowly: the target there is one that whoever looks first finds.
for options in '--workers 3 --sync ssp --staleness 3 --batch 10%' '--workers 3 --sync asp --batch 7' '--workers 3 --sync ssp --staleness 1 --servers 3' \
    '--workers 3 --sync bsp --batch 1' '--workers 3 --sync ssp --cut documents --batch 7' '--workers 3 --sync asp --target-loss 99' \
    '--workers 3 --sync bsp --target-loss 3.9' '--workers 7 --runtime sim --sync ssp'; do
    # shellcheck disable=SC2086 # several words
    expect 0 train lda --data docs.svm --topics 33 --alpha 0.1 --epochs 6 $options --json p.json --quiet
    check p.json "last['table_sum'] == $tokens"
done
# a stop in between, which in virtual time is at the same clock every time
expect 0 train lda --data docs.svm --topics 33 --alpha 0.1 --epochs 6 --workers 3 --runtime sim --sync asp --target-loss 3.9 --json p.json --quiet
check p.json "last['table_sum'] == $tokens and last['reached'] and last['clocks'] < 60 and 3.5 < last['loss'] <= 3.9"
expect 0 train lda --data docs.svm --topics 4 --workers 4 --runtime sim --sync ssp --epochs 8 --quiet --json p.json \
    --faults 'drop=0.02,dup=0.2,delay=0.1,partition=2'
check p.json "last['table_sum'] == $tokens"

# the model in use: documents of one kind have one topic
expect 0 predict --model local.rbt --data docs.svm --out theta
awk '{ best = 1; for (k = 1; k <= NF; k++) { sum += $k; if ($k > $best) best = k } print (NR - 1) % 4, best
    if (NF != 4 || sum < 0.999 || sum > 1.001) exit 1; sum = 0 }' theta >pairs || fail 'proportions'
[ "$(sort -u pairs | wc -l)" -eq 4 ] || fail 'documents of one kind are not together'
expect 0 predict --model local.rbt --data docs.svm --out again
cmp theta again || fail 'the same document got other topics'
expect 0 eval --model local.rbt --data docs.svm --json e.json
check e.json 'abs(last["loss"] + last["log_likelihood"]) < 1e-9 and 5 < last["perplexity"] < 12'
expect 0 train lda --data docs.svm --topics 4 --alpha 0.1 --workers 3 --sync bsp --valid docs.svm --epochs 20 --json v.json --quiet
check v.json 'all(k in events("eval")[-1] for k in ("log_likelihood", "perplexity", "tokens")) and "rmse" not in events("eval")[-1]'
check v.json '1.6 < events("eval")[-1]["loss"] < 2.5'
expect 0 info local.rbt
prints 'topics      4, of 40 words'
prints 'likelihood  -'
awk 'BEGIN { for (i = 1; i <= 40; i++) print "word" i }' >vocab.txt
expect 0 info --vocab vocab.txt local.rbt
grep -q '^topic 0 .*: word[0-9]* word' "$out" || fail 'no names of words'
expect 0 export --model local.rbt --format json --out m.json
check m.json "len(last['word_topic']) == 40 and sum(last['totals'][0]) == $tokens"

# documents in their own formats
awk '{ for (i = 2; i <= NF; i++) { split($i, a, ":"); print NR, a[1], a[2]; n++ } } END { print 120 > "head"; print 40 > "head"; print n > "head" }' \
    docs.svm >cells
cat head cells >docword.txt
expect 0 train lda --data docword.txt --topics 4 --alpha 0.1 --workers 3 --sync bsp --epochs 20 --json w.json --quiet
check w.json "last['table_sum'] == $tokens"
awk '{ line = NF - 1; for (i = 2; i <= NF; i++) { split($i, a, ":"); line = line " " a[1] - 1 ":" a[2] } print line }' docs.svm >docs.ldac
expect 0 train lda --data docs.ldac --format ldac --topics 4 --alpha 0.1 --workers 3 --sync bsp --epochs 20 --json l.json --quiet
cat w.json local.json >>l.json
check l.json 'len({l["param_hash"] for l in lines if l["event"] == "done"}) == 1'

# slips
printf '0 1:0.5 2:1\n' >weights.svm
expect 1 train lda --data weights.svm --topics 4
says 'document 1 has word 1 0.5 times'
expect 1 predict --model local.rbt --data weights.svm
says 'document 1 has word 1 0.5 times'
printf '0 900:1 901:2\n' >others.svm
expect 1 eval --model local.rbt --data others.svm
says 'no document has two words that the model knows'
printf '0\n0\n' >empty.svm
expect 1 train lda --data empty.svm --topics 4
expect 2 train lda --data docs.svm --topics 0
says '--topics 0 is out of range'
expect 2 train lda --data docs.svm --beta 0
expect 2 train lda --data docs.svm --sync hogwild
says 'lda needs bsp, ssp or asp'
