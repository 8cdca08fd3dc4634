# Events of a window in the order in which they leave.
from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch

cdef enum:
    LATE = 2  # the label of an event of a batch that came too late to be inserted

cdef class Timeline:
    cdef double *scores
    cdef double *weights
    cdef uint8_t *labels
    cdef int64_t *times  # NULL until one is given
    cdef Py_ssize_t capacity, oldest, held

    cdef int reserve(self, Py_ssize_t more, bint timed) except -1
    cdef void insert(
        self, double score, uint8_t label, double weight, int64_t time, bint ordered
    ) noexcept nogil
    cdef void drop(self) noexcept nogil
    cdef void go_back(
        self, Batch batch, Py_ssize_t done, Py_ssize_t oldest, Py_ssize_t held, bint ordered
    ) noexcept nogil
    cdef Batch content(self)
    cdef Py_ssize_t place(self, Py_ssize_t number) noexcept nogil
    cdef int64_t time(self, Py_ssize_t number) noexcept nogil
    cdef size_t bytes(self) noexcept nogil
    cdef list rows(self)
    cdef char *moved(self, char *column, char *fresh, size_t width) noexcept nogil
