"""What a bulk call of a window reads at its slides, and where it writes."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from engine._batch cimport pointer_of
from engine._counts cimport negatives, positives
from engine._roc cimport Roc
from engine._severity cimport Severity

import numpy as np

from engine.readings import READERS
from engine.results import Readings

NAMES = {
    "auc": AUC,
    "h": H,
    "positives": POSITIVES,
    "negatives": NEGATIVES,
    "events": EVENTS,
    "start": START,
    "end": END,
    # What is read together, in the order in which it is answered.
    "auc_low": LOW,
    "auc_high": HIGH,
    "auc_strict": STRICT,
    "tie_mass": TIED,
    "tie_bound": BOUND,
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
            whole = POSITIVES <= self.codes[i] <= END
            self.arrays.append(np.empty(rows, np.int64 if whole else np.float64))
            self.targets[i] = pointer_of(self.arrays[i])

    def __dealloc__(self):
        free(self.codes)
        free(self.targets)

    cdef inline void put(self, Py_ssize_t column, double value) noexcept nogil:
        (<double *> self.targets[column])[self.row] = value

    cdef inline void put_whole(self, Py_ssize_t column, int64_t value) noexcept nogil:
        (<int64_t *> self.targets[column])[self.row] = value

    cdef int read(self, Roc roc, int64_t events, int64_t start, int64_t end) except -1:
        """Write one row: the readings after an event that made the window slide."""
        cdef Py_ssize_t i
        cdef Name code
        cdef double value
        if roc.blocks is not None:
            roc.settle()
            if self.counts and roc.blocks is not None:
                self.widen()
        for i in range(self.width):
            code = self.codes[i]
            if code == EVENTS:
                self.put_whole(i, events)
            elif code == START:
                self.put_whole(i, start)
            elif code == END:
                self.put_whole(i, end)
            elif code == POSITIVES and self.counts:
                self.put_whole(i, positives(roc.tree.total))
            elif code == NEGATIVES and self.counts:
                self.put_whole(i, negatives(roc.tree.total))
            else:
                if code == AUC and roc.blocks is None:
                    value = roc.tree.auc()
                elif code == H and roc.blocks is None:
                    value = roc.h_by_data(self.severity)
                else:
                    value = self.ask(i, roc)
                self.put(i, value)
        self.end_row()
        return 0

    cdef double ask(self, Py_ssize_t column, object roc) except? -1:
        """What a ROC answers for a column; what is read together it is asked for once in a row."""
        cdef Name code = self.codes[column]
        if LOW <= code <= HIGH:
            if self.interval is None:
                self.interval = roc.auc_interval()
            return self.interval[<int> code - LOW]
        if STRICT <= code <= BOUND:
            if self.ties is None:
                self.ties = roc.ties()
            return self.ties[<int> code - STRICT]
        return READERS[self.names[column]](roc, self.severity.alpha, self.severity.beta)

    cdef void end_row(self) noexcept:
        self.row += 1
        self.interval = self.ties = None

    cdef object gather(self):
        """Put what was read together, once all is read: the last that may want memory."""
        self.readings = Readings(self.names, self.arrays)
        return self.readings

    cdef int widen(self) except -1:
        """Make room for weights of classes that are no integers."""
        cdef Py_ssize_t i
        for i in range(self.width):
            if self.codes[i] == POSITIVES or self.codes[i] == NEGATIVES:
                self.arrays[i] = self.arrays[i].astype(np.float64)
                self.targets[i] = pointer_of(self.arrays[i])
        self.counts = False
        return 0
