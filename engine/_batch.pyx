"""Events on their way in: checked, as plain memory.

`engine.events.columns_of` decides what is right and what is refused. Lists of Python numbers, which a
worker sends in small batches, and memory that holds the columns' own types take a shorter way to the
same columns; whatever is unusual about them goes back to `columns_of`.
"""

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.bool cimport PyBool_Check
from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strcmp

from numpy import ndarray

from engine.events import HEAVIEST, LIGHTEST, columns_of, label_of, score_of, weight_of

cdef double LEAST_WEIGHT = LIGHTEST, MOST_WEIGHT = HEAVIEST


cdef void *pointer_of(object array) except NULL:
    """The memory of a contiguous numpy array, which the caller keeps alive."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void *pointer = view.buf
    PyBuffer_Release(&view)
    return pointer


cdef inline double quick_number(object value) noexcept:
    """A float or small int as a double; nan for anything else."""
    if PyFloat_CheckExact(value):
        return PyFloat_AS_DOUBLE(value)
    if PyLong_CheckExact(value) and -(1 << 53) <= value <= 1 << 53:
        return <double> value
    return NAN


cdef double one_score(object value) except? -1:
    """A score as `engine.events.score_of` has it."""
    cdef double number = quick_number(value)
    return number + 0.0 if isfinite(number) else score_of(value)


cdef bint one_label(object value) except? True:
    """A label as `engine.events.label_of` has it."""
    if PyBool_Check(value):
        return value is True
    if PyLong_CheckExact(value) and (value == 0 or value == 1):
        return value == 1
    return label_of(value)


cdef double one_weight(object value) except? -1:
    """A weight as `engine.events.weight_of` has it."""
    cdef double number = quick_number(value)
    return number if LEAST_WEIGHT <= number <= MOST_WEIGHT else weight_of(value)


cdef class Memory:
    """A look at an object's memory, where it has a buffer of one dimension."""

    cdef Py_buffer view
    cdef bint seen
    cdef Py_ssize_t size

    def __cinit__(self, object column):
        self.size = -1
        # An array of a kind of its own may hold more than numbers, as which of them are masked.
        if not PyObject_CheckBuffer(column) or (
            type(column) is not ndarray and isinstance(column, ndarray)
        ):
            return
        try:
            PyObject_GetBuffer(column, &self.view, PyBUF_FORMAT | PyBUF_ND)
        except (BufferError, ValueError):
            return  # not in a row, or of no type that a buffer can have
        self.seen = True
        if self.view.ndim == 1:
            self.size = self.view.shape[0]

    def __dealloc__(self):
        if self.seen:
            PyBuffer_Release(&self.view)

    cdef bint holds(self, const char *kind, Py_ssize_t width, Py_ssize_t size) noexcept:
        """Tell whether there are so many numbers of a kind."""
        return (
            self.size == size >= 0
            and self.view.itemsize == width
            and self.view.format != NULL
            and strcmp(self.view.format, kind) == 0
        )


cdef class Batch:
    """Events as columns; they live as long as the batch."""

    def __dealloc__(self):
        free(self.owned)

    cdef int allot(
        self, Py_ssize_t size, bint weighted, bint timed, double **heavy, int64_t **clock
    ) except -1:
        """Make columns to be written to."""
        self.owned = malloc(size * (8 + 8 * weighted + 8 * timed + 1) + 1)
        if self.owned == NULL:
            raise MemoryError
        self.size = size
        self.scores = <double *> self.owned
        heavy[0] = self.scores + size
        clock[0] = <int64_t *> (heavy[0] + (size if weighted else 0))
        self.labels = <uint8_t *> (clock[0] + (size if timed else 0))
        return 0

    cdef bint take_buffers(self, object scores, object labels, object weights, object times) except -1:
        """Take columns of the right types out of memory; False where one wants a closer look."""
        cdef bint weighted = weights is not None, timed = times is not None
        cdef Memory score = Memory(scores), label = Memory(labels)
        cdef Memory weight = Memory(weights) if weighted else None
        cdef Memory time = Memory(times) if timed else None
        cdef Py_ssize_t size = score.size, i
        cdef double *heavy
        cdef int64_t *clock
        if not (score.holds(b"d", 8, size) and label.holds(b"B", 1, size)):
            return False
        if weighted and not weight.holds(b"d", 8, size):
            return False
        if timed and not (time.holds(b"q", 8, size) or time.holds(b"l", 8, size)):
            return False
        self.allot(size, weighted, timed, &heavy, &clock)
        memcpy(self.labels, label.view.buf, size)
        for i in range(size):
            self.scores[i] = (<double *> score.view.buf)[i] + 0.0
            if not isfinite(self.scores[i]) or self.labels[i] > 1:
                return False
        if weighted:
            for i in range(size):
                heavy[i] = (<double *> weight.view.buf)[i]
                if not LEAST_WEIGHT <= heavy[i] <= MOST_WEIGHT:
                    return False
                if heavy[i] != 1:
                    self.weights = heavy
        if timed:
            for i in range(size):
                clock[i] = (<int64_t *> time.view.buf)[i]
                if clock[i]:
                    self.times = clock
        return True

    cdef bint take_lists(self, list scores, list labels, list weights, list times) except -1:
        """Take plain lists; False where an element wants a closer look."""
        cdef Py_ssize_t size = len(scores), i
        cdef bint weighted = weights is not None, timed = times is not None
        cdef double number
        if len(labels) != size or (weighted and len(weights) != size):
            return False
        if timed and len(times) != size:
            return False
        cdef double *heavy
        cdef int64_t *clock
        self.allot(size, weighted, timed, &heavy, &clock)
        for i in range(size):
            number = quick_number(scores[i])
            if not isfinite(number):
                return False
            self.scores[i] = number + 0.0
            label = labels[i]
            if PyBool_Check(label):
                self.labels[i] = label is True
            elif PyLong_CheckExact(label) and (label == 0 or label == 1):
                self.labels[i] = label
            else:
                return False
            if weighted:
                number = quick_number(weights[i])
                if not LEAST_WEIGHT <= number <= MOST_WEIGHT:
                    return False
                heavy[i] = number
                if number != 1:
                    self.weights = heavy
            if timed:
                if not PyLong_CheckExact(times[i]) or not -(1 << 62) <= times[i] <= 1 << 62:
                    return False
                clock[i] = times[i]
                if clock[i]:
                    self.times = clock
        return True


cdef Batch batch_of(object scores, object labels, object weights, object times):
    """Check events; errors are those of `engine.events.columns_of`."""
    cdef Batch batch = Batch()
    if (
        type(scores) is list
        and type(labels) is list
        and (weights is None or type(weights) is list)
        and (times is None or type(times) is list)
        and batch.take_lists(scores, labels, weights, times)
    ):
        return batch
    if PyObject_CheckBuffer(scores):
        batch = Batch()
        if batch.take_buffers(scores, labels, weights, times):
            return batch
    return batch_of_columns(columns_of(scores, labels, weights, times))


cdef Batch batch_of_columns(object columns):
    """Take columns that were checked before."""
    cdef Batch batch = Batch()
    batch.columns = columns
    batch.size = len(columns.scores)
    if batch.size == 0:
        return batch
    batch.scores = <double *> pointer_of(columns.scores)
    batch.labels = <uint8_t *> pointer_of(columns.labels)
    if columns.weights is not None:
        batch.weights = <double *> pointer_of(columns.weights)
    if columns.times is not None:
        batch.times = <int64_t *> pointer_of(columns.times)
    return batch
