# The ROC hull as a list of edges, and the H-measure over it.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._severity cimport Severity
from engine._tree cimport Tree

cdef struct Edge:
    uint64_t counts  # packed, of the scores above the edge before, up to its own last one
    double term  # in the H-measure; negative while not known
    # Since the last read a point may have come to lie below the edge only at scores up to `left`
    # or from `right` on; -inf and +inf mark an edge that no event has touched.
    double left, right

cdef struct Fixed:
    # A sum in fixed point, coarse * 2**-20 + fine * 2**-60: adding and taking away never rounds.
    int64_t coarse, fine


@cython.final
cdef class Hull:
    cdef double *last  # of each edge its largest score; +inf for the last edge
    cdef Edge *edges
    cdef Py_ssize_t size, capacity
    cdef double *touched  # `last` of every edge that events have touched
    cdef Py_ssize_t touched_size, touched_capacity
    cdef bint live  # whether the list follows the events
    cdef int64_t since  # events since the last read
    cdef Severity severity  # the one of the terms
    cdef Fixed sum  # of the terms
    cdef uint64_t end  # packed counts up to the end of the list, while a sweep writes it

    cdef void touch(self, double score, uint64_t event, bint leftwards) noexcept nogil
    cdef double h_measure(self, Tree tree, Severity severity) except? -1
    cdef int refresh(self, Tree tree) except -1
    cdef void rest(self) noexcept nogil
    cdef tuple arrays(self, Tree tree)
    cdef size_t bytes(self) noexcept nogil

    cdef Py_ssize_t find(self, double score) noexcept nogil
    cdef bint make_room(self) noexcept nogil
    cdef bint sweep(self, Tree tree) noexcept nogil
    cdef bint push(self, uint64_t upto, uint32_t leaf, uint32_t rank) noexcept nogil
    cdef bint repair(self, Tree tree, Py_ssize_t at) noexcept nogil
    cdef bint split(
        self, Tree tree, Py_ssize_t *at, uint64_t start, double left, double right
    ) noexcept nogil
    cdef void settle(self, Py_ssize_t at) noexcept nogil
    cdef void erase(self, Py_ssize_t at) noexcept nogil
    cdef void forget_term(self, Py_ssize_t at) noexcept nogil
    cdef void set_term(self, Py_ssize_t at) noexcept nogil
