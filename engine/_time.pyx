"""The events of the last so many milliseconds, driven in bulk below Python."""

from libc.stdint cimport int64_t, uint64_t

from engine._batch cimport Batch
from engine._bulk cimport BulkWindow
from engine._reader cimport Reader
from engine._roc cimport Roc
from engine._strays cimport Stray, Strays
from engine._timeline cimport LATE, Timeline

import numpy as np

from engine._bulk import readings as readings_now
from engine.events import at_least, time_of

cdef enum:
    NEAR = 32  # younger events that are moved out of the way of one that comes late


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
    An event costs O(log n), in whichever order they come.

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
    cdef Timeline events  # most of them, in order
    cdef Strays strays  # those that came after many younger ones; the last of all is never here

    def __cinit__(self, duration):
        self.duration = at_least("duration", duration, 1)
        # No two times are farther apart than the largest that it may be.
        self.reach = min(self.duration - 1, 2**64 - 1)
        self.built = Roc()
        self.events = Timeline()
        self.strays = Strays()

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.held()

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
        return self.start(), self.end()

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
            self.duration, self.seen, self.late, self.now, self.rows()
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

    cdef list rows(self):
        """Score, label, weight and time of every event, the first to leave first."""
        return sorted(self.events.rows() + self.strays.rows(), key=lambda row: row[3])

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
        self.strays.begin()
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
                    self.insert(batch, i, weight, time)
                self.seen += 1
                left -= 1
                if left == 0:
                    left = reader.every
                    reader.read(self.built, self.held(), self.start(), self.end())
            if reader is not None:
                reader.gather()
        except BaseException:
            self.events.go_back(batch, self.seen - seen, oldest, held, True)
            self.strays.go_back(seen)
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
        self.strays.begin()
        try:
            self.move_to(time)
        except BaseException:
            self.strays.go_back(self.seen)
            self.events.oldest, self.events.held = oldest, held
            self.begun, self.moment = begun, moment
            self.make_anew()
            raise
        return 0

    cdef int read_now(self, Reader reader) except -1:
        return reader.read(self.whole(), self.held(), self.start(), self.end())

    cdef Roc whole(self):
        """The ROC of what is inside."""
        cdef Roc roc = self.built
        if roc is None:
            roc = Roc()
            self.fill(roc)
            self.built = roc
        return roc

    cdef int make_anew(self) except -1:
        """Make the ROC of what is inside; without memory for that, when it is next asked for."""
        self.built.clear()
        try:
            self.fill(self.built)
        except MemoryError:
            self.built.clear()
            self.built = None
        return 0

    cdef int fill(self, Roc roc) except -1:
        """Put all that is inside into an empty ROC."""
        roc.enter_all(self.events.content())
        if self.strays.size:
            roc.enter_all(self.strays.content())
        return 0

    cdef inline Py_ssize_t held(self) noexcept nogil:
        return self.events.held + self.strays.size

    cdef inline int64_t start(self) noexcept nogil:
        """Least time inside; now when empty."""
        if self.strays_first():
            return self.strays.heap[0].time
        return self.events.time(0) if self.events.held else self.moment

    cdef inline int64_t end(self) noexcept nogil:
        """Greatest time inside; now when empty."""
        return self.events.time(self.events.held - 1) if self.events.held else self.moment

    cdef inline bint strays_first(self) noexcept nogil:
        """Whether the first to leave is a stray. The last to leave never is one."""
        return self.strays.size > 0 and self.strays.heap[0].time < self.events.time(0)

    cdef int insert(self, Batch batch, Py_ssize_t i, double weight, int64_t time) except -1:
        """Put an event of a batch where it belongs by its time."""
        cdef Stray stray
        if self.events.held <= NEAR or self.events.time(self.events.held - 1 - NEAR) <= time:
            self.events.insert(batch.scores[i], batch.labels[i], weight, time, True)
            return 0
        stray.score, stray.label, stray.weight = batch.scores[i], batch.labels[i], weight
        stray.time, stray.ordinal = time, self.seen
        # That it was counted in the ROC is nothing to take back: the ROC is made anew then.
        self.strays.insert(stray)
        batch.labels[i] = LATE
        return 0

    cdef int move_to(self, int64_t time) except -1:
        """Let now be a time, if it is later."""
        cdef Py_ssize_t at
        cdef Stray stray
        if self.begun and time <= self.moment:
            return 0
        self.begun = True
        self.moment = time
        while self.events.held:
            if <uint64_t> time - <uint64_t> self.start() <= self.reach:
                break
            if self.strays_first():
                stray = self.strays.pop()
                self.built.remove_event(stray.score, stray.label, stray.weight)
                continue
            at = self.events.place(0)
            self.built.remove_event(
                self.events.scores[at], self.events.labels[at], self.events.weights[at]
            )
            self.events.drop()
        return 0

    def _check(self):
        """Assert the invariants; O(n log n)."""
        fresh = Roc()
        self.roc._check()
        self.strays._check()
        assert self.held() + self.late <= self.seen
        assert all(self.events.time(i - 1) <= self.events.time(i) for i in range(1, self.events.held))
        for score, label, weight, time in self.rows():
            assert self.begun
            assert 0 <= int(self.moment) - time < self.duration
            fresh.add(score, label, weight)
        for score, label, weight, time in self.strays.rows():
            assert time < self.end()
        assert len(fresh) == len(self.roc) == self.held()
        for ours, theirs in zip(self.roc._blocks(), fresh._blocks()):
            assert np.array_equal(ours, theirs)

    def _bytes(self):
        """Memory held for events, without the objects themselves."""
        return self.roc._bytes() + self.events.bytes() + self.strays.bytes()
