# What all windows share: events come in, alone or many, and are read at slides.
from libc.stdint cimport int64_t

from engine._batch cimport Batch
from engine._reader cimport Reader
from engine._severity cimport Severity

cdef class BulkWindow:
    cdef readonly int64_t seen
    cdef bint busy

    cdef object read_along(
        self, Batch batch, bint timed, int64_t every, tuple names, Severity severity
    )
    cdef int begin(self) except -1
    cdef int take(self, Batch batch, bint timed, Reader reader) except -1
    cdef int run(self, Batch batch, bint timed, Reader reader) except -1
    cdef int read_now(self, Reader reader) except -1
