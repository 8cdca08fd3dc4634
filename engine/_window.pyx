"""The last so many events and their ROC, driven in bulk below Python.

A bulk call first changes the ROC event by event, taking those that leave from the ring or from the
batch itself, and reads it at each slide; it writes the ring once, at the end. So a call that fails
half-way makes the ROC anew from the ring and leaves the window as it was.
"""

from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch
from engine._bulk cimport BulkWindow
from engine._reader cimport Reader
from engine._ring cimport Ring, place, time_at, weight_at
from engine._roc cimport Roc, refuse
from engine._tree cimport DONE, Status

import numpy as np

from engine._bulk import readings as readings_now
from engine.events import at_least


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
        self.ring = Ring(size)

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.ring.held

    @property
    def roc(self):
        """The ROC of what is inside; made when it is first asked for or read, in O(n log n)."""
        return self.whole()

    @property
    def size(self):
        """How many events at most."""
        return self.ring.limit

    @property
    def first(self):
        """Ordinal of the oldest event inside; `seen` when there is none."""
        return self.seen - self.ring.held

    @property
    def span(self):
        """Times of the first and of the last event pushed of those inside, ms; 0 when empty."""
        cdef Py_ssize_t held = self.ring.held
        if held == 0:
            return 0, 0
        return time_at(self.ring, None, 0), time_at(self.ring, None, held - 1)

    readings = readings_now

    def columns(self, start, stop):
        """Copy the events with ordinals in [start, stop) that are still inside; O(stop - start)."""
        cdef Py_ssize_t low = max(min(start - self.first, self.ring.held), 0)
        cdef Py_ssize_t high = max(min(stop - self.first, self.ring.held), low)
        return self.ring.columns(low, high)

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
        return type(self).restore, (self.ring.limit, self.first, columns)

    def resize(self, size):
        """Change the size; of more events the oldest leave.

        Raises
        ------
        ValueError
            When the size is less than 1.
        """
        cdef Ring ring = self.ring
        cdef Py_ssize_t limit = at_least("size", size, 1), leaving = max(ring.held - limit, 0), i
        self.begin()
        try:
            if self.built is not None:
                for i in range(leaving):
                    self.change(None, i, False)
        except BaseException:
            self.make_anew()
            raise
        finally:
            self.busy = False
        ring.drop(leaving)
        ring.limit = limit
        if ring.capacity > limit:
            try:
                ring.move(limit)
            except MemoryError:
                pass  # the larger ring holds them as well

    # The ROC of the ring

    cdef Roc whole(self):
        """The ROC of what is inside."""
        cdef Roc roc = self.built
        if roc is None:
            roc = Roc()
            roc.enter_all(self.ring.content())
            self.built = roc
        return roc

    cdef int make_anew(self) except -1:
        """Go back to what the ring says; without memory for that, when the ROC is next asked for."""
        if self.built is None:
            return 0
        self.built.clear()
        try:
            self.built.enter_all(self.ring.content())
        except MemoryError:
            self.built.clear()
            self.built = None
        return 0

    # A run of events

    cdef int take(self, Batch batch, bint timed, Reader reader) except -1:
        cdef Ring ring = self.ring
        cdef Py_ssize_t skipped
        ring.make_room(batch)
        if reader is not None:
            self.whole()
        if self.built is not None:
            if batch.weights == NULL and ring.uneven == 0:
                self.built.settle()
            try:
                if ring.held == 0 and reader is None and batch.weights == NULL:
                    skipped = max(batch.size - ring.limit, 0)
                    self.built.fill(
                        batch.scores + skipped, batch.labels + skipped, batch.size - skipped
                    )
                # Without uneven weights there still are blocks where memory ran out for moving them.
                elif batch.weights == NULL and ring.uneven == 0 and self.built.blocks is None:
                    self.take_counted(batch, reader)
                else:
                    self.take_weighted(batch, reader)
                if reader is not None:
                    reader.gather()
            except BaseException:
                self.make_anew()
                raise
        ring.record(batch)
        self.seen += batch.size
        return 0

    cdef int take_counted(self, Batch batch, Reader reader) except -1:
        """Change the ROC by a batch while every weight is 1."""
        cdef Ring ring = self.ring
        cdef Roc roc = self.built
        cdef Py_ssize_t i, at, leaving = ring.held - ring.limit
        cdef double *scores
        cdef uint8_t *labels
        cdef Status status
        cdef int64_t left = -1
        if reader is not None:
            left = reader.every - self.seen % reader.every
        for i in range(batch.size):
            # The event numbered `leaving + i` from the oldest on leaves when i enters.
            if leaving + i < 0:
                refuse(roc.enter(batch.scores[i], batch.labels[i]), 0, 0)
            else:
                at = place(ring, batch, leaving + i, &scores, &labels)
                status = roc.exchange(scores[at], labels[at], batch.scores[i], batch.labels[i])
                if status != DONE:
                    refuse(status, scores[at], labels[at])
            left -= 1
            if left == 0:
                left = reader.every
                self.read(batch, i, reader)
        return 0

    cdef int take_weighted(self, Batch batch, Reader reader) except -1:
        """Change the ROC by a batch with weights."""
        cdef Py_ssize_t i, held = self.ring.held, leaving = held - self.ring.limit
        for i in range(batch.size):
            if leaving + i >= 0:
                self.change(batch, leaving + i, False)
            self.change(batch, held + i, True)
            if reader is not None and (self.seen + i + 1) % reader.every == 0:
                self.read(batch, i, reader)
        return 0

    cdef int change(self, Batch batch, Py_ssize_t number, bint enters) except -1:
        """Put an event into the ROC or take it out, by its number from the oldest on."""
        cdef double *scores
        cdef uint8_t *labels
        cdef Py_ssize_t at = place(self.ring, batch, number, &scores, &labels)
        cdef double weight = weight_at(self.ring, batch, number)
        if enters:
            return self.built.add_event(scores[at], labels[at], weight)
        return self.built.remove_event(scores[at], labels[at], weight)

    cdef int read_now(self, Reader reader) except -1:
        self.whole()
        if self.ring.held:
            return self.read(Batch(), -1, reader)
        return reader.read(self.built, 0, 0, 0)

    cdef int read(self, Batch batch, Py_ssize_t i, Reader reader) except -1:
        """Read the window as it is after event i of the batch."""
        cdef Py_ssize_t newest = self.ring.held + i
        cdef int64_t events = min(newest + 1, self.ring.limit)
        return reader.read(
            self.built,
            events,
            time_at(self.ring, batch, newest + 1 - events),
            time_at(self.ring, batch, newest),
        )

    def _check(self):
        """Assert the invariants; O(n log n)."""
        self.ring._check()
        assert self.first >= 0
        if self.built is None:
            return
        self.built._check()
        fresh = Roc()
        (<Roc> fresh).enter_all(self.ring.content())
        assert len(fresh) == len(self.built) == self.ring.held
        for ours, theirs in zip(self.built.arrays(), (<Roc> fresh).arrays()):
            assert np.array_equal(ours, theirs)

    def _bytes(self):
        """Memory held for events: the ring and the ROC, without the objects themselves."""
        return self.ring.bytes() + (0 if self.built is None else self.built._bytes())
