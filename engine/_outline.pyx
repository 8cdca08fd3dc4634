"""The hull of where leaves end: an outline of the curve, from which a sweep sees what to look at.

A point of the curve on or above a chord between two others is no corner of its lower hull. The ends of
leaves are known from the counts in inner nodes alone. Each eighth of them makes a hull; with it those
ends that lie below it make the hull of all ends, the outline; and in leaves only points below the
outline are taken. Which those may be, a leaf's label bits tell all at once in numbers of sixteen bits;
what decides is integers under 2**63.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from engine._boxes cimport low_bits
from engine._counts cimport popcount, trailing_zeros
from engine._inner cimport Inner, counts_before
from engine._leaf cimport Head
from engine._pool cimport NONE

cdef enum:
    STEP = 8  # leaves to an end of the first hull

cdef bint draw(Outline *outline, Tree tree) noexcept nogil:
    """Draw the outline of a tree that is not empty; False without memory. O(leaves)."""
    cdef uint64_t most = tree.leaf_pool.used - tree.leaf_pool.free_size
    cdef uint64_t *rough
    cdef uint64_t upto
    cdef uint32_t i, size = 1
    cdef Chord chord
    outline.ends = <uint64_t *> malloc((3 * most + 2) * sizeof(uint64_t) + most * sizeof(uint32_t))
    if outline.ends == NULL:
        return False
    outline.corners = outline.ends + most
    rough = outline.corners + most + 1
    outline.leaves = <uint32_t *> (rough + most + 1)
    outline.size = 0
    list_leaves(outline, tree, tree.root, tree.height, 0, tree.total)
    rough[0] = outline.corners[0] = 0
    i = STEP - 1
    while i + 1 < outline.size:
        bend(rough, &size, outline.ends[i])
        i += STEP
    bend(rough, &size, tree.total)
    size = 1
    chord = chord_of(rough[0], rough[1])
    for i in range(outline.size):
        upto = outline.ends[i]
        if upto == chord.end:
            bend(outline.corners, &size, upto)
            if upto == tree.total:
                break
            rough += 1
            chord = chord_of(rough[0], rough[1])
        elif depth(&chord, upto, upto) < 0:
            bend(outline.corners, &size, upto)
    return True


cdef void erase(Outline *outline) noexcept nogil:
    free(outline.ends)


cdef void list_leaves(
    Outline *outline, Tree tree, uint32_t node, uint32_t level, uint64_t before, uint64_t upto
) noexcept nogil:
    """List the leaves of a subtree with packed counts `before` and up to its end."""
    cdef Inner *inner
    cdef uint32_t slot
    cdef uint64_t *ends = outline.ends + outline.size
    if level == 0:
        outline.leaves[outline.size] = node
        ends[0] = upto
        outline.size += 1
        return
    inner = &tree.inners[node]
    if level == 1:
        for slot in range(1, inner.size):
            ends[slot - 1] = before + counts_before(inner, slot)
        ends[inner.size - 1] = upto
        for slot in range(inner.size):
            outline.leaves[outline.size + slot] = inner.child[slot]
        outline.size += inner.size
        return
    for slot in range(inner.size):
        list_leaves(
            outline,
            tree,
            inner.child[slot],
            level - 1,
            before + counts_before(inner, slot),
            before + counts_before(inner, slot + 1) if slot + 1 < inner.size else upto,
        )


cdef inline void bend(uint64_t *corners, uint32_t *size, uint64_t upto) noexcept nogil:
    """Put a corner behind the others, and take away those that are none any more."""
    cdef uint32_t last = size[0] - 1
    while last and joins(corners[last] - corners[last - 1], upto - corners[last]):
        last -= 1
    corners[last + 1] = upto
    size[0] = last + 2


cdef uint32_t points_below(
    Tree tree, uint32_t leaf, uint64_t before, Chord *chord, uint64_t *points, uint32_t *ranks
) noexcept nogil:
    """Points within a leaf that may be corners below a chord: packed counts and ranks; how many.

    `before` is the packed counts before the leaf. Behind each point found the chord begins there.
    """
    cdef Head *head = &tree.heads[leaf]
    cdef const uint64_t *counts
    cdef uint64_t low, ones, point
    cdef uint32_t rank, size = 0
    if head.side != NONE:
        counts = tree.sides[head.side].counts
        for rank in range(head.size - 1):
            point = before + counts[rank]
            if depth(chord, point, point) < 0:
                points[size] = point
                ranks[size] = rank
                size += 1
                chord[0] = chord_of(point, chord.end)
        return size
    # Negatives before a positive.
    low = ~head.labels & (head.labels >> 1)
    low &= low_bits(
        head.labels, head.size, depth(chord, before, before), chord.run, chord.rise
    )
    while low:
        rank = trailing_zeros(low)
        ones = popcount(head.labels & (low ^ (low - 1)))  # up to the lowest bit of `low`
        low &= low - 1
        point = before + (ones << 32) + (rank + 1 - ones)
        if depth(chord, point, point) < 0:
            points[size] = point
            ranks[size] = rank
            size += 1
            chord[0] = chord_of(point, chord.end)
    return size
