# The counted tree: what other compiled modules may call, and the parts that they read.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._balance cimport ABSENT, DONE, MAX_HEIGHT, NO_MEMORY, TOO_MANY, Balanced, Status, Step


@cython.final
cdef class Tree(Balanced):
    cdef readonly uint64_t distinct
    cdef uint64_t total
    cdef int64_t twice_u

    cdef Status add(self, double score, bint label) noexcept nogil
    cdef Status remove(self, double score, bint label) noexcept nogil
    cdef Status exchange(
        self, double old, bint its_label, double score, bint label
    ) noexcept nogil
    cdef Status put_in(
        self, Step *path, uint32_t leaf, uint64_t below, double score, bint label
    ) noexcept nogil
    cdef Status take_out(
        self, Step *path, uint32_t leaf, uint64_t below, double score, bint label
    ) noexcept nogil
    cdef void clear(self) noexcept nogil

    cdef double auc(self) noexcept nogil
    cdef uint64_t counts_upto(self, double score) noexcept nogil
    cdef uint32_t next_leaf(self, Step *path, bint first) noexcept nogil
    cdef void blocks(self, double *scores, double *negative, double *positive) noexcept nogil

    cdef uint32_t descend(self, double score, Step *path, uint64_t *below) noexcept nogil
    cdef void count_pairs(self, uint64_t below, uint64_t at, bint label, int sign) noexcept nogil
