# Events of a time window that came far behind their time.
from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch

cdef struct Stray:
    int64_t time, ordinal
    double score, weight
    uint8_t label


cdef class Strays:
    cdef Stray *heap
    cdef Py_ssize_t size, left, capacity

    cdef int insert(self, Stray stray) except -1
    cdef Stray pop(self) noexcept nogil
    cdef void begin(self) noexcept nogil
    cdef void go_back(self, int64_t seen) noexcept nogil
    cdef void sink(self, Py_ssize_t at) noexcept nogil
    cdef Batch content(self)
    cdef list rows(self)
    cdef size_t bytes(self) noexcept nogil
