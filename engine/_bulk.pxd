# What all windows share: events come in, alone or many, and are read at slides.
from libc.stdint cimport int64_t

from engine._batch cimport Batch
from engine._reader cimport Reader

cdef class BulkWindow:
    cdef readonly int64_t seen

    cdef int run(self, Batch batch, bint timed, Reader reader) except -1

cdef tuple known(object read)
