"""Events of a window in the order in which they leave: a ring of columns that grows.

Events mostly come in that order already. One that comes later than younger ones is put before them.

What has left stays where it was until another event is written over it, and the room that a call
reserves is room beside all that was inside when it began: so a call can be taken back.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from engine._batch cimport Batch


cdef class Timeline:
    """Scores, labels, weights and times side by side, the first to leave first."""

    def __dealloc__(self):
        free(self.scores)
        free(self.weights)
        free(self.labels)
        free(self.times)

    cdef int reserve(self, Py_ssize_t more, bint timed) except -1:
        """Make room for so many events more, before anything changes."""
        cdef Py_ssize_t capacity = self.held + more
        cdef void *scores
        cdef void *weights
        cdef void *labels
        cdef void *times
        timed = timed or self.times != NULL
        if capacity <= self.capacity and timed == (self.times != NULL):
            return 0
        capacity = max(capacity, self.held + self.held // 2 + 16, self.capacity)
        scores = malloc(capacity * sizeof(double))
        weights = malloc(capacity * sizeof(double))
        labels = malloc(capacity)
        times = malloc(capacity * sizeof(int64_t)) if timed else NULL
        if scores == NULL or weights == NULL or labels == NULL or (timed and times == NULL):
            free(scores)
            free(weights)
            free(labels)
            free(times)
            raise MemoryError
        self.scores = <double *> self.moved(<char *> self.scores, <char *> scores, 8)
        self.weights = <double *> self.moved(<char *> self.weights, <char *> weights, 8)
        self.labels = <uint8_t *> self.moved(<char *> self.labels, <char *> labels, 1)
        if timed and self.times == NULL:
            memset(times, 0, capacity * sizeof(int64_t))
            self.times = <int64_t *> times
        elif timed:
            self.times = <int64_t *> self.moved(<char *> self.times, <char *> times, 8)
        self.capacity = capacity
        self.oldest = 0
        return 0

    cdef char *moved(self, char *column, char *fresh, size_t width) noexcept nogil:
        """Copy a column to where it has more room, the oldest event first."""
        cdef Py_ssize_t straight = min(self.held, self.capacity - self.oldest)
        if self.held:
            memcpy(fresh, column + self.oldest * width, straight * width)
            memcpy(fresh + straight * width, column, (self.held - straight) * width)
        free(column)
        return fresh

    cdef void insert(
        self, double score, uint8_t label, double weight, int64_t time, bint ordered
    ) noexcept nogil:
        """Put an event behind all others or, `ordered`, behind those that are not younger.

        There is room. O(1), and one step for each younger event.
        """
        cdef Py_ssize_t at = self.place(self.held), before
        if ordered:
            while at != self.oldest:
                before = (at if at else self.capacity) - 1
                if self.times[before] <= time:
                    break
                self.scores[at] = self.scores[before]
                self.labels[at] = self.labels[before]
                self.weights[at] = self.weights[before]
                self.times[at] = self.times[before]
                at = before
        self.scores[at] = score
        self.labels[at] = label
        self.weights[at] = weight
        if self.times != NULL:
            self.times[at] = time
        self.held += 1

    cdef inline void drop(self) noexcept nogil:
        """Let go of the first event."""
        self.oldest = 0 if self.oldest + 1 == self.capacity else self.oldest + 1
        self.held -= 1

    cdef void go_back(
        self, Batch batch, Py_ssize_t done, Py_ssize_t oldest, Py_ssize_t held, bint ordered
    ) noexcept nogil:
        """Take `done` events of a batch out, and those back that left since `reserve`.

        `oldest` and `held` are what they were then. As many steps as the insertions took.
        """
        cdef Py_ssize_t i, number, at, behind
        self.oldest = oldest
        self.held = held
        if not ordered:
            return
        for i in range(done):
            self.held += batch.labels[i] != LATE
        for i in range(done - 1, -1, -1):
            if batch.labels[i] == LATE:
                continue
            # Those of its time that came before it stand before it, and the others are out again.
            number = self.held - 1
            while self.time(number) > (0 if batch.times == NULL else batch.times[i]):
                number -= 1
            self.held -= 1
            at = self.place(number)
            while number < self.held:
                number += 1
                behind = self.place(number)
                self.scores[at] = self.scores[behind]
                self.labels[at] = self.labels[behind]
                self.weights[at] = self.weights[behind]
                self.times[at] = self.times[behind]
                at = behind

    cdef Batch content(self):
        """All that is inside, as a batch of its own without times."""
        cdef Batch batch = Batch()
        cdef Py_ssize_t i, at
        cdef double *heavy
        cdef int64_t *clock
        batch.allot(self.held, True, False, &heavy, &clock)
        for i in range(self.held):
            at = self.place(i)
            batch.scores[i] = self.scores[at]
            batch.labels[i] = self.labels[at]
            heavy[i] = self.weights[at]
            if heavy[i] != 1:
                batch.weights = heavy
        return batch

    cdef inline Py_ssize_t place(self, Py_ssize_t number) noexcept nogil:
        """Where an event stands, by its number from the first on."""
        cdef Py_ssize_t at = self.oldest + number
        return at - self.capacity if at >= self.capacity else at

    cdef inline int64_t time(self, Py_ssize_t number) noexcept nogil:
        return 0 if self.times == NULL else self.times[self.place(number)]

    cdef list rows(self):
        """Score, label, weight and time of every event, the first to leave first."""
        cdef Py_ssize_t i, at
        rows = []
        for i in range(self.held):
            at = self.place(i)
            rows.append((self.scores[at], self.labels[at], self.weights[at], self.time(i)))
        return rows

    cdef size_t bytes(self) noexcept nogil:
        return self.capacity * (17 + (8 if self.times != NULL else 0))
