"""The last so many events of ordered classes and their ROC, driven in bulk below Python.

As in `engine._window` a bulk call changes the ROC event by event and writes the ring once, at the end:
a call that fails half-way makes the ROC anew from the ring and leaves the window as it was.
"""

from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch, batch_of_columns
from engine._bulk cimport BulkWindow
from engine._ordinal cimport OrdinalRoc
from engine._reader cimport Reader
from engine._ring cimport Ring, place, weight_at

import numpy as np

from engine.events import at_least, class_of, ordinal_columns_of, ordinal_weight_of, score_of

NAMES = ("vuhs", "events")
NOTHING = Reader(NAMES, 1, None, 0).gather()


cdef class OrdinalCountWindow(BulkWindow):
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

    cdef OrdinalRoc built  # None if memory ran out for making it anew
    cdef readonly int classes
    cdef Ring ring

    def __cinit__(self, classes, size):
        self.built = OrdinalRoc(classes)
        self.classes = self.built.classes
        self.ring = Ring(size)

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.ring.held

    @property
    def roc(self):
        """The ROC of what is inside; O(1)."""
        return self.whole()

    @property
    def size(self):
        """How many events at most."""
        return self.ring.limit

    def push(self, score, label, weight=1):
        """Put an event in; the oldest leaves when the window is full. O(log n).

        Raises
        ------
        ValueError
            When one is bad as for `OrdinalRoc.add`; nothing has changed then.
        """
        score, label = score_of(score), class_of(label, self.classes)
        self.extend([score], [label], [ordinal_weight_of(weight)])

    def extend(self, scores, labels, weights=None):
        """Push many events, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad, or the lengths are unequal.
        """
        self.run(self.admitted(scores, labels, weights), False, None)

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
        batch = self.admitted(scores, labels, weights)
        readings = self.read_along(batch, False, step, NAMES, None)
        return NOTHING if readings is None else readings

    def __reduce__(self):
        columns = self.ring.columns(0, self.ring.held)
        return type(self)._of_columns, (self.classes, self.size, self.seen, *columns[:3])

    @classmethod
    def _of_columns(cls, classes, size, seen, scores, labels, weights):
        """Make one of what it was; oldest events first."""
        cdef OrdinalCountWindow window = cls(classes, size)
        window.extend(scores, labels, weights)
        window.seen = seen
        return window

    cdef Batch admitted(self, scores, labels, weights):
        return batch_of_columns(ordinal_columns_of(scores, labels, self.classes, weights))

    cdef int take(self, Batch batch, bint timed, Reader reader) except -1:
        cdef Ring ring = self.ring
        cdef OrdinalRoc roc = self.whole()
        cdef Py_ssize_t i, leaving = ring.held - ring.limit
        cdef int64_t left = -1
        if reader is not None:
            left = reader.every - self.seen % reader.every
        ring.make_room(batch)
        try:
            for i in range(batch.size):
                # The event numbered `leaving + i` from the oldest on leaves when i enters.
                if leaving + i >= 0:
                    self.change(batch, leaving + i, False)
                self.change(batch, ring.held + i, True)
                left -= 1
                if left == 0:
                    left = reader.every
                    reader.put(0, roc.tree.vuhs())
                    reader.put_whole(1, min(ring.held + i + 1, ring.limit))
                    reader.row += 1
            if reader is not None:
                reader.gather()
        except BaseException:
            self.make_anew()
            raise
        ring.record(batch)
        self.seen += batch.size
        return 0

    cdef inline int change(self, Batch batch, Py_ssize_t number, bint enters) except -1:
        """Put an event into the ROC or take it out, by its number from the oldest on."""
        cdef double *scores
        cdef uint8_t *labels
        cdef Py_ssize_t at = place(self.ring, batch, number, &scores, &labels)
        cdef double weight = weight_at(self.ring, batch, number)
        if enters:
            return self.built.add_event(scores[at], labels[at], weight)
        return self.built.remove_event(scores[at], labels[at], weight)

    cdef OrdinalRoc whole(self):
        """The ROC of what is inside."""
        cdef OrdinalRoc roc = self.built
        if roc is None:
            roc = OrdinalRoc(self.classes)
            roc.enter_all(self.ring.content())
            self.built = roc
        return roc

    cdef int make_anew(self) except -1:
        """Go back to what the ring says; without memory for that, when the ROC is next asked for."""
        self.built.clear()
        try:
            self.built.enter_all(self.ring.content())
        except MemoryError:
            self.built.clear()
            self.built = None
        return 0

    def _check(self):
        """Assert the invariants; O(n log n)."""
        cdef OrdinalRoc fresh = OrdinalRoc(self.classes)
        self.ring._check()
        self.whole()._check()
        assert self.ring.held <= self.seen
        fresh.enter_all(self.ring.content())
        assert len(fresh) == len(self.roc) == self.ring.held
        assert fresh.uneven == self.built.uneven
        ours, theirs = self.roc.vuhs(), fresh.vuhs()
        assert np.isclose(ours, theirs, rtol=0, atol=1e-12, equal_nan=True)
