# One record taken apart: its fields, read where they stand.
from libc.stdint cimport int64_t, uint8_t

from worker.events._block cimport Entry

cdef enum:  # what a field is for
    SCORE
    LABEL
    KEY
    TIME
    WEIGHT
    BEAT
    ROLES

cdef enum Form:
    ABSENT
    NOTHING  # null
    ONE
    MANY  # an array

cdef enum Outcome:
    ODD
    EVENT
    COLUMNS
    UNLABELLED

cdef enum:
    CLASSES = 16  # texts of the map at the most
    DEPTH = 8  # parts of a path at the most

cdef struct Name:
    const uint8_t *text
    Py_ssize_t size

cdef struct Array:
    char *data
    Py_ssize_t size, room

cdef class Reader:
    cdef Name[ROLES][DEPTH] paths
    cdef int[ROLES] lengths
    cdef Name[CLASSES] texts
    cdef uint8_t[CLASSES] known
    cdef int texts_count
    cdef bint own_key, own_time
    cdef int64_t factor, divisor, max_ahead, most
    cdef list kept

    # What the record at hand says.
    cdef Form[ROLES] forms
    cdef double score, weight
    cdef uint8_t label
    cdef int64_t time
    cdef const uint8_t *key
    cdef Py_ssize_t key_size
    cdef Array[ROLES] arrays

    cdef Name name_of(self, str name)
    cdef Outcome read(self, const Entry *entry) noexcept nogil
    cdef const uint8_t *members(
        self, const uint8_t *at, const uint8_t *end, int among, int depth
    ) noexcept nogil
    cdef const uint8_t *member(
        self,
        const uint8_t *name,
        const uint8_t *quote,
        const uint8_t *end,
        int among,
        int depth,
    ) noexcept nogil
    cdef const uint8_t *value(self, int role, const uint8_t *at, const uint8_t *end) noexcept nogil
    cdef bint class_of(self, const uint8_t *label, Py_ssize_t size) noexcept nogil
    cdef const uint8_t *one_label(
        self, const uint8_t *at, const uint8_t *end, uint8_t *label
    ) noexcept nogil
    cdef const uint8_t *one_time(
        self, const uint8_t *at, const uint8_t *end, int64_t *time
    ) noexcept nogil
    cdef const uint8_t *array(self, int role, const uint8_t *at, const uint8_t *end) noexcept nogil
    cdef bint grow(self, Array *array) noexcept nogil
    cdef Outcome judge(self, const Entry *entry) noexcept nogil
    cdef bint fits(self, int role, Form score, Py_ssize_t size) noexcept nogil
