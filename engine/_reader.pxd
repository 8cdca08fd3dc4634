# What bulk calls of windows read at their slides.
from libc.stdint cimport int64_t

from engine._roc cimport Roc
from engine._severity cimport Severity

cdef enum Name:
    AUC
    H
    POSITIVES
    NEGATIVES
    EVENTS
    START
    END
    LOW
    HIGH
    STRICT
    TIED
    BOUND
    OTHER

cdef class Reader:
    cdef tuple names
    cdef list arrays
    cdef object readings  # what `gather` made of them
    cdef Name *codes
    cdef void **targets
    cdef Py_ssize_t width, row
    cdef object interval, ties  # of the row that is being written, once asked for
    cdef int64_t every
    cdef Severity severity
    cdef bint counts  # whether weights of classes are integers, as far as has been read

    cdef void put(self, Py_ssize_t column, double value) noexcept nogil
    cdef void put_whole(self, Py_ssize_t column, int64_t value) noexcept nogil

    cdef double ask(self, Py_ssize_t column, object roc) except? -1
    cdef void end_row(self) noexcept
    cdef int read(self, Roc roc, int64_t events, int64_t start, int64_t end) except -1
    cdef object gather(self)
    cdef int widen(self) except -1
