# The hull of where leaves end, and the points of a leaf below one of its edges.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._counts cimport negatives, positives
from engine._tree cimport Tree

cdef struct Outline:
    uint32_t size  # leaves
    uint64_t *ends  # packed counts up to the end of each
    uint64_t *corners  # 0, and those ends that are corners of their hull
    uint32_t *leaves

cdef struct Chord:
    uint64_t start, end  # packed counts
    int64_t run, rise  # from start to end

cdef bint draw(Outline *outline, Tree tree) noexcept nogil
cdef void erase(Outline *outline) noexcept nogil
cdef uint32_t points_below(
    Tree tree, uint32_t leaf, uint64_t before, Chord *chord, uint64_t *points, uint32_t *ranks
) noexcept nogil


cdef inline bint joins(uint64_t left, uint64_t right) noexcept nogil:
    """Whether two neighbouring edges are not strictly convex and so make one."""
    return positives(left) * negatives(right) >= positives(right) * negatives(left)


cdef inline Chord chord_of(uint64_t start, uint64_t end) noexcept nogil:
    cdef Chord chord
    chord.start = start
    chord.end = end
    chord.run = negatives(end - start)
    chord.rise = positives(end - start)
    return chord


cdef inline int64_t depth(const Chord *chord, uint64_t across, uint64_t up) noexcept nogil:
    """How high above a chord a point is, in units of no matter; it has the negatives of `across`
    and the positives of `up`."""
    return chord.run * positives(up - chord.start) - chord.rise * negatives(across - chord.start)
