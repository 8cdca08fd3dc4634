"""Scores as whole numbers in the same order, and a radix sort of those.

Least significant digit first, eight bits at a time: eight passes over the data, and none for a digit
that all keys share, as scores do that came as float32 or on a grid. For random doubles that takes a third
of the time of a comparison sort.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    FEW = 64  # so many are sorted by insertion
    DIGITS = 8

cdef uint64_t SIGN = <uint64_t> 1 << 63


cdef inline uint64_t key_of(double score) noexcept nogil:
    """A whole number that orders as the score does; one of 0.0, as -0.0 does not come here."""
    cdef uint64_t bits
    memcpy(&bits, &score, sizeof(bits))
    return bits ^ (<uint64_t> (<int64_t> bits >> 63) | SIGN)


cdef inline double score_of(uint64_t key) noexcept nogil:
    cdef double score
    key ^= SIGN | (0 - (~key >> 63))
    memcpy(&score, &key, sizeof(score))
    return score


cdef void insertion_sort(uint64_t *keys, size_t size) noexcept nogil:
    cdef size_t i, j
    cdef uint64_t key
    for i in range(1, size):
        key = keys[i]
        j = i
        while j and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


cdef void sort_keys(uint64_t *keys, uint64_t *spare, size_t size) noexcept nogil:
    """Sort up to 2**32 - 1 keys in place; `spare` has room for as many. O(n)."""
    cdef uint32_t[DIGITS][256] places
    cdef uint32_t *place
    cdef uint32_t start, count
    cdef uint64_t *source = keys
    cdef uint64_t *target = spare
    cdef uint64_t *swap
    cdef uint64_t key
    cdef size_t i
    cdef int digit, value
    if size <= FEW:
        insertion_sort(keys, size)
        return
    memset(places, 0, sizeof(places))
    for i in range(size):
        key = keys[i]
        for digit in range(DIGITS):
            places[digit][key >> (8 * digit) & 0xFF] += 1
    for digit in range(DIGITS):
        place = places[digit]
        if place[keys[0] >> (8 * digit) & 0xFF] == size:
            continue
        start = 0
        for value in range(256):
            count = place[value]
            place[value] = start
            start += count
        for i in range(size):
            key = source[i]
            value = key >> (8 * digit) & 0xFF
            target[place[value]] = key
            place[value] += 1
        swap = source
        source = target
        target = swap
    if source != keys:
        memcpy(keys, source, size * sizeof(uint64_t))
