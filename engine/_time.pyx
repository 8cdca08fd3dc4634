"""The events of the last so many milliseconds, driven in bulk below Python."""

from libc.stdint cimport int64_t, uint64_t

from engine._batch cimport Batch
from engine._bulk cimport BulkWindow
from engine._reader cimport Reader
from engine._roc cimport Roc
from engine._timeline cimport LATE, Timeline

import numpy as np

from engine._bulk import readings as readings_now
from engine.events import at_least, time_of


cdef class TimeWindow(BulkWindow):
    """Events with now - duration < time <= now, and their ROC.

    Now is the greatest time pushed or advanced to. Events may come out of order; one that has
    already left when it comes is counted as late and otherwise ignored. Change `roc` through the
    window only.

    Parameters
    ----------
    duration
        In ms, 1 or more.

    Attributes
    ----------
    now
        In ms; None before the first event.
    late
        How many events came too late.

    Raises
    ------
    ValueError
        When the duration is less than 1.

    Notes
    -----
    An event that comes late by k events costs O(k + log n).

    Examples
    --------
    >>> from engine import TimeWindow
    >>> window = TimeWindow(1000)
    >>> window.extend([0.1, 0.9, 0.5], [0, 1, 0], times=[0, 700, 500])
    >>> len(window), window.roc.auc()
    (3, 1.0)
    >>> window.advance(1500)
    >>> len(window), window.span
    (1, (700, 700))
    """

    cdef Roc built  # None if memory ran out for making it anew
    cdef readonly int64_t late
    cdef readonly object duration
    cdef uint64_t reach  # how old an event may be
    cdef int64_t moment
    cdef bint begun
    cdef Timeline events

    def __cinit__(self, duration):
        self.duration = at_least("duration", duration, 1)
        # No two times are farther apart than the largest that it may be.
        self.reach = min(self.duration - 1, 2**64 - 1)
        self.built = Roc()
        self.events = Timeline()

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.events.held

    @property
    def roc(self):
        """The ROC of what is inside; O(1)."""
        return self.whole()

    @property
    def now(self):
        """The greatest time pushed or advanced to, ms; None before the first."""
        return self.moment if self.begun else None

    @property
    def span(self):
        """Least and greatest time inside, ms; now when empty."""
        return self.moment_of(0), self.moment_of(self.events.held - 1)

    def advance(self, time):
        """Move on to a time: what lies at or before time - duration leaves. O(log n) each.

        A time before now changes nothing.

        Raises
        ------
        ValueError
            When the time is not a whole number of ms.
        """
        cdef int64_t moment = time_of(time)
        self.begin()
        try:
            self.take_to(moment)
        finally:
            self.busy = False

    readings = readings_now

    # Copies and pickles

    def __reduce__(self):
        return type(self)._of_rows, (
            self.duration, self.seen, self.late, self.now, self.events.rows()
        )

    @classmethod
    def _of_rows(cls, duration, seen, late, now, rows):
        """Make one of what it was; the events come in the order in which they leave."""
        cdef TimeWindow window = cls(duration)
        if rows:
            window.extend(*map(list, zip(*rows)))
        if now is not None:
            window.advance(now)
        window.seen = seen
        window.late = late
        return window

    # A run of events

    cdef int take(self, Batch batch, bint timed, Reader reader) except -1:
        cdef Py_ssize_t i = 0, oldest, held
        cdef int64_t left = -1, time, moment = self.moment, seen = self.seen, late = self.late
        cdef bint begun = self.begun
        cdef double weight
        if not timed:
            raise ValueError("a time window needs a time with every event")
        self.whole()
        self.events.reserve(batch.size, True)
        oldest, held = self.events.oldest, self.events.held
        if reader is not None:
            left = reader.every - self.seen % reader.every
        try:
            for i in range(batch.size):
                time = 0 if batch.times == NULL else batch.times[i]
                weight = 1 if batch.weights == NULL else batch.weights[i]
                self.move_to(time)
                if <uint64_t> self.moment - <uint64_t> time > self.reach:
                    self.late += 1
                    batch.labels[i] = LATE
                else:
                    self.built.add_event(batch.scores[i], batch.labels[i], weight)
                    self.events.insert(batch.scores[i], batch.labels[i], weight, time, True)
                self.seen += 1
                left -= 1
                if left == 0:
                    left = reader.every
                    reader.read(
                        self.built,
                        self.events.held,
                        self.moment_of(0),
                        self.moment_of(self.events.held - 1),
                    )
            if reader is not None:
                reader.gather()
        except BaseException:
            self.events.go_back(batch, self.seen - seen, oldest, held, True)
            self.begun, self.moment, self.seen, self.late = begun, moment, seen, late
            self.make_anew()
            raise
        return 0

    cdef int take_to(self, int64_t time) except -1:
        """Move on to a time, or stay as it was."""
        cdef Py_ssize_t oldest = self.events.oldest, held = self.events.held
        cdef int64_t moment = self.moment
        cdef bint begun = self.begun
        self.whole()
        try:
            self.move_to(time)
        except BaseException:
            self.events.oldest, self.events.held = oldest, held
            self.begun, self.moment = begun, moment
            self.make_anew()
            raise
        return 0

    cdef int read_now(self, Reader reader) except -1:
        reader.read(
            self.whole(),
            self.events.held,
            self.moment_of(0),
            self.moment_of(self.events.held - 1),
        )
        return 0

    cdef Roc whole(self):
        """The ROC of what is inside."""
        cdef Roc roc = self.built
        if roc is None:
            roc = Roc()
            roc.enter_all(self.events.content())
            self.built = roc
        return roc

    cdef int make_anew(self) except -1:
        """Make the ROC of what is inside; without memory for that, when it is next asked for."""
        self.built.clear()
        try:
            self.built.enter_all(self.events.content())
        except MemoryError:
            self.built.clear()
            self.built = None
        return 0

    cdef inline int64_t moment_of(self, Py_ssize_t number) noexcept nogil:
        """Time of an event by its number from the oldest on; now when empty."""
        return self.events.time(number) if self.events.held else self.moment

    cdef int move_to(self, int64_t time) except -1:
        """Let now be a time, if it is later."""
        cdef Py_ssize_t at
        if self.begun and time <= self.moment:
            return 0
        self.begun = True
        self.moment = time
        while self.events.held:
            if <uint64_t> time - <uint64_t> self.events.time(0) <= self.reach:
                break
            at = self.events.place(0)
            self.built.remove_event(
                self.events.scores[at], self.events.labels[at], self.events.weights[at]
            )
            self.events.drop()
        return 0

    def _check(self):
        """Assert the invariants; O(n log n)."""
        cdef Py_ssize_t i, at
        fresh = Roc()
        self.roc._check()
        assert self.events.held + self.late <= self.seen
        for i in range(self.events.held):
            at = self.events.place(i)
            assert self.begun
            assert 0 <= int(self.moment) - int(self.events.time(i)) < self.duration
            assert i == 0 or self.events.time(i - 1) <= self.events.time(i)
            fresh.add(self.events.scores[at], self.events.labels[at], self.events.weights[at])
        assert len(fresh) == len(self.roc) == self.events.held
        for ours, theirs in zip(self.roc._blocks(), fresh._blocks()):
            assert np.array_equal(ours, theirs)

    def _bytes(self):
        """Memory held for events, without the objects themselves."""
        return self.roc._bytes() + self.events.bytes()
