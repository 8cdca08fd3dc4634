"""What a bulk call of a window reads at its slides, and where it writes."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from engine._batch cimport pointer_of
from engine._severity cimport Severity

import numpy as np

NAMES = {
    "auc": AUC,
    "h": H,
    "positives": POSITIVES,
    "negatives": NEGATIVES,
    "events": EVENTS,
    "start": START,
    "end": END,
}


cdef class Reader:
    """Names, how often to read them, and an array for each with an entry per slide."""

    def __cinit__(self, tuple names, int64_t every, Severity severity, Py_ssize_t rows):
        cdef Py_ssize_t i
        self.names = names
        self.every = every
        self.severity = severity
        self.counts = True
        self.width = len(names)
        self.codes = <Name *> malloc(self.width * sizeof(Name) + 1)
        self.targets = <void **> malloc(self.width * sizeof(void *) + 1)
        if self.codes == NULL or self.targets == NULL:
            raise MemoryError
        self.arrays = []
        for i in range(self.width):
            self.codes[i] = NAMES.get(names[i], OTHER)
            kind = np.int64 if EVENTS <= self.codes[i] <= END else np.float64
            self.arrays.append(np.empty(rows, kind))
            self.targets[i] = pointer_of(self.arrays[i])

    def __dealloc__(self):
        free(self.codes)
        free(self.targets)

    cdef inline void put(self, Py_ssize_t column, double value) noexcept nogil:
        (<double *> self.targets[column])[self.row] = value

    cdef inline void put_whole(self, Py_ssize_t column, int64_t value) noexcept nogil:
        (<int64_t *> self.targets[column])[self.row] = value
