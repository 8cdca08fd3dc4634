# The counted tree: its parts, and what other compiled modules may call.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._inner cimport Inner
from engine._leaf cimport Head, Leaf, Side
from engine._pool cimport Pool

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


@cython.final
cdef class Tree:
    cdef Leaf *leaves
    cdef Head *heads
    cdef Side *sides
    cdef Inner *inners
    cdef Pool leaf_pool, side_pool, inner_pool
    cdef readonly uint64_t distinct
    cdef uint32_t root, height
    cdef uint64_t total
    cdef int64_t twice_u

    cdef Status add(self, double score, bint label) noexcept nogil
    cdef Status remove(self, double score, bint label) noexcept nogil
    cdef void clear(self) noexcept nogil

    cdef double auc(self) noexcept nogil
    cdef uint64_t counts_upto(self, double score) noexcept nogil
    cdef uint64_t prefix(self, uint32_t leaf, uint32_t rank) noexcept nogil
    cdef uint32_t next_leaf(self, Step *path, bint first) noexcept nogil
    cdef void blocks(self, double *scores, double *negative, double *positive) noexcept nogil
    cdef size_t bytes(self) noexcept nogil

    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil
    cdef bint reserve_sides(self, uint32_t more) noexcept nogil
    cdef bint reserve_inners(self, uint32_t more) noexcept nogil
    cdef uint32_t new_leaf(self) noexcept nogil
    cdef uint32_t new_side(self) noexcept nogil
    cdef uint32_t new_inner(self) noexcept nogil

    cdef uint32_t descend(self, double score, Step *path, uint64_t *below) noexcept nogil
    cdef void count_pairs(self, uint64_t below, uint64_t at, bint label, int sign) noexcept nogil
    cdef bint is_outermost(self, const Step *path, bint right) noexcept nogil
    cdef bint count_ties(self, uint32_t leaf) noexcept nogil
    cdef void spread_out(self, uint32_t leaf) noexcept nogil
    cdef Status make_room(self, Step *path, uint32_t leaf, uint32_t rank, double score) noexcept nogil
    cdef Status split_leaf(self, Step *path, uint32_t leaf, uint32_t rank, double score) noexcept nogil
    cdef void link(self, Step *path, uint32_t level, uint32_t node, double first, uint64_t left) noexcept nogil
    cdef void split_inner(self, Step *path, uint32_t level) noexcept nogil
    cdef void raise_root(self, uint32_t node, double first, uint64_t left) noexcept nogil
    cdef void fill_up(self, Step *path, uint32_t level) noexcept nogil
    cdef bint join_leaves(self, uint32_t left, uint32_t right) noexcept nogil
    cdef bint join_inners(self, Inner *parent, uint32_t slot) noexcept nogil
    cdef void unlink(self, Step *path, uint32_t level, uint32_t slot) noexcept nogil
    cdef void lower_root(self) noexcept nogil
    cdef void free_leaf(self, uint32_t leaf) noexcept nogil
    cdef void free_side(self, uint32_t side) noexcept nogil
    cdef void free_inner(self, uint32_t node) noexcept nogil
