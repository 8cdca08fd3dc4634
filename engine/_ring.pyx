"""The last so many events in the order they came: a ring of columns that grows with its content.

A window writes a batch into it at once, when all else is done: until then the ring says what the
window was, and a call that fails half-way has it to go back to.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from engine._batch cimport Batch, pointer_of

from engine.events import at_least
from engine.results import Columns


cdef class Ring:
    """Scores, labels, weights and times side by side, from the oldest event on."""

    def __cinit__(self, size):
        self.limit = at_least("size", size, 1)

    def __dealloc__(self):
        free(self.scores)
        free(self.labels)
        free(self.weights)
        free(self.times)

    # What comes and goes

    cdef int make_room(self, Batch batch) except -1:
        """Let the ring hold what the batch will leave in it, before anything changes."""
        cdef Py_ssize_t need = min(self.held + batch.size, self.limit)
        cdef Py_ssize_t i
        if need > self.capacity:
            self.move(min(max(need, 2 * self.capacity, 4), self.limit))
        if batch.weights != NULL and self.weights == NULL:
            self.weights = <double *> allocated(self.capacity * sizeof(double))
            for i in range(self.capacity):
                self.weights[i] = 1
        if batch.times != NULL and self.times == NULL:
            self.times = <int64_t *> allocated(self.capacity * sizeof(int64_t))
            for i in range(self.capacity):
                self.times[i] = 0
        return 0

    cdef void record(self, Batch batch) noexcept nogil:
        """Write the batch into the ring over the events that leave for it."""
        cdef Py_ssize_t skipped = max(batch.size - self.limit, 0), i, at
        cdef Py_ssize_t left = max(self.held + batch.size - self.limit, 0)
        if batch.size == 0:
            return
        if self.weights != NULL:
            for i in range(min(left, self.held)):
                at = (self.oldest + i) % self.capacity
                self.uneven -= self.weights[at] != 1
        # Where the batch begins; what of it left again is written nowhere.
        at = (self.oldest + self.held + skipped) % self.capacity
        for i in range(skipped, batch.size):
            self.scores[at] = batch.scores[i]
            self.labels[at] = batch.labels[i]
            if self.weights != NULL:
                self.weights[at] = batch.weights[i] if batch.weights != NULL else 1
                self.uneven += self.weights[at] != 1
            if self.times != NULL:
                self.times[at] = batch.times[i] if batch.times != NULL else 0
            at = 0 if at + 1 == self.capacity else at + 1
        self.oldest = (self.oldest + left) % self.capacity
        self.held = min(self.held + batch.size, self.limit)

    cdef void drop(self, Py_ssize_t events) noexcept nogil:
        """Let go of the oldest so many."""
        cdef Py_ssize_t i
        for i in range(events):
            self.uneven -= self.weights != NULL and self.weights[self.oldest] != 1
            self.oldest = 0 if self.oldest + 1 == self.capacity else self.oldest + 1
        self.held -= events

    # Copies

    cdef Batch content(self):
        """All that is inside, as a batch of its own without times."""
        cdef Batch batch = Batch()
        cdef double *heavy
        cdef int64_t *clock
        batch.allot(self.held, self.uneven > 0, False, &heavy, &clock)
        self.copy(<char *> self.scores, <char *> batch.scores, 0, self.held, sizeof(double))
        self.copy(<char *> self.labels, <char *> batch.labels, 0, self.held, 1)
        if self.uneven:
            self.copy(<char *> self.weights, <char *> heavy, 0, self.held, sizeof(double))
            batch.weights = heavy
        return batch

    cdef object columns(self, Py_ssize_t low, Py_ssize_t high):
        """The events with numbers in [low, high) from the oldest on, as arrays."""
        scores = self.copied(<char *> self.scores, low, high, np.float64)
        labels = self.copied(<char *> self.labels, low, high, np.uint8)
        weights = times = None
        if self.weights != NULL:
            weights = self.copied(<char *> self.weights, low, high, np.float64)
            weights = None if (weights == 1).all() else weights
        if self.times != NULL:
            times = self.copied(<char *> self.times, low, high, np.int64)
            times = times if times.any() else None
        return Columns(scores, labels, weights, times)

    cdef object copied(self, const char *column, Py_ssize_t low, Py_ssize_t high, kind):
        array = np.empty(high - low, kind)
        self.copy(column, <char *> pointer_of(array), low, high, array.itemsize)
        return array

    cdef void copy(
        self, const char *column, char *target, Py_ssize_t low, Py_ssize_t high, size_t width
    ) noexcept nogil:
        """Copy the events with numbers in [low, high) from the oldest on."""
        cdef Py_ssize_t start = self.oldest + low, count = high - low, straight
        if count <= 0:
            return
        if start >= self.capacity:
            start -= self.capacity
        straight = min(count, self.capacity - start)
        memcpy(target, column + start * width, straight * width)
        memcpy(target + straight * width, column, (count - straight) * width)

    # Memory

    cdef int move(self, Py_ssize_t capacity) except -1:
        """Move the content to a ring of another capacity, the oldest event first."""
        cdef void *scores = NULL
        cdef void *labels = NULL
        cdef void *weights = NULL
        cdef void *times = NULL
        try:
            scores = allocated(capacity * sizeof(double))
            labels = allocated(capacity)
            if self.weights != NULL:
                weights = allocated(capacity * sizeof(double))
            if self.times != NULL:
                times = allocated(capacity * sizeof(int64_t))
        except MemoryError:
            free(scores)
            free(labels)
            free(weights)
            free(times)
            raise
        self.scores = <double *> self.moved(<char *> self.scores, <char *> scores, 8)
        self.labels = <uint8_t *> self.moved(<char *> self.labels, <char *> labels, 1)
        if weights != NULL:
            self.weights = <double *> self.moved(<char *> self.weights, <char *> weights, 8)
        if times != NULL:
            self.times = <int64_t *> self.moved(<char *> self.times, <char *> times, 8)
        self.capacity = capacity
        self.oldest = 0
        return 0

    cdef char *moved(self, char *column, char *fresh, size_t width) noexcept nogil:
        self.copy(column, fresh, 0, self.held, width)
        free(column)
        return fresh

    cdef size_t bytes(self) noexcept nogil:
        return self.capacity * (9 + 8 * (self.weights != NULL) + 8 * (self.times != NULL))

    def _check(self):
        """Assert the invariants; O(n)."""
        cdef Py_ssize_t uneven = 0, i
        assert 0 <= self.held <= min(self.capacity, self.limit)
        for i in range(self.held):
            uneven += weight_at(self, None, i) != 1
        assert uneven == self.uneven


cdef void *allocated(size_t size) except NULL:
    cdef void *memory = malloc(size + 1)
    if memory == NULL:
        raise MemoryError
    return memory
