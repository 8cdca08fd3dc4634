"""The invariants of the counted tree, asserted against a walk over all of it."""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from engine._counts cimport bits_below, events, negatives, positives
from engine._inner cimport FAN, Inner, counts_before
from engine._keys cimport (
    drop_in_fours,
    drop_plainly,
    enter_in_fours,
    enter_plainly,
    find_in_fours,
    find_plainly,
    has_fours,
)
from engine._leaf cimport LEAF, SPREAD, Head, Leaf
from engine._pool cimport NONE
from engine._tree cimport MAX_HEIGHT, Step, Tree


def check(Tree tree):
    """Assert every invariant; O(n)."""
    cdef Step path[MAX_HEIGHT]
    cdef uint64_t total = 0, distinct = 0, before, at
    cdef uint32_t leaf, rank, size
    cdef const double *keys
    if tree.root == NONE:
        assert tree.total == 0 and tree.height == 0
    else:
        total = check_node(tree, tree.root, tree.height, -INFINITY, INFINITY)
    twice_u = below = 0
    leaf = tree.next_leaf(path, True)
    while leaf != NONE:
        keys = tree.leaves[leaf].keys
        size = tree.heads[leaf].size
        before = 0
        for rank in range(1, size + 1):
            if rank < size and keys[rank] == keys[rank - 1]:
                continue
            at = tree.prefix(leaf, rank) - before
            before += at
            distinct += 1
            twice_u += positives(at) * (2 * below + negatives(at))
            below += negatives(at)
        leaf = tree.next_leaf(path, False)
    assert total == tree.total
    assert distinct == tree.distinct
    assert twice_u == tree.twice_u


cdef uint64_t check_node(
    Tree tree, uint32_t node, uint32_t level, double low, double high
) except? 0:
    """Assert the invariants of a subtree over scores in [low, high); its packed counts."""
    cdef uint32_t i
    cdef uint64_t total = 0
    cdef Inner *inner
    cdef double first, last
    if level == 0:
        return check_leaf(tree, node, low, high)
    inner = &tree.inners[node]
    assert 1 <= inner.size <= FAN
    assert level < tree.height or inner.size > 1
    assert inner.first[0] == -INFINITY
    for i in range(FAN):
        if i >= inner.size:
            assert inner.first[i] == INFINITY
            continue
        assert counts_before(inner, i) == total
        if i and not i & 7:
            assert inner.samples[(i >> 3) - 1] == inner.first[i]
        first = inner.first[i] if i else low
        last = inner.first[i + 1] if i + 1 < inner.size else high
        assert first < last
        total += check_node(tree, inner.child[i], level - 1, first, last)
    return total


cdef uint64_t check_leaf(Tree tree, uint32_t leaf, double low, double high) except? 0:
    cdef const double *keys = tree.leaves[leaf].keys
    cdef Head *head = &tree.heads[leaf]
    cdef uint64_t total
    cdef uint32_t i
    assert head.size <= LEAF
    for i in range(LEAF):
        if i >= head.size:
            assert keys[i] == INFINITY
            continue
        assert low <= keys[i] < high
        if head.side != NONE:
            assert i == 0 or keys[i - 1] < keys[i]
            assert tree.prefix(leaf, i + 1) != tree.prefix(leaf, i)
        elif i and keys[i - 1] == keys[i]:
            # Of equal scores the positives stand first.
            assert head.labels >> (i - 1) & 1 >= head.labels >> i & 1
        else:
            assert i == 0 or keys[i - 1] < keys[i]
    total = tree.prefix(leaf, head.size)
    if head.side == NONE:
        assert head.labels & ~bits_below(head.size) == 0
    else:
        assert events(total) > SPREAD
    if has_fours():
        for i in range(min(head.size + 1, LEAF)):
            check_fours(&tree.leaves[leaf], head.size, keys[i] if i < head.size else 0)
    return total


cdef int check_fours(const Leaf *leaf, uint32_t size, double score) except -1:
    """Assert that what goes over all keys does the same as what asks how many there are."""
    cdef Leaf fours = leaf[0], plain = leaf[0]
    cdef uint64_t found = find_plainly(plain.keys, size, score)
    cdef uint32_t rank = <uint32_t> found, i
    assert find_in_fours(fours.keys, score) == found
    if rank < found >> 32:
        drop_in_fours(fours.keys, score)
        drop_plainly(plain.keys, rank, size)
        size -= 1
        for i in range(LEAF):
            assert fours.keys[i] == plain.keys[i]
    if size < LEAF:
        enter_in_fours(fours.keys, score)
        enter_plainly(plain.keys, rank, size, score)
        for i in range(LEAF):
            assert fours.keys[i] == plain.keys[i]
    return 0
