# The last so many events in the order they came: what windows do with it below Python.
from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch


cdef class Ring:
    cdef Py_ssize_t limit, held, oldest, capacity
    cdef Py_ssize_t uneven  # events inside with a weight other than 1
    cdef double *scores
    cdef uint8_t *labels
    cdef double *weights  # NULL until a weight other than 1 comes
    cdef int64_t *times  # NULL until a time other than 0 comes

    cdef int make_room(self, Batch batch) except -1
    cdef int move(self, Py_ssize_t capacity) except -1
    cdef void record(self, Batch batch) noexcept nogil
    cdef void drop(self, Py_ssize_t events) noexcept nogil
    cdef Batch content(self)
    cdef object columns(self, Py_ssize_t low, Py_ssize_t high)
    # Copies the events with numbers in [low, high) from the oldest on.
    cdef void copy(
        self, const char *column, char *target, Py_ssize_t low, Py_ssize_t high, size_t width
    ) noexcept nogil
    cdef object copied(self, const char *column, Py_ssize_t low, Py_ssize_t high, kind)
    cdef char *moved(self, char *column, char *fresh, size_t width) noexcept nogil
    cdef size_t bytes(self) noexcept nogil


# Events of a ring and of a batch behind it, by their number from the oldest in the ring on.

cdef inline Py_ssize_t in_ring(Ring ring, Py_ssize_t number) noexcept nogil:
    """Where an event of the ring stands."""
    cdef Py_ssize_t at = ring.oldest + number
    return at - ring.capacity if at >= ring.capacity else at


cdef inline Py_ssize_t place(
    Ring ring, Batch batch, Py_ssize_t number, double **scores, uint8_t **labels
) noexcept nogil:
    """Where an event stands in which columns."""
    if number >= ring.held:
        scores[0] = batch.scores
        labels[0] = batch.labels
        return number - ring.held
    scores[0] = ring.scores
    labels[0] = ring.labels
    return in_ring(ring, number)


cdef inline double weight_at(Ring ring, Batch batch, Py_ssize_t number) noexcept nogil:
    if number >= ring.held:
        return 1 if batch.weights == NULL else batch.weights[number - ring.held]
    return 1 if ring.weights == NULL else ring.weights[in_ring(ring, number)]


cdef inline int64_t time_at(Ring ring, Batch batch, Py_ssize_t number) noexcept nogil:
    """In ms."""
    if number >= ring.held:
        return 0 if batch.times == NULL else batch.times[number - ring.held]
    return 0 if ring.times == NULL else ring.times[in_ring(ring, number)]
