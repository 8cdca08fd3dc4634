# The window of the last so many events: what its ring looks like to those who copy events out of it.
from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch
from engine._bulk cimport BulkWindow
from engine._reader cimport Reader
from engine._roc cimport Roc

cdef class CountWindow(BulkWindow):
    cdef Roc built  # None until something is read: a window that only fills needs no ROC
    cdef Py_ssize_t limit, held, oldest, capacity
    cdef bint busy
    cdef Py_ssize_t uneven  # events inside with a weight other than 1
    cdef double *scores
    cdef uint8_t *labels
    cdef double *weights  # NULL until a weight other than 1 comes
    cdef int64_t *times  # NULL until a time other than 0 comes

    cdef Roc whole(self)
    cdef int run_counted(self, Batch batch, Reader reader, Py_ssize_t *done) except -1
    cdef int run_weighted(self, Batch batch, Reader reader, Py_ssize_t *done) except -1
    cdef int undo(self, Batch batch, Py_ssize_t i) except -1
    cdef int change(self, Batch batch, Py_ssize_t number, bint enters) except -1
    cdef Py_ssize_t place(
        self, Batch batch, Py_ssize_t number, double **scores, uint8_t **labels
    ) noexcept nogil
    cdef int read(self, Batch batch, Py_ssize_t i, Reader reader) except -1
    cdef int64_t time(self, Batch batch, Py_ssize_t number) noexcept nogil
    cdef int make_room(self, Batch batch) except -1
    cdef int move(self, Py_ssize_t capacity) except -1
    cdef char *moved(self, char *column, char *fresh, size_t width) noexcept nogil
    # Copies the events with numbers in [low, high) from the oldest on.
    cdef void copy(
        self, const char *column, char *target, Py_ssize_t low, Py_ssize_t high, size_t width
    ) noexcept nogil
    cdef object copied(self, const char *column, Py_ssize_t low, Py_ssize_t high, kind)
    cdef void record(self, Batch batch) noexcept nogil
