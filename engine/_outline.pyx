"""The hull of where leaves end: an outline of the curve, from which a sweep sees what to look at.

A point of the curve on or above a chord between two others is no corner of its lower hull. The ends of
leaves are known from the counts in inner nodes alone. Each eighth of them makes a hull; with it those
ends that lie below it make the hull of all ends, the outline; and in leaves only points below the
outline are taken. Which those may be, a leaf's label bits tell all at once in numbers of sixteen bits;
what decides is integers under 2**63.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from engine._counts cimport popcount, trailing_zeros
from engine._inner cimport Inner, counts_before
from engine._leaf cimport Head
from engine._pool cimport NONE

cdef extern from *:
    """
    #include <stdint.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    typedef int16_t roc_shorts __attribute__((vector_size(16)));
    typedef uint16_t roc_ushorts __attribute__((vector_size(16)));
    typedef uint8_t roc_octets __attribute__((vector_size(8), aligned(8), may_alias));

    /* Signs of sixteen numbers, a bit each. */
    static inline uint64_t roc_signs(roc_ushorts low, roc_ushorts high) {
    #ifdef __SSE2__
        return (unsigned)_mm_movemask_epi8(_mm_packs_epi16((__m128i)low, (__m128i)high));
    #else
        uint64_t signs = 0;
        for (int i = 0; i < 8; i++)
            signs |= (uint64_t)(low[i] >> 15) << i | (uint64_t)(high[i] >> 15) << (i + 8);
        return signs;
    #endif
    }

    /* Bits of a leaf's labels behind which the curve may be under a chord that it has `depth` over
       where the leaf begins: an event adds `run` to that or takes `rise` away. In numbers of sixteen
       bits, rounded down, so that no bit is missed. `prefix[byte]` has how many of its lowest 1 to 8
       bits are set, a byte each. */
    static inline uint64_t roc_low_bits(const uint64_t *prefix, uint64_t labels, unsigned size,
                                        int64_t depth, uint64_t run, uint64_t rise) {
        const int shift = (run | rise) >> 8 ? 56 - __builtin_clzll(run | rise) : 0;
        const uint16_t up = run >> shift, down = (rise + (1ULL << shift) - 1) >> shift;
        const roc_ushorts places = {1, 2, 3, 4, 5, 6, 7, 8};
        const roc_ushorts fall = places * down;
        const uint16_t step = up + down;
        uint64_t low = 0;
        uint16_t level;
        depth >>= shift;
        level = depth < -16384 ? -16384 : depth;
        for (unsigned i = 0; i < size; i += 16) {
            const unsigned first = labels >> i & 255, second = labels >> i >> 8 & 255;
            const roc_ushorts a = __builtin_convertvector(
                *(const roc_octets *)(prefix + first), roc_ushorts);
            const roc_ushorts b = __builtin_convertvector(
                *(const roc_octets *)(prefix + second), roc_ushorts);
            const uint16_t middle = level + step * (prefix[first] >> 56) - 8 * down;
            low |= roc_signs(a * step + (level - fall), b * step + (middle - fall)) << i;
            level = middle + step * (prefix[second] >> 56) - 8 * down;
        }
        return low;
    }
    """
    uint64_t low_bits "roc_low_bits"(
        const uint64_t *prefix, uint64_t labels, uint32_t size, int64_t depth, uint64_t run, uint64_t rise
    ) noexcept nogil

cdef enum:
    STEP = 8  # leaves to an end of the first hull

cdef uint64_t[256] PREFIX
for byte in range(256):
    PREFIX[byte] = sum((byte & (2 << i) - 1).bit_count() << 8 * i for i in range(8))


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
        PREFIX, head.labels, head.size, depth(chord, before, before), chord.run, chord.rise
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
