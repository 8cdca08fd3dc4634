"""The last so many events of ordered classes and their ROC, driven in bulk below Python.

A bulk call changes the ROC event by event, taking those that leave from the ring or from the batch
itself, and writes the ring once, at the end: a call that fails half-way undoes its events in the ROC and
leaves the window as it was.
"""

from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport pointer_of
from engine._ordinal cimport OrdinalRoc

import numpy as np

from engine.events import class_of, ordinal_columns_of, score_of, weight_of
from engine.reference.window import at_least
from engine.results import Readings


cdef class Column:
    """Events side by side: scores, labels and weights, which are NULL when all are 1."""

    cdef object kept
    cdef double *scores
    cdef uint8_t *labels
    cdef double *weights
    cdef Py_ssize_t size

    def __cinit__(self, scores, labels, weights):
        self.kept = scores, labels, weights
        self.size = len(scores)
        if self.size == 0:
            return
        self.scores = <double *> pointer_of(scores)
        self.labels = <uint8_t *> pointer_of(labels)
        if weights is not None:
            self.weights = <double *> pointer_of(weights)


cdef class OrdinalCountWindow:
    """The last `size` events pushed, with labels 0 .. r-1 in order, and their ROC.

    Change `roc` through the window only.

    Parameters
    ----------
    classes
        r, from 2 to 8.
    size
        How many events at most, 1 or more.

    Raises
    ------
    ValueError
        When there are fewer classes or more, or the size is less than 1.

    Examples
    --------
    >>> from engine import OrdinalCountWindow
    >>> window = OrdinalCountWindow(classes=3, size=3)
    >>> window.slide([0.1, 0.5, 0.9, 1.0], [0, 1, 2, 0], every=1)
    Readings(vuhs=array([nan, nan,  1.,  0.]), events=array([1, 2, 3, 3]))
    """

    cdef readonly OrdinalRoc roc
    cdef readonly int64_t seen
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t held, oldest
    cdef Column ring  # as large as what the window has held so far

    def __cinit__(self, classes, size):
        self.roc = OrdinalRoc(classes)
        self.size = at_least("size", size, 1)
        self.ring = ring_of(0, False)

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.held

    def push(self, score, label, weight=1):
        """Put an event in; the oldest leaves when the window is full. O(log n).

        Raises
        ------
        ValueError
            When one is bad as for `OrdinalRoc.add`; nothing has changed then.
        """
        score, label = score_of(score), class_of(label, self.roc.classes)
        self.extend([score], [label], [weight_of(weight)])

    def extend(self, scores, labels, weights=None):
        """Push many events, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad, or the lengths are unequal.
        """
        self.run(self.admitted(scores, labels, weights), 0, None, None)

    def slide(self, scores, labels, weights=None, *, every):
        """Push many events, all or none, and read the window each time `seen` is a multiple.

        Parameters
        ----------
        scores, labels, weights
            As for `extend`.
        every
            Read after every so many events, counted from the window's first one ever.

        Returns
        -------
        readings
            `vuhs` (float64) and `events` (int64), an entry per slide.

        Raises
        ------
        ValueError
            When an element or `every` is bad; nothing has changed then.
        """
        cdef int64_t step = at_least("every", every, 1)
        cdef Column batch = self.admitted(scores, labels, weights)
        cdef Py_ssize_t rows = (self.seen + batch.size) // step - self.seen // step
        vuhs, events = np.empty(rows), np.empty(rows, np.int64)
        self.run(batch, step, vuhs, events)
        return Readings(("vuhs", "events"), (vuhs, events))

    def __reduce__(self):
        columns = [
            np.roll(column, -self.oldest)[: self.held] if column is not None else None
            for column in self.ring.kept
        ]
        return type(self)._of_columns, (self.roc.classes, self.size, self.seen, *columns)

    @classmethod
    def _of_columns(cls, classes, size, seen, scores, labels, weights):
        """Make one of what it was; oldest events first."""
        cdef OrdinalCountWindow window = cls(classes, size)
        window.extend(scores, labels, weights)
        window.seen = seen
        return window

    cdef Column admitted(self, scores, labels, weights):
        columns = ordinal_columns_of(scores, labels, self.roc.classes, weights)
        return Column(columns.scores, columns.labels, columns.weights)

    cdef int run(self, Column batch, int64_t every, double[::1] vuhs, int64_t[::1] events) except -1:
        """Push checked events and read at the slides, if `every` is not 0. All or nothing."""
        cdef Py_ssize_t i, done = 0, leaving = self.held - self.size, row = 0
        cdef int64_t left = every - self.seen % every if every else -1
        self.make_room(batch)
        try:
            for i in range(batch.size):
                # The event numbered `leaving + i` from the oldest on leaves when i enters.
                if leaving + i >= 0:
                    self.change(batch, leaving + i, False)
                try:
                    self.change(batch, self.held + i, True)
                except BaseException:
                    if leaving + i >= 0:
                        self.change(batch, leaving + i, True)
                    raise
                done = i + 1
                left -= 1
                if left == 0:
                    left = every
                    vuhs[row] = self.roc.tree.vuhs()
                    events[row] = min(self.held + done, self.size)
                    row += 1
        except BaseException:
            for i in range(done - 1, -1, -1):
                self.change(batch, self.held + i, False)
                if leaving + i >= 0:
                    self.change(batch, leaving + i, True)
            raise
        self.record(batch)
        return 0

    cdef inline int change(self, Column batch, Py_ssize_t number, bint enters) except -1:
        """Put an event into the ROC or take it out, by its number from the oldest on."""
        cdef Column column = self.ring if number < self.held else batch
        cdef Py_ssize_t at = number - self.held
        if number < self.held:
            at = self.oldest + number
            if at >= self.ring.size:
                at -= self.ring.size
        cdef double weight = 1 if column.weights == NULL else column.weights[at]
        if enters:
            return self.roc.add_event(column.scores[at], column.labels[at], weight)
        return self.roc.remove_event(column.scores[at], column.labels[at], weight)

    # The ring

    cdef int make_room(self, Column batch) except -1:
        """Let the ring hold what the batch will leave in it, before anything changes."""
        cdef Py_ssize_t need = min(self.held + batch.size, self.size), i, at
        cdef bint weighted = self.ring.weights != NULL or batch.weights != NULL
        cdef Column ring = self.ring
        if need <= ring.size and weighted == (ring.weights != NULL):
            return 0
        if need > ring.size:
            need = min(max(need, 2 * ring.size, 16), self.size)
        else:
            need = ring.size
        ring = ring_of(need, weighted)
        for i in range(self.held):
            at = (self.oldest + i) % self.ring.size
            ring.scores[i] = self.ring.scores[at]
            ring.labels[i] = self.ring.labels[at]
            if weighted:
                ring.weights[i] = 1 if self.ring.weights == NULL else self.ring.weights[at]
        self.ring = ring
        self.oldest = 0
        return 0

    cdef void record(self, Column batch) noexcept:
        """Write the batch into the ring over the events that left."""
        cdef Py_ssize_t skipped = max(batch.size - self.size, 0), i, at
        cdef Py_ssize_t left = max(self.held + batch.size - self.size, 0)
        cdef Column ring = self.ring
        if batch.size == 0:
            return
        # Where the batch begins; what of it left again is written nowhere.
        at = (self.oldest + self.held + skipped) % ring.size
        for i in range(skipped, batch.size):
            ring.scores[at] = batch.scores[i]
            ring.labels[at] = batch.labels[i]
            if ring.weights != NULL:
                ring.weights[at] = 1 if batch.weights == NULL else batch.weights[i]
            at = 0 if at + 1 == ring.size else at + 1
        self.oldest = (self.oldest + left) % ring.size
        self.held = min(self.held + batch.size, self.size)
        self.seen += batch.size

    def _check(self):
        """Assert the invariants; O(n log n)."""
        cdef Py_ssize_t i
        cdef OrdinalRoc fresh = OrdinalRoc(self.roc.classes)
        self.roc._check()
        assert self.held <= min(self.size, self.seen)
        assert self.held <= self.ring.size <= self.size
        for i in range(self.held):
            at = (self.oldest + i) % self.ring.size
            weight = 1 if self.ring.weights == NULL else self.ring.weights[at]
            fresh.add(self.ring.scores[at], self.ring.labels[at], weight)
        assert len(fresh) == len(self.roc) == self.held
        assert fresh.uneven == self.roc.uneven
        ours, theirs = self.roc.vuhs(), fresh.vuhs()
        assert np.isclose(ours, theirs, rtol=0, atol=1e-12, equal_nan=True)


cdef Column ring_of(Py_ssize_t size, bint weighted):
    """Room for so many events."""
    return Column(
        np.empty(size), np.empty(size, np.uint8), np.empty(size) if weighted else None
    )
