"""What changes the children of an inner node: insertion, removal, a cut in two, a join of two.

Each takes the counts before the children out of their two levels, moves them in one, and puts them
back.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t


cdef void unpack(const Inner *inner, uint64_t *starts) noexcept nogil:
    """Counts before each child, in one level."""
    cdef uint32_t i
    for i in range(inner.size):
        starts[i] = counts_before(inner, i)


cdef void pack(Inner *inner, const uint64_t *starts, uint32_t size) noexcept nogil:
    """Set the counts of `size` children from one level, and what follows from `first`."""
    cdef uint32_t group, i
    cdef uint64_t base = 0
    inner.size = size
    inner.first[0] = -INFINITY
    for group in range(8):
        if 8 * group < size:
            base = starts[8 * group]
        elif size:
            base = starts[size - 1]
        inner.before[group] = base
        for i in range(8 * group, 8 * group + 8):
            inner.within[i] = starts[i] - base if i < size else 0
    for i in range(size, FAN):
        inner.first[i] = INFINITY
    for group in range(7):
        inner.samples[group] = inner.first[8 * group + 8]
    inner.samples[7] = INFINITY


cdef void insert_child(
    Inner *inner, uint32_t slot, uint32_t node, double first, uint64_t left
) noexcept nogil:
    """Enter a child at `slot`, above 0; the one before keeps the packed counts `left`."""
    cdef uint64_t[64] starts
    cdef uint32_t i
    unpack(inner, starts)
    for i in range(inner.size, slot, -1):
        inner.first[i] = inner.first[i - 1]
        inner.child[i] = inner.child[i - 1]
        starts[i] = starts[i - 1]
    inner.first[slot] = first
    inner.child[slot] = node
    starts[slot] = starts[slot - 1] + left
    pack(inner, starts, inner.size + 1)


cdef void remove_child(Inner *inner, uint32_t slot) noexcept nogil:
    """Take a child out; the one before takes over its events."""
    cdef uint64_t[64] starts
    cdef uint32_t i
    unpack(inner, starts)
    for i in range(slot, inner.size - 1):
        inner.first[i] = inner.first[i + 1]
        inner.child[i] = inner.child[i + 1]
        starts[i] = starts[i + 1]
    pack(inner, starts, inner.size - 1)


cdef uint64_t cut_children(Inner *inner, uint32_t cut, Inner *fresh) noexcept nogil:
    """Move the children from `cut` on to an empty node; packed counts of those that stay."""
    cdef uint64_t[64] starts
    cdef uint64_t[64] moved
    cdef uint32_t size = inner.size, i
    unpack(inner, starts)
    for i in range(cut, size):
        fresh.first[i - cut] = inner.first[i]
        fresh.child[i - cut] = inner.child[i]
        moved[i - cut] = starts[i] - starts[cut]
    pack(fresh, moved, size - cut)
    pack(inner, starts, cut)
    return starts[cut]


cdef void append_children(
    Inner *left, const Inner *right, double first, uint64_t counts
) noexcept nogil:
    """Copy the children of a node that begins at `first` behind others with packed `counts`."""
    cdef uint64_t[64] starts
    cdef uint32_t size = left.size, i
    unpack(left, starts)
    for i in range(right.size):
        left.first[size + i] = right.first[i]
        left.child[size + i] = right.child[i]
        starts[size + i] = counts_before(right, i) + counts
    left.first[size] = first
    pack(left, starts, size + right.size)
