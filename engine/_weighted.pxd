# The weighted blocks: what the Roc calls.
from libc.stdint cimport uint32_t, uint64_t

cdef struct Chunk:
    double keys[64]
    double negative[64]  # weight of the class at each score
    double positive[64]
    uint32_t events[128]  # events of each class at each score: negative, positive, negative, ...
    double sum_negative, sum_positive, u  # of the chunk alone; valid unless dirty
    uint32_t size
    bint dirty


cdef class Blocks:
    cdef Chunk **chunks
    cdef Py_ssize_t count, capacity
    cdef dict tails
    cdef readonly Py_ssize_t distinct, events, uneven

    cdef int add(self, double score, bint label, double weight, uint32_t events) except -1
    cdef int remove(self, double score, bint label, double weight) except -1
    cdef double auc(self) noexcept nogil
    cdef double total(self, bint label) noexcept nogil
    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil
    cdef size_t bytes(self) noexcept nogil

    cdef Py_ssize_t chunk_of(self, double score) noexcept nogil
    cdef Chunk *make_room(self, Py_ssize_t at, double score) except NULL
    cdef int set_weight(self, Chunk *chunk, int rank, bint label, object parts, uint32_t events) except -1
    cdef object parts_of(self, Chunk *chunk, int rank, bint label)
    cdef void drop(self, Py_ssize_t at, int rank) noexcept nogil
    cdef void refresh(self, Chunk *chunk) noexcept nogil
