# The hull's edges found from above: what the tree of weights calls.
from libc.stdint cimport uint32_t

from engine._fold cimport Node
from engine._sums cimport Edge, Tie

cdef struct Stretch:
    # A part of the curve.
    Edge sums
    const Node *node  # what it is the part of, if that may have corners; else NULL


cdef class Corners:
    cdef Edge *edges  # of the hull, ascending
    cdef uint32_t size
    cdef uint32_t *ends  # how many stretches are in the edges up to each
    cdef Stretch *stretches  # of the whole curve, ascending
    cdef Stretch *finer  # what they become
    cdef uint32_t held, made, capacity

    cdef bint find(self, const Node *root, const Tie *ties) noexcept nogil

    cdef void add(self, double negative, double positive, const Node *node) noexcept nogil
    cdef bint reserve(self, uint32_t capacity) noexcept nogil
    cdef void join(self) noexcept nogil
    cdef bint refine(self, const Tie *ties) noexcept nogil
    cdef void open(
        self, const Node *node, const Edge *edge, double x, double y, const Tie *ties
    ) noexcept nogil
    cdef void open_leaf(
        self, const Node *leaf, const Edge *edge, double x, double y, const Tie *ties
    ) noexcept nogil
