# The ROC hull as a list of edges, and the H-measure over it.
from libc.stdint cimport int64_t, uint64_t

from engine._severity cimport Severity
from engine._tree cimport Tree

cdef struct Fixed:
    # A sum in fixed point, coarse * 2**-20 + fine * 2**-60: adding and taking away never rounds.
    int64_t coarse, fine


cdef class Hull:
    cdef double *last
    cdef uint64_t *counts
    cdef Py_ssize_t size, capacity

    cdef bint sweep(self, Tree tree) noexcept nogil
    cdef double h_measure(self, Tree tree, Severity severity) noexcept nogil
    cdef bint push(self, double last, uint64_t counts) noexcept nogil
    cdef tuple arrays(self)
    cdef size_t bytes(self) noexcept nogil

cdef tuple hull_of_blocks(object scores, object negative, object positive)
cdef tuple thin(object negative, object positive, double epsilon)
cdef double loss_share(object negative, object positive, Severity severity) except? -1
