# Events on their way into groups by key.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef struct Event:
    double score
    double weight
    int64_t time
    int64_t offset
    int32_t index
    int32_t key
    uint8_t label

cdef struct Key:
    uint64_t hash
    Py_ssize_t start  # of its text
    int32_t size
    int32_t events

cdef class Gathering:
    cdef Event *events
    cdef Py_ssize_t size, room
    cdef Key *keys
    cdef Py_ssize_t known, keys_room
    cdef char *texts
    cdef Py_ssize_t texts_size, texts_room
    cdef int32_t *slots
    cdef Py_ssize_t mask
    cdef bint weighted

    cdef int32_t find(self, const uint8_t *key, Py_ssize_t size, uint64_t *hashed) noexcept nogil
    cdef int32_t insert(self, const uint8_t *key, Py_ssize_t size, uint64_t hashed) except -1 nogil
    cdef int spread(self) except -1 nogil
    cdef int reserve(self, Py_ssize_t more) except -1 nogil
    cdef inline void put(
        self,
        int32_t key,
        double score,
        uint8_t label,
        int64_t time,
        double weight,
        int64_t offset,
        int32_t index,
    ) noexcept nogil:
        """Add an event; `reserve` has made room."""
        cdef Event *event = self.events + self.size
        event.score = score
        event.weight = weight
        event.time = time
        event.offset = offset
        event.index = index
        event.key = key
        event.label = label
        self.weighted |= weight != 1
        self.keys[key].events += 1
        self.size += 1
