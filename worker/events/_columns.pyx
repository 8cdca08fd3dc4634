"""The events of a batch, gathered in the order of the log and given out as columns by key."""

cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_WRITABLE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from engine._batch cimport pointer_of

import secrets

cdef extern from *:
    """
    static inline uint64_t rocstream_mix(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128) a * b;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    }
    """
    uint64_t mix "rocstream_mix"(uint64_t a, uint64_t b) noexcept nogil

cdef enum:
    FEW = 64  # keys, and events, that there is room for at first
    EMPTY = -1

# Whoever chooses the keys cannot choose where they fall.
cdef uint64_t SEED = secrets.randbits(64)
cdef uint64_t FACTOR = secrets.randbits(64) | 1


cdef uint64_t hash_of(const uint8_t *key, Py_ssize_t size) noexcept nogil:
    cdef uint64_t hashed = SEED ^ <uint64_t> size, part
    while size >= 8:
        memcpy(&part, key, 8)
        hashed = mix(hashed ^ part, FACTOR) + SEED
        key += 8
        size -= 8
    if size:
        part = 0
        memcpy(&part, key, size)
        hashed = mix(hashed ^ part, FACTOR) + SEED
    return mix(hashed, FACTOR)


cdef class Gathering:
    """Takes events in the order of the log; the compiled twin of `batch.Gathering`."""

    def __cinit__(self):
        cdef Py_ssize_t i
        self.events = <Event *> malloc(FEW * sizeof(Event))
        self.keys = <Key *> malloc(FEW * sizeof(Key))
        self.texts = <char *> malloc(FEW * 16)
        self.slots = <int32_t *> malloc(2 * FEW * sizeof(int32_t))
        if not (self.events and self.keys and self.texts and self.slots):
            raise MemoryError
        self.room = self.keys_room = FEW
        self.texts_room = FEW * 16
        self.mask = 2 * FEW - 1
        for i in range(2 * FEW):
            self.slots[i] = EMPTY

    def __dealloc__(self):
        free(self.events)
        free(self.keys)
        free(self.texts)
        free(self.slots)

    cdef int32_t find(self, const uint8_t *key, Py_ssize_t size, uint64_t *hashed) noexcept nogil:
        """Number of a key, or EMPTY; `hashed` is for `insert`. O(1)."""
        cdef uint64_t value = hash_of(key, size)
        cdef Py_ssize_t slot = value & self.mask
        cdef int32_t number
        cdef Key *known
        hashed[0] = value
        while True:
            number = self.slots[slot]
            if number == EMPTY:
                return EMPTY
            known = self.keys + number
            if (
                known.hash == value
                and known.size == size
                and memcmp(self.texts + known.start, key, size) == 0
            ):
                return number
            slot = (slot + 1) & self.mask

    cdef int32_t insert(self, const uint8_t *key, Py_ssize_t size, uint64_t hashed) except -1 nogil:
        """Number a key, valid UTF-8, that `find` has not found."""
        cdef Py_ssize_t slot = hashed & self.mask, grown
        cdef Key *known
        cdef void *moved
        if self.known == self.keys_room:
            moved = realloc(self.keys, 2 * self.keys_room * sizeof(Key))
            if moved == NULL:
                with gil:
                    raise MemoryError
            self.keys = <Key *> moved
            self.spread()
            self.keys_room *= 2
            slot = hashed & self.mask
        if self.texts_size + size > self.texts_room:
            grown = 2 * self.texts_room + size
            moved = realloc(self.texts, grown)
            if moved == NULL:
                with gil:
                    raise MemoryError
            self.texts = <char *> moved
            self.texts_room = grown
        while self.slots[slot] != EMPTY:
            slot = (slot + 1) & self.mask
        self.slots[slot] = self.known
        known = self.keys + self.known
        known.hash = hashed
        known.start = self.texts_size
        known.size = size
        known.events = 0
        memcpy(self.texts + self.texts_size, key, size)
        self.texts_size += size
        self.known += 1
        return self.known - 1

    cdef int spread(self) except -1 nogil:
        """Double the slots, of which half were taken."""
        cdef Py_ssize_t count = 2 * (self.mask + 1), i, slot
        cdef int32_t *slots = <int32_t *> malloc(count * sizeof(int32_t))
        if slots == NULL:
            with gil:
                raise MemoryError
        for i in range(count):
            slots[i] = EMPTY
        for i in range(self.known):
            slot = self.keys[i].hash & (count - 1)
            while slots[slot] != EMPTY:
                slot = (slot + 1) & (count - 1)
            slots[slot] = i
        free(self.slots)
        self.slots = slots
        self.mask = count - 1
        return 0

    cdef int reserve(self, Py_ssize_t more) except -1 nogil:
        """Make room for events."""
        cdef Py_ssize_t room = self.room
        cdef void *moved
        if self.size + more <= room:
            return 0
        while self.size + more > room:
            room *= 2
        moved = realloc(self.events, room * sizeof(Event))
        if moved == NULL:
            with gil:
                raise MemoryError
        self.events = <Event *> moved
        self.room = room
        return 0

    def add(self, str name, scores, labels, times, weights, int64_t offset, indexes):
        """Add checked events of one record; `weights` None stands for ones."""
        cdef bytes text = name.encode()
        cdef const uint8_t *key = text
        cdef uint64_t hashed
        cdef int32_t number = self.find(key, len(text), &hashed)
        if number < 0:
            number = self.insert(key, len(text), hashed)
        self.reserve(len(scores))
        if weights is None:
            for score, label, time, index in zip(scores, labels, times, indexes):
                self.put(number, score, label, time, 1, offset, index)
        else:
            for score, label, time, weight, index in zip(scores, labels, times, weights, indexes):
                self.put(number, score, label, time, weight, offset, index)

    def groups(self):
        """Return the events of each key, keys in the order of their first event. O(n)."""
        cdef Columns columns = Columns(self.size, self.weighted)
        cdef Py_ssize_t i, start = 0, at
        cdef Py_ssize_t *places = <Py_ssize_t *> malloc((self.known + 1) * sizeof(Py_ssize_t))
        cdef Event *event
        cdef Key *key
        cdef dict found = {}
        if places == NULL:
            raise MemoryError
        try:
            for i in range(self.known):
                key = self.keys + i
                places[i] = start
                if key.events:
                    name = PyUnicode_DecodeUTF8(self.texts + key.start, key.size, NULL)
                    found[name] = events_of(columns, start, key.events)
                start += key.events
            for i in range(self.size):
                event = self.events + i
                at = places[event.key]
                places[event.key] = at + 1
                columns.scores[at] = event.score
                columns.times[at] = event.time
                columns.offsets[at] = event.offset
                columns.indexes[at] = event.index
                columns.labels[at] = event.label
                if columns.weights != NULL:
                    columns.weights[at] = event.weight
        finally:
            free(places)
        return found


cdef class Columns:
    """Columns of all keys, key behind key, in one piece of memory."""

    cdef double *scores
    cdef double *weights  # NULL: ones
    cdef int64_t *times
    cdef int64_t *offsets
    cdef int64_t *indexes
    cdef uint8_t *labels

    def __cinit__(self, Py_ssize_t size, bint weighted):
        self.scores = <double *> malloc(size * (4 * 8 + 8 * weighted + 1) + 1)
        if self.scores == NULL:
            raise MemoryError
        self.times = <int64_t *> (self.scores + size)
        self.offsets = self.times + size
        self.indexes = self.offsets + size
        if weighted:
            self.weights = <double *> (self.indexes + size)
        self.labels = <uint8_t *> (self.indexes + (2 * size if weighted else size))

    def __dealloc__(self):
        free(self.scores)


@cython.no_gc  # columns refer to nothing
@cython.freelist(64)
cdef class KeyedEvents:
    """The events of one key: see `batch.KeyedEvents`."""

    cdef Columns columns
    cdef Py_ssize_t start, size

    def __len__(self):
        return self.size

    @property
    def scores(self):
        """Finite doubles."""
        return column_of(self.columns, self.columns.scores + self.start, self.size, b"d")

    @property
    def labels(self):
        """0 or 1."""
        return column_of(self.columns, self.columns.labels + self.start, self.size, b"B")

    @property
    def times(self):
        """Event times in ms since 1970."""
        return column_of(self.columns, self.columns.times + self.start, self.size, b"q")

    @property
    def weights(self):
        """Positive and finite; None while every weight is 1."""
        if self.columns.weights == NULL:
            return None
        return column_of(self.columns, self.columns.weights + self.start, self.size, b"d")

    @property
    def offsets(self):
        """The record of each event."""
        return column_of(self.columns, self.columns.offsets + self.start, self.size, b"q")

    @property
    def indexes(self):
        """Its element there."""
        return column_of(self.columns, self.columns.indexes + self.start, self.size, b"q")


def grouped(list names, codes, scores, labels, times, weights, offsets):
    """Return the events of each key, keys in the order of their first event. O(events + names).

    Parameters
    ----------
    names
        The keys.
    codes
        Each event's key by its number among `names`: int32.
    scores, labels, times, weights, offsets
        Of the events, checked: float64, uint8, int64, float64 or None, int64; arrays without gaps.

    Raises
    ------
    ValueError
        When columns differ in length, or a name is there twice.
    IndexError
        For a number that no name has.
    """
    cdef Py_ssize_t size = len(codes), known = len(names), fresh = 0, start = 0, i, at
    cdef const int32_t *code = <const int32_t *> pointer_of(codes)
    cdef const double *score = <const double *> pointer_of(scores)
    cdef const uint8_t *label = <const uint8_t *> pointer_of(labels)
    cdef const int64_t *time = <const int64_t *> pointer_of(times)
    cdef const int64_t *offset = <const int64_t *> pointer_of(offsets)
    cdef const double *weight = NULL
    cdef Py_ssize_t *places = <Py_ssize_t *> calloc(known + 1, sizeof(Py_ssize_t))
    cdef int32_t *order = <int32_t *> malloc((known + 1) * sizeof(int32_t))
    cdef Columns columns
    cdef dict found = {}
    try:
        if places == NULL or order == NULL:
            raise MemoryError
        for column in (scores, labels, times, offsets, codes if weights is None else weights):
            if len(column) != size:
                raise ValueError(f"{size} keys and a column of {len(column)} events")
        if weights is not None:
            weight = <const double *> pointer_of(weights)
        for i in range(size):
            if not 0 <= code[i] < known:
                raise IndexError(f"an event's key has the number {code[i]} of {known}")
            if places[code[i]] == 0:
                order[fresh] = code[i]
                fresh += 1
            places[code[i]] += 1
        columns = Columns(size, weight != NULL)
        memset(columns.indexes, 0, size * sizeof(int64_t))
        for i in range(fresh):
            at = places[order[i]]
            found[names[order[i]]] = events_of(columns, start, at)
            places[order[i]] = start
            start += at
        if len(found) < fresh:
            raise ValueError("a name is there twice")
        for i in range(size):
            at = places[code[i]]
            places[code[i]] = at + 1
            columns.scores[at] = score[i]
            columns.labels[at] = label[i]
            columns.times[at] = time[i]
            columns.offsets[at] = offset[i]
            if weight != NULL:
                columns.weights[at] = weight[i]
    finally:
        free(places)
        free(order)
    return found


cdef KeyedEvents events_of(Columns columns, Py_ssize_t start, Py_ssize_t size):
    cdef KeyedEvents events = KeyedEvents.__new__(KeyedEvents)
    events.columns = columns
    events.start = start
    events.size = size
    return events


@cython.no_gc
@cython.freelist(16)
cdef class Column:
    """A sequence of numbers, read as Python's own or, as a buffer, without a copy."""

    cdef Columns columns
    cdef void *data
    cdef Py_ssize_t size, width
    cdef const char *kind

    def __len__(self):
        return self.size

    def __getitem__(self, at):
        cdef Py_ssize_t place
        if isinstance(at, slice):
            return [self.one(place) for place in range(*at.indices(self.size))]
        place = at
        if place < 0:
            place += self.size
        if not 0 <= place < self.size:
            raise IndexError(at)
        return self.one(place)

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        if isinstance(other, Column):
            return self.tolist() == other.tolist()
        return self.tolist() == other

    __hash__ = None

    def __repr__(self):
        return repr(self.tolist())

    def __getbuffer__(self, Py_buffer *view, int flags):
        if flags & PyBUF_WRITABLE == PyBUF_WRITABLE:
            raise BufferError("a column of events is not to be written to")
        view.buf = self.data
        view.obj = self
        view.len = self.size * self.width
        view.itemsize = self.width
        view.readonly = True
        view.format = <char *> self.kind if flags & PyBUF_FORMAT else NULL
        view.ndim = 1
        view.shape = &self.size
        view.strides = &self.width
        view.suboffsets = NULL
        view.internal = NULL

    cdef object one(self, Py_ssize_t place):
        if self.kind[0] == c"d":
            return (<double *> self.data)[place]
        if self.kind[0] == c"q":
            return (<int64_t *> self.data)[place]
        return (<uint8_t *> self.data)[place]

    cpdef list tolist(self):
        """Return the numbers as a list."""
        return [self.one(place) for place in range(self.size)]


cdef Column column_of(Columns columns, void *data, Py_ssize_t size, const char *kind):
    cdef Column column = Column.__new__(Column)
    column.columns = columns
    column.data = data
    column.size = size
    column.kind = kind
    column.width = 1 if kind[0] == c"B" else 8
    return column
