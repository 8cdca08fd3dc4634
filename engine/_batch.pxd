# Checked events on their way in; the memory is the batch's own.
from libc.stdint cimport int64_t, uint8_t

cdef class Batch:
    cdef double *scores
    cdef uint8_t *labels
    cdef double *weights  # NULL: all 1
    cdef int64_t *times  # NULL: all 0
    cdef Py_ssize_t size
    cdef object columns
    cdef void *owned

    cdef int allot(
        self, Py_ssize_t size, bint weighted, bint timed, double **heavy, int64_t **clock
    ) except -1
    cdef bint take_buffers(
        self, object scores, object labels, object weights, object times
    ) except -1
    cdef bint take_lists(self, list scores, list labels, list weights, list times) except -1

cdef double one_score(object value) except? -1
cdef bint one_label(object value) except? True
cdef double one_weight(object value) except? -1
cdef Batch batch_of(object scores, object labels, object weights, object times)
cdef Batch batch_of_columns(object columns)
cdef void *pointer_of(object array) except NULL
