"""The last so many events and their ROC, driven in bulk below Python.

Events stand in a ring, one column for each part of them, which grows with its content. A bulk call
first changes the ROC event by event, taking those that leave from the ring or from the batch itself,
and reads it at each slide; it writes the ring once, at the end. So a call that fails half-way undoes
its events in the ROC and leaves the window as it was.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from engine._batch cimport Batch, pointer_of
from engine._bulk cimport BulkWindow, known
from engine._reader cimport Reader
from engine._roc cimport Roc, refuse
from engine._severity cimport Severity
from engine._tree cimport DONE, Status

from engine.reference.window import at_least
from engine.results import Columns, Readings


cdef class CountWindow(BulkWindow):
    """The last `size` events pushed, and their ROC.

    Events are numbered from 0 in the order they were pushed: their ordinals. Change `roc` through
    the window only.

    Parameters
    ----------
    size
        How many events at most, 1 or more.

    Raises
    ------
    ValueError
        When the size is less than 1.

    Examples
    --------
    >>> from engine import CountWindow
    >>> window = CountWindow(2)
    >>> window.slide([0.1, 0.7, 0.4], [0, 1, 1], every=1, read=("auc", "events"))
    Readings(auc=array([nan,  1., nan]), events=array([1, 2, 2]))
    >>> window.first, window.seen, len(window)
    (1, 3, 2)
    """

    def __cinit__(self, size):
        self.limit = at_least("size", size, 1)

    def __dealloc__(self):
        free(self.scores)
        free(self.labels)
        free(self.weights)
        free(self.times)

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.held

    @property
    def roc(self):
        """The ROC of what is inside; made when it is first asked for or read, in O(n log n)."""
        return self.whole()

    @property
    def size(self):
        """How many events at most."""
        return self.limit

    @property
    def first(self):
        """Ordinal of the oldest event inside; `seen` when there is none."""
        return self.seen - self.held

    def readings(self, read=("auc", "h"), alpha=2.0, beta=2.0):
        """Read the window as it is; O(log n) and what each reading takes.

        Parameters
        ----------
        read, alpha, beta
            As for `slide`.

        Returns
        -------
        readings
            As of `slide`, with one entry.

        Raises
        ------
        ValueError
            When a name or a parameter is bad.
        """
        cdef Reader reader = Reader(known(read), 1, Severity(alpha, beta), 1)
        cdef Batch nothing = Batch()
        if self.busy:
            raise RuntimeError("another thread is pushing events into this window")
        self.busy = True
        try:
            self.whole()
            if self.held:
                self.read(nothing, -1, reader)
            else:
                reader.read(self.built, 0, 0, 0)
        finally:
            self.busy = False
        return Readings(reader.names, reader.arrays)

    def columns(self, start, stop):
        """Copy the events with ordinals in [start, stop) that are still inside; O(stop - start)."""
        cdef Py_ssize_t low = max(min(start - self.first, self.held), 0)
        cdef Py_ssize_t high = max(min(stop - self.first, self.held), low)
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

    @classmethod
    def restore(cls, size, first, columns):
        """Make a window of events kept elsewhere; O(n log n).

        Parameters
        ----------
        size
            Of the window. Of more events the oldest leave.
        first
            Ordinal of the first event in `columns`, 0 or more.
        columns
            The events, oldest first.

        Raises
        ------
        ValueError
            When a parameter or an event is bad.
        """
        cdef CountWindow window = cls(size)
        window.seen = at_least("first", first, 0)
        window.extend(*columns)
        return window

    def __reduce__(self):
        columns = self.columns(self.first, self.seen)
        return type(self).restore, (self.limit, self.first, columns)

    def resize(self, size):
        """Change the size; of more events the oldest leave.

        Raises
        ------
        ValueError
            When the size is less than 1.
        """
        cdef Py_ssize_t limit = at_least("size", size, 1)
        cdef Py_ssize_t at
        while self.held > limit:
            at = self.oldest
            if self.built is not None:
                self.built.remove_event(
                    self.scores[at], self.labels[at], 1 if self.weights == NULL else self.weights[at]
                )
            self.uneven -= self.weights != NULL and self.weights[at] != 1
            self.oldest = 0 if at + 1 == self.capacity else at + 1
            self.held -= 1
        self.limit = limit
        if self.capacity > limit:
            try:
                self.move(limit)
            except MemoryError:
                pass  # the larger ring holds them as well

    # A run of events

    cdef Roc whole(self):
        """The ROC of what is inside."""
        cdef Roc roc = self.built
        if roc is None:
            roc = Roc()
            scores, labels, weights, _ = self.columns(self.first, self.seen)
            roc.extend(scores, labels, weights)
            self.built = roc
        return roc

    cdef int run(self, Batch batch, bint timed, Reader reader) except -1:
        """Push checked events and read at the slides, all or nothing."""
        cdef Py_ssize_t done = 0
        if self.busy:
            raise RuntimeError("another thread is pushing events into this window")
        self.make_room(batch)
        if self.built is None:
            if reader is None:
                self.record(batch)
                return 0
            self.whole()
        if self.held == 0 and reader is None and batch.weights == NULL:
            done = max(batch.size - self.limit, 0)
            self.built.fill(batch.scores + done, batch.labels + done, batch.size - done)
            self.record(batch)
            return 0
        # Some readings are Python and may let another thread in half-way.
        self.busy = True
        try:
            # Without uneven weights there still are blocks where memory ran out for moving them.
            if batch.weights == NULL and self.uneven == 0 and self.built.blocks is None:
                self.run_counted(batch, reader, &done)
            else:
                self.run_weighted(batch, reader, &done)
        except BaseException:
            while done:
                done -= 1
                self.undo(batch, done)
            raise
        finally:
            self.busy = False
        self.record(batch)
        return 0

    cdef int run_counted(self, Batch batch, Reader reader, Py_ssize_t *done) except -1:
        """Change the ROC by a batch while every weight is 1."""
        cdef Roc roc = self.built
        cdef Py_ssize_t i, at, leaving = self.held - self.limit
        cdef double *scores
        cdef uint8_t *labels
        cdef Status status
        cdef int64_t left = -1
        if reader is not None:
            left = reader.every - self.seen % reader.every
        for i in range(batch.size):
            # The event numbered `leaving + i` from the oldest on leaves when i enters.
            if leaving + i >= 0:
                at = self.place(batch, leaving + i, &scores, &labels)
                roc.leave(scores[at], labels[at])
            status = roc.enter(batch.scores[i], batch.labels[i])
            if status != DONE:
                if leaving + i >= 0:
                    roc.enter(scores[at], labels[at])
                refuse(status, batch.scores[i], batch.labels[i])
            done[0] = i + 1
            left -= 1
            if left == 0:
                left = reader.every
                self.read(batch, i, reader)
        return 0

    cdef int run_weighted(self, Batch batch, Reader reader, Py_ssize_t *done) except -1:
        """Change the ROC by a batch with weights."""
        cdef Py_ssize_t i, leaving = self.held - self.limit
        for i in range(batch.size):
            if leaving + i >= 0:
                self.change(batch, leaving + i, False)
            try:
                self.change(batch, self.held + i, True)
            except BaseException:
                if leaving + i >= 0:
                    self.change(batch, leaving + i, True)
                raise
            done[0] = i + 1
            if reader is not None and (self.seen + i + 1) % reader.every == 0:
                self.read(batch, i, reader)
        return 0

    cdef int undo(self, Batch batch, Py_ssize_t i) except -1:
        """Take event i of the batch out of the ROC again and put back what left for it."""
        self.change(batch, self.held + i, False)
        if self.held + i >= self.limit:
            self.change(batch, self.held + i - self.limit, True)
        return 0

    cdef int change(self, Batch batch, Py_ssize_t number, bint enters) except -1:
        """Put an event into the ROC or take it out, by its number from the oldest on."""
        cdef double *scores
        cdef uint8_t *labels
        cdef double weight = 1
        cdef Py_ssize_t at = self.place(batch, number, &scores, &labels)
        if number >= self.held:
            weight = batch.weights[at] if batch.weights != NULL else 1
        elif self.weights != NULL:
            weight = self.weights[at]
        if enters:
            return self.built.add_event(scores[at], labels[at], weight)
        return self.built.remove_event(scores[at], labels[at], weight)

    cdef Py_ssize_t place(
        self, Batch batch, Py_ssize_t number, double **scores, uint8_t **labels
    ) noexcept nogil:
        """Where an event stands, by its number from the oldest on: in the ring, then the batch."""
        cdef Py_ssize_t at
        if number >= self.held:
            scores[0] = batch.scores
            labels[0] = batch.labels
            return number - self.held
        scores[0] = self.scores
        labels[0] = self.labels
        at = self.oldest + number
        return at - self.capacity if at >= self.capacity else at

    cdef int read(self, Batch batch, Py_ssize_t i, Reader reader) except -1:
        """Read the window as it is after event i of the batch."""
        cdef int64_t events = min(self.held + i + 1, self.limit)
        return reader.read(
            self.built,
            events,
            self.time(batch, self.held + i + 1 - events),
            self.time(batch, self.held + i),
        )

    cdef int64_t time(self, Batch batch, Py_ssize_t number) noexcept nogil:
        """Time of an event by its number from the oldest on, ms."""
        cdef Py_ssize_t at
        if number >= self.held:
            return batch.times[number - self.held] if batch.times != NULL else 0
        if self.times == NULL:
            return 0
        at = self.oldest + number
        return self.times[at - self.capacity if at >= self.capacity else at]

    # The ring

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

    cdef object copied(self, const char *column, Py_ssize_t low, Py_ssize_t high, kind):
        array = np.empty(high - low, kind)
        self.copy(column, <char *> pointer_of(array), low, high, array.itemsize)
        return array

    cdef void record(self, Batch batch) noexcept nogil:
        """Write the batch into the ring over the events that left."""
        cdef Py_ssize_t skipped = max(batch.size - self.limit, 0), i, at
        cdef Py_ssize_t left = max(self.held + batch.size - self.limit, 0)
        if self.weights != NULL:
            for i in range(min(left, self.held)):
                at = (self.oldest + i) % self.capacity
                self.uneven -= self.weights[at] != 1
        # Where the batch begins; what of it left again is written nowhere.
        at = self.oldest + self.held + skipped
        if self.capacity:
            at %= self.capacity
        for i in range(skipped, batch.size):
            self.scores[at] = batch.scores[i]
            self.labels[at] = batch.labels[i]
            if self.weights != NULL:
                self.weights[at] = batch.weights[i] if batch.weights != NULL else 1
                self.uneven += self.weights[at] != 1
            if self.times != NULL:
                self.times[at] = batch.times[i] if batch.times != NULL else 0
            at = 0 if at + 1 == self.capacity else at + 1
        if self.capacity:
            self.oldest = (self.oldest + left) % self.capacity
        self.held = min(self.held + batch.size, self.limit)
        self.seen += batch.size

    def _check(self):
        """Assert the invariants; O(n log n)."""
        cdef Py_ssize_t uneven = 0
        if self.built is not None:
            self.built._check()
        assert 0 <= self.held <= min(self.capacity, self.limit)
        assert self.first >= 0
        columns = self.columns(self.first, self.seen)
        if columns.weights is not None:
            uneven = (columns.weights != 1).sum()
        assert uneven == self.uneven
        if self.built is None:
            return
        fresh = Roc()
        fresh.extend(columns.scores, columns.labels, columns.weights)
        assert len(fresh) == len(self.built) == self.held
        for ours, theirs in zip(self.built.arrays(), (<Roc> fresh).arrays()):
            assert np.array_equal(ours, theirs)

    def _bytes(self):
        """Memory held for events: the ring and the ROC, without the objects themselves."""
        width = 9 + 8 * (self.weights != NULL) + 8 * (self.times != NULL)
        return self.capacity * width + (0 if self.built is None else self.built._bytes())


cdef void *allocated(size_t size) except NULL:
    cdef void *memory = malloc(size + 1)
    if memory == NULL:
        raise MemoryError
    return memory
