# What the counted tree consists of.
from libc.stdint cimport uint32_t

from engine._inner cimport Inner
from engine._leaf cimport LEAF, Head, Leaf, Side
from engine._pool cimport Pool


cdef class Nodes:
    cdef Leaf *leaves
    cdef Head *heads
    cdef Side *sides
    cdef Inner *inners
    cdef Pool leaf_pool, side_pool, inner_pool
    cdef uint32_t root, height

    cdef void give_back(self) noexcept nogil
    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil
    cdef bint reserve_sides(self, uint32_t more) noexcept nogil
    cdef bint reserve_inners(self, uint32_t more) noexcept nogil
    cdef uint32_t new_leaf(self) noexcept nogil
    cdef uint32_t new_side(self) noexcept nogil
    cdef uint32_t new_inner(self) noexcept nogil
    cdef void free_leaf(self, uint32_t leaf) noexcept nogil
    cdef void free_side(self, uint32_t side) noexcept nogil
    cdef void free_inner(self, uint32_t node) noexcept nogil
    cdef size_t bytes(self) noexcept nogil
