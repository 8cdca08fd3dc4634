# An inner node of the counted tree: where its children begin and how many events lie before each.
from libc.stdint cimport uint32_t, uint64_t

from engine._eights cimport add_after_in_eight, upto_in_eight

cdef enum:
    FAN = 64  # children of an inner node, in 8 groups of 8

cdef struct Inner:
    double first[64]  # smallest score a child may hold; -inf for child 0, +inf behind the last
    double samples[8]  # first[8], first[16], ..., first[56], +inf
    uint64_t within[64]  # packed counts of the children before this one in its group
    uint64_t before[8]  # packed counts of the groups before this one
    uint32_t child[64]
    uint32_t size
    uint32_t padding[15]  # to whole cache lines


cdef inline uint32_t slot_of(const Inner *inner, double score) noexcept nogil:
    """The child whose range holds `score`: 8 + 8 compares, no branch."""
    cdef uint64_t group = upto_in_eight(inner.samples, score)
    return <uint32_t> (8 * group + upto_in_eight(inner.first + 8 * group, score) - 1)


cdef inline uint64_t counts_before(const Inner *inner, uint32_t slot) noexcept nogil:
    """Packed counts of the children before `slot`."""
    return inner.before[slot >> 3] + inner.within[slot]


cdef inline void add_after(Inner *inner, uint32_t slot, uint64_t counts) noexcept nogil:
    """Add packed counts to what lies before each child behind `slot`."""
    add_after_in_eight(inner.within + (slot & ~7u), slot & 7, counts)
    add_after_in_eight(inner.before, slot >> 3, counts)


cdef void pack(Inner *inner, const uint64_t *starts, uint32_t size) noexcept nogil
cdef void insert_child(
    Inner *inner, uint32_t slot, uint32_t node, double first, uint64_t left
) noexcept nogil
cdef void remove_child(Inner *inner, uint32_t slot) noexcept nogil
cdef uint64_t cut_children(Inner *inner, uint32_t cut, Inner *fresh) noexcept nogil
cdef void append_children(Inner *left, const Inner *right, double first, uint64_t counts) noexcept nogil
