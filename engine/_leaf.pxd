# A leaf of the counted tree: up to 64 scores in order with the classes of their events.
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memmove

from engine._eights cimport below_in_eight, upto_in_eight

cdef enum:
    LEAF = 64  # scores in a leaf: as many as a word has bits
    SPREAD = LEAF * 5 // 8  # a counted leaf with so few events goes back to a bit for each

cdef struct Leaf:
    double keys[64]  # ascending; +inf behind the last

cdef struct Head:
    # A leaf is plain or counted. In a plain one every event has a key and a bit, and of equal keys
    # the positives come first. In a counted one keys are distinct and `side` has their counts.
    uint64_t labels  # of a plain leaf: bit i is the class of keys[i]
    uint32_t size  # keys in use
    uint32_t side  # of a counted leaf; NONE: it is plain

cdef struct Side:
    uint64_t counts[64]  # packed counts of keys[0] .. keys[i]


cdef inline uint32_t rank_below(const double *keys, double score) noexcept nogil:
    """How many keys of a leaf are under `score`: 7 + 8 compares, no branch."""
    cdef uint64_t group = 0
    cdef int j
    for j in range(7):
        group += keys[8 * j + 7] < score
    return <uint32_t> (8 * group + below_in_eight(keys + 8 * group, score))


cdef inline uint32_t rank_upto(const double *keys, double score) noexcept nogil:
    """How many keys of a leaf are at or under `score`."""
    cdef uint64_t group = 0
    cdef int j
    for j in range(7):
        group += keys[8 * j + 7] <= score
    return <uint32_t> (8 * group + upto_in_eight(keys + 8 * group, score))


cdef inline void open_count(uint64_t *counts, uint32_t rank, uint32_t size) noexcept nogil:
    """Enter a running count without events."""
    memmove(counts + rank + 1, counts + rank, sizeof(uint64_t) * (size - rank))
    counts[rank] = counts[rank - 1] if rank else 0


cdef inline void close_count(uint64_t *counts, uint32_t rank, uint32_t size) noexcept nogil:
    memmove(counts + rank, counts + rank + 1, sizeof(uint64_t) * (size - rank - 1))


cdef inline void add_from(
    uint64_t *counts, uint32_t rank, uint32_t size, uint64_t more
) noexcept nogil:
    """Add packed counts to the running counts from `rank` up to their size."""
    cdef uint32_t j
    for j in range(rank, size):
        counts[j] += more


cdef uint32_t distinct_keys(const double *keys, uint32_t size) noexcept nogil
cdef void fold_ties(double *keys, Head *head, uint64_t *counts) noexcept nogil
cdef void cut_keys(double *keys, uint32_t cut, double *fresh) noexcept nogil
cdef void spread_ties(double *keys, Head *head, const uint64_t *counts) noexcept nogil
cdef uint32_t middle_cut(const double *keys) noexcept nogil
