"""From the bytes of records to events, without an object for any part of them.

Records whose fields are as in nearly all (``_reading``) are taken into a batch; anything else is handed
back for ``reading``, which has the rules.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from worker.events._block cimport Block, Entry
from worker.events._columns cimport Gathering
from worker.events._reading cimport (
    COLUMNS,
    EVENT,
    LABEL,
    MANY,
    ODD,
    SCORE,
    TIME,
    UNLABELLED,
    WEIGHT,
    Outcome,
    Reader,
)
from worker.events._json cimport is_utf8


cdef struct Ends:
    int64_t time, low, high  # `Stop`
    int64_t room, watermark
    bint reached  # whether the batch ends here


cdef inline void take_note(Ends *ends, int64_t time) noexcept nogil:
    """Count an event in."""
    ends.room -= 1
    if time > ends.watermark:
        ends.watermark = time
    ends.reached = ends.room == 0 or time >= ends.time or ends.low < time < ends.high


cdef class Scanner:
    """One way to read records; keeps nothing of them.

    Parameters
    ----------
    paths, classes, factor, divisor, max_ahead
        As for `_reading.Reader`.
    """

    cdef Reader reader
    cdef tuple settings

    def __cinit__(self, tuple paths, dict classes, factor, divisor, max_ahead):
        self.settings = paths, classes, factor, divisor, max_ahead
        self.reader = Reader(*self.settings)

    def __reduce__(self):
        return Scanner, self.settings

    def take(self, Block block, Py_ssize_t at, Py_ssize_t index, filling):
        """Take records into a batch until one is odd, the batch is full, or there are no more.

        Parameters
        ----------
        block
            The records.
        at, index
            Where to begin: at this record, behind so many of its elements.
        filling
            The batch. What it knows of room, records, watermark and offset is brought up to date.

        Returns
        -------
        at, index
            Where to go on. When the batch is not full yet and there are more records, the one
            there is odd, and nothing was taken of it.
        """
        cdef Reader reader = self.reader
        cdef Gathering events = filling.events
        cdef Ends ends
        cdef int64_t done = 0, unlabelled = 0
        cdef Py_ssize_t begun = at
        cdef Entry *entries = block.entries()
        cdef Entry *entry
        cdef Outcome outcome
        cdef int32_t key
        cdef uint64_t hashed
        ends.time, ends.low, ends.high = filling.stop
        ends.room = filling.room
        ends.watermark = filling.batch.watermark
        ends.reached = False
        while at < block.size and not ends.reached:
            entry = entries + at
            outcome = reader.read(entry)
            if outcome == ODD or (index and outcome != COLUMNS):
                break
            if outcome == UNLABELLED:
                unlabelled += 1
                at += 1
                continue
            key = events.find(reader.key, reader.key_size, &hashed)
            if key < 0:
                if reader.own_key and not is_utf8(reader.key, reader.key + reader.key_size):
                    break
                key = events.insert(reader.key, reader.key_size, hashed)
            if outcome == EVENT:
                events.reserve(1)
                events.put(
                    key, reader.score, reader.label, reader.time, reader.weight, entry.offset, 0
                )
                take_note(&ends, reader.time)
                at += 1
                continue
            index = self.pour(events, key, entry, index, &ends)
            if index:
                break
            at += 1
        done = at - begun
        filling.records += done
        if index and ends.reached:
            filling.next_offset = entries[at].offset
        elif done:
            filling.next_offset = entries[at - 1].offset + 1
        if unlabelled:
            filling.batch.counts["unlabelled"] += unlabelled
        filling.room = ends.room
        filling.batch.watermark = ends.watermark
        filling.stopped = ends.reached
        return at, index

    cdef Py_ssize_t pour(
        self,
        Gathering events,
        int32_t key,
        const Entry *entry,
        Py_ssize_t index,
        Ends *ends,
    ) except -1 nogil:
        """Take elements of a columnar record; the one to go on at, 0 when it is done."""
        cdef Py_ssize_t size = self.reader.arrays[SCORE].size, at
        cdef double *scores = <double *> self.reader.arrays[SCORE].data
        cdef uint8_t *labels = <uint8_t *> self.reader.arrays[LABEL].data
        cdef double *weights = <double *> self.reader.arrays[WEIGHT].data
        cdef int64_t *times = <int64_t *> self.reader.arrays[TIME].data
        cdef bint weighted = self.reader.forms[WEIGHT] == MANY, timed = self.reader.forms[TIME] == MANY
        cdef double weight = self.reader.weight
        cdef int64_t time = self.reader.time
        events.reserve(min(size - index, ends.room))
        for at in range(index, size):
            if ends.reached:
                return at
            if weighted:
                weight = weights[at]
            if timed:
                time = times[at]
            events.put(key, scores[at], labels[at], time, weight, entry.offset, at)
            take_note(ends, time)
        return 0
