# Scores in order.
from libc.stdint cimport uint64_t

cdef uint64_t key_of(double score) noexcept nogil
cdef double score_of(uint64_t key) noexcept nogil
cdef void sort_keys(uint64_t *keys, uint64_t *spare, size_t size) noexcept nogil
