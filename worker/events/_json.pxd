# JSON, byte by byte. Every function takes where it stands and where the text ends, and gives where it
# has come to, or NULL where the text is no JSON or is left to the other reader.
from libc.stdint cimport uint8_t, uint64_t

cdef struct Number:
    uint64_t digits  # the first 19 at most
    int exponent  # of ten
    bint negative
    bint whole  # neither point nor exponent
    bint cut  # there are more digits

cdef const uint8_t *blank(const uint8_t *at, const uint8_t *end) noexcept nogil
cdef const uint8_t *text(const uint8_t *at, const uint8_t *end, bint *escaped) noexcept nogil
cdef const uint8_t *number(const uint8_t *at, const uint8_t *end, Number *found) noexcept nogil
cdef const uint8_t *anything(const uint8_t *at, const uint8_t *end) noexcept nogil
cdef bint is_utf8(const uint8_t *at, const uint8_t *end) noexcept nogil
