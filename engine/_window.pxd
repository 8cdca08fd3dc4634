# The window of the last so many events: what those who copy events out of it see.
from engine._batch cimport Batch
from engine._bulk cimport BulkWindow
from engine._reader cimport Reader
from engine._ring cimport Ring
from engine._roc cimport Roc

cdef class CountWindow(BulkWindow):
    cdef Roc built  # None until something is read: a window that only fills needs no ROC
    cdef Ring ring

    cdef Roc whole(self)
    cdef int make_anew(self) except -1
    cdef int take_counted(self, Batch batch, Reader reader) except -1
    cdef int take_weighted(self, Batch batch, Reader reader) except -1
    cdef int change(self, Batch batch, Py_ssize_t number, bint enters) except -1
    cdef int read(self, Batch batch, Py_ssize_t i, Reader reader) except -1
