#!/bin/sh
# Graphs of peers: the numbers printed and written agree with each other and with what is known of them, a graph that
# cannot be trained on is told by its offending node, the picture is well-formed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# closed forms: neighbours, diameter, spectral gap, bounds
expect 0 graph ring 8
prints 'neighbours    3 to receive from, 3 to send to, itself included'
prints 'diameter      4'
prints 'spectral gap  0.1953 of 1'
prints 'bipartite     yes, fit for AD-PSGD'
prints 'weights       doubly stochastic'
prints '   0  1 7'
expect 0 graph ring-based 8 --max-gap 3 --staleness 2 --backup 2
prints 'spectral gap  0.5 of 1'
prints 'bipartite     no'
grep -Eq '^  standard +1 +1 +2$' "$out" || fail 'another bound for the standard setting'
grep -Eq '^  NOTIFY-ACK +1 +1 +2$' "$out" || fail 'another bound for NOTIFY-ACK'
grep -Eq '^  staleness 2 +3 +3 +6$' "$out" || fail 'another bound with staleness'
grep -Eq '^  backup 2 +unbounded +unbounded +unbounded$' "$out" || fail 'another bound with backup workers'
grep -Eq '^  staleness 2, backup 2, max-gap 3 +3 +3 +6$' "$out" || fail 'another bound with all'
prints 'update queue with max-gap 3: at most 16 updates'
expect 0 graph exponential 16
prints 'node  sends to | receives from'
grep -Eq '^   0  1 2 4 8 \| 8 12 14 15$' "$out" || fail 'other neighbours in an exponential graph'

# machines: from a list and from a number, the same graph
expect 0 graph clique 8 --machines 3,3,2 --json list.json
prints 'machines      3, with 3, 3, 2 nodes; 5 edges between them'
expect 0 graph clique 8 --machines 3 --json number.json
cmp -s list.json number.json || fail 'machines by number differ from a list'
check list.json 'first["machines"] == [3, 3, 2] and first["between_machines"] == 5 and first["fit"] and len(first["edges"]) == 32'

# JSON: every kind, and its edges written as text give the same graph
for kind in ring ring-based double-ring complete exponential; do
    expect 0 graph $kind 12 --json a.json
    python3 -c 'import json; [print(a, b) for a, b in json.load(open("a.json"))["edges"]]' >edges.txt
    expect 0 graph edges.txt --json b.json
    python3 - <<'PYTHON' || fail "$kind: the graph of its edges is another"
import json, sys
a, b = json.load(open("a.json")), json.load(open("b.json"))
a.pop("graph"), b.pop("graph")
sys.exit(a != b)
PYTHON
done
"$RUBATO" graph - <edges.txt >from.txt
sed 's/standard input/edges.txt/' from.txt >named.txt
expect 0 graph edges.txt
cmp -s "$out" named.txt || fail 'the standard input gives another graph than the file'
"$RUBATO" graph ring 3 --json - >a.json
check a.json 'first["edges"] == [[0,0],[0,1],[0,2],[1,0],[1,1],[1,2],[2,0],[2,1],[2,2]] and len(lines) == 1'

# a large one: no list of edges, and numbers nevertheless
expect 0 graph ring 2000
prints '6000 edges; --json has them all'
prints 'diameter      1000'
expect 0 graph double-ring 1200
prints 'not worked out for a graph as large as this'

# pictures are well-formed XML with every node
for graph in 'ring-based 8' 'ring-based 64' 'double-ring 16' 'clique 64 --machines 8' 'exponential 16 --machines 4' 'ring 1'; do
    # shellcheck disable=SC2086 # words
    expect 0 graph $graph --svg picture.svg
    python3 - "$graph" <<'PYTHON' || fail "$graph: the picture is not as it should be"
import sys, xml.dom.minidom
nodes = [g for g in xml.dom.minidom.parse("picture.svg").getElementsByTagName("g")]
sys.exit(len(nodes) != int(sys.argv[1].split()[1]))
PYTHON
done
"$RUBATO" graph ring-based 8 --svg - | grep -q '^</svg>$' || fail 'no picture on the standard output'
expect 1 graph ring 2000 --svg large.svg
says 'too large to be drawn'
[ ! -e large.svg ] || fail 'a refusal leaves a file'

# not fit for training: what is known is printed, the offending node is named
printf '0 0\n1 1\n2 2\n0 - 1\n1 - 2\n' >path.txt
expect 1 graph path.txt --json path.json
prints 'neighbours    2 to 3 to receive from'
prints 'peers cannot train on it'
says 'path.txt: the weights are not doubly stochastic: those of what node 0 sends sum to 0.833333'
check path.json 'first["fit"] is False and "node 0" in first["why_not"]'
printf '0 0\n1 1\n0 1\n' >oneway.txt
expect 1 graph oneway.txt
prints 'diameter      none'
says 'oneway.txt: there is no path from node 1 to node 0'
printf '0 0\n0 - 1\n' >loop.txt
expect 1 graph loop.txt
says 'loop.txt: node 1 has no self-loop'
prints 'bipartite     yes'
! grep -q 'fit for AD-PSGD' "$out" || fail 'a graph that peers cannot train on is said to be fit'

# damaged text is told by its line
printf '0 0\n0 one\n' >bad.txt
expect 1 graph bad.txt
says "bad.txt:2: 'one' where a node was expected"
printf '0 0\n0 0\n' >bad.txt
expect 1 graph bad.txt
says 'bad.txt:2: the edge from 0 to 0 is there already, in line 1'
expect 1 graph path.txt 2
says 'path.txt:3: node 2 is out of range; the nodes are 0 to 1'
: >empty.txt
expect 1 graph empty.txt
says 'empty.txt: there is no edge in it'

printf '0 - 1\n2 - 3\n' >apart.txt
expect 1 graph apart.txt --svg apart.svg
grep -q 'neighbours each, not connected, spectral gap' apart.svg || fail 'a graph in two parts has a diameter'

# usage
expect 2 graph
says 'which graph?'
expect 2 graph ring
says 'of how many nodes?'
expect 2 graph rign 8
says "did you mean 'ring'?"
expect 2 graph nowhere.txt
says 'no file that can be read'
expect 2 graph ring 0
expect 2 graph ring 16385
expect 2 graph double-ring 9
says 'even number'
expect 2 graph clique 8
says '--machines 3,3,2'
expect 2 graph clique 8 --machines 3,3
says 'that makes 6 nodes, and the graph has 8'
expect 2 graph clique 6 --machines 3,1,1,1
says 'machines of one size'
expect 2 graph ring 8 --backup 2
says 'a node with 2 in-neighbours besides itself, and it would wait for none; give at most 1'
expect 2 graph ring 8 --max-gap 0
expect 2 graph ring 8 --json - --svg -
says 'would both be written to the standard output'
expect 1 graph complete 5000
says 'take fewer, or another kind'
if [ -c /dev/full ]; then
    expect 1 graph ring 8 --svg /dev/full
    expect 1 graph ring 8 --json /dev/full
fi
expect 0 graph --help
prints 'Kinds: ring, ring-based'
