"""What all windows share: events come in, alone or many, and are read at slides."""

from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport int64_t, uint8_t

from engine._batch cimport Batch, batch_of, one_label, one_score, one_weight
from engine._reader cimport Reader
from engine._severity cimport Severity

from engine.events import at_least, time_of
from engine.readings import check_names

# Readings without a row, by names checked before: a worker pushes a few events at a time and asks for
# the same names with each.
cdef dict CHECKED = {}


cdef tuple known(object read):
    """Check names of readings."""
    cdef tuple names = read if type(read) is tuple else tuple(read)
    cdef Reader empty
    if names not in CHECKED:
        check_names(names)
        if len(CHECKED) == 1000:
            CHECKED.clear()
        empty = Reader(names, 1, None, 0)
        CHECKED[names] = empty.gather()
    return names


cdef class BulkWindow:
    """Checks of what comes in; a kind of window says in `run` what becomes of it."""

    def push(self, score, label, weight=1, time=None):
        """Put an event in; events that no longer belong to the window leave. O(log n).

        Parameters
        ----------
        score, label, weight
            As for `Roc.add`; under decay the weight is from 2**-200 to 2**200.
        time
            Event time in ms since the epoch; 0 when None.

        Raises
        ------
        ValueError
            When one is bad, or a time is missing that is needed; nothing has changed then.
        """
        cdef double s = one_score(score), w = one_weight(weight)
        cdef uint8_t y = one_label(label)
        cdef int64_t t = 0 if time is None else time_of(time)
        cdef Batch batch = Batch()
        batch.size = 1
        batch.scores = &s
        batch.labels = &y
        if w != 1:
            batch.weights = &w
        if t:
            batch.times = &t
        self.run(batch, time is not None, None)

    def extend(self, scores, labels, weights=None, times=None):
        """Push many events, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad, or the lengths are unequal.
        """
        self.run(batch_of(scores, labels, weights, times), times is not None, None)

    def slide(
        self,
        scores,
        labels,
        weights=None,
        times=None,
        *,
        every,
        read=("auc", "h"),
        alpha=2.0,
        beta=2.0,
    ):
        """Push many events, all or none, and read the window each time `seen` is a multiple.

        Parameters
        ----------
        scores, labels, weights, times
            As for `extend`.
        every
            Read after every so many events, counted from the window's first one ever.
        read
            Names of readings, see `engine.readings.names`.
        alpha, beta
            Severity of the H-measure.

        Returns
        -------
        readings
            An array per name, an entry per slide. Counts and times (ms) are int64, and so are the
            weights of classes while all weights are 1 and nothing decays; the rest is float64.

        Raises
        ------
        ValueError
            When an element, a name or a parameter is bad; nothing has changed then.
        """
        cdef int64_t step
        # In Python the check would be a tenth of a call with a few events.
        if PyLong_CheckExact(every) and every > 0:
            step = every
        else:
            step = at_least("every", every, 1)
        cdef tuple names = known(read)
        cdef Severity severity = Severity(alpha, beta)
        cdef Batch batch = batch_of(scores, labels, weights, times)
        cdef object readings = self.read_along(batch, times is not None, step, names, severity)
        return CHECKED[names] if readings is None else readings

    cdef object read_along(
        self, Batch batch, bint timed, int64_t every, tuple names, Severity severity
    ):
        """Push checked events and read at the slides; None where there is no slide."""
        cdef Py_ssize_t rows = (self.seen + batch.size) // every - self.seen // every
        cdef Reader reader = Reader(names, every, severity, rows) if rows else None
        self.run(batch, timed, reader)
        return None if reader is None else reader.readings

    cdef int begin(self) except -1:
        """Keep other threads out, which readings made in Python may let in half-way."""
        if self.busy:
            raise RuntimeError("another thread is pushing events into this window")
        self.busy = True
        return 0

    cdef int run(self, Batch batch, bint timed, Reader reader) except -1:
        """Push checked events, of which `timed` tells whether times were given, and read."""
        self.begin()
        try:
            self.take(batch, timed, reader)
        finally:
            self.busy = False
        return 0

    cdef int take(self, Batch batch, bint timed, Reader reader) except -1:
        """Do that, all or none: whatever is raised leaves the window as it was."""
        raise NotImplementedError

    cdef int read_now(self, Reader reader) except -1:
        """Write a row of the window as it is."""
        raise NotImplementedError


# A method of those windows that have these readings.
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
    cdef BulkWindow window = self
    cdef Reader reader = Reader(known(read), 1, Severity(alpha, beta), 1)
    window.begin()
    try:
        window.read_now(reader)
    finally:
        window.busy = False
    return reader.gather()
