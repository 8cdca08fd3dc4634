# The shape of the counted tree.
from libc.stdint cimport uint32_t, uint64_t

from engine._inner cimport Inner
from engine._nodes cimport Nodes

cdef enum:
    MAX_HEIGHT = 12

cdef enum Status:
    DONE
    ABSENT  # no such event inside
    NO_MEMORY
    TOO_MANY  # LIMIT events are inside

cdef struct Step:
    uint32_t node
    uint32_t slot


cdef class Balanced(Nodes):
    cdef uint64_t prefix(self, uint32_t leaf, uint32_t rank) noexcept nogil
    cdef bint count_ties(self, uint32_t leaf) noexcept nogil
    cdef void spread_out(self, uint32_t leaf) noexcept nogil
    cdef Status make_room(self, Step *path, uint32_t leaf, uint32_t rank, double score) noexcept nogil
    cdef Status split_leaf(self, Step *path, uint32_t leaf, uint32_t rank, double score) noexcept nogil
    cdef uint32_t split(
        self, Step *path, uint32_t level, uint32_t node, uint32_t cut, double first
    ) noexcept nogil
    cdef uint64_t cut_leaf(self, uint32_t leaf, uint32_t cut, uint32_t fresh) noexcept nogil
    cdef void split_parent(self, Step *path, uint32_t level) noexcept nogil
    cdef bint is_outermost(self, const Step *path, bint right) noexcept nogil
    cdef void raise_root(self, uint32_t node, double first, uint64_t left) noexcept nogil
    cdef void fill_up(self, Step *path, uint32_t level) noexcept nogil
    cdef bint join_leaves(self, uint32_t left, uint32_t right) noexcept nogil
    cdef bint join_inners(self, Inner *parent, uint32_t slot) noexcept nogil
    cdef void unlink(self, Step *path, uint32_t level, uint32_t slot) noexcept nogil
    cdef void lower_root(self) noexcept nogil
