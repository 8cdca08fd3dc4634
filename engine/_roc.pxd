# The Roc: what windows use of it below Python.
from libc.stdint cimport uint8_t

from engine._batch cimport Batch
from engine._hull cimport Hull
from engine._severity cimport Severity
from engine._tree cimport Status, Tree
from engine._weighted cimport Blocks

cdef class Roc:
    cdef Tree tree
    cdef Hull edge_list
    cdef Blocks blocks  # None while every weight is 1: then `tree` holds the events, or will: `settle`
    cdef Py_ssize_t idle  # changes since the last weight other than 1 left the blocks

    cdef Status enter(self, double score, bint label) noexcept nogil
    cdef Status leave(self, double score, bint label) noexcept nogil
    cdef Status exchange(
        self, double old, bint its_label, double score, bint label
    ) noexcept nogil
    cdef int add_event(self, double score, bint label, double weight) except -1
    cdef int remove_event(self, double score, bint label, double weight) except -1
    cdef int enter_all(self, Batch batch) except -1
    cdef void clear(self) noexcept
    cdef int fill(self, const double *scores, const uint8_t *labels, Py_ssize_t size) except -1
    cdef double h_by_data(self, Severity severity) except? -1
    cdef tuple arrays(self)
    cdef tuple edges(self)
    cdef bint uneven(self) noexcept
    cdef int to_blocks(self) except -1
    cdef int note(self) noexcept
    cdef void settle(self) noexcept
    cdef void to_tree(self) noexcept
    cdef int build(self, scores, negative, positive) except -1

cdef int refuse(Status status, double score, bint label) except -1
