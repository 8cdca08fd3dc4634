# The counted tree: its memory layout, and what other compiled modules may call.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from *:
    """
    #define ROC_NONE 0xFFFFFFFFu
    #define ROC_POSITIVE (1ULL << 32)
    #define ROC_NEGATIVE 1ULL
    #define ROC_LIMIT 0xFFFFFFFFULL
    """
    const uint32_t NONE "ROC_NONE"  # no node
    const uint64_t POSITIVE "ROC_POSITIVE"  # one event of the class, as packed counts
    const uint64_t NEGATIVE "ROC_NEGATIVE"
    const uint64_t LIMIT "ROC_LIMIT"  # events a tree may hold: 2 * U then stays under 2**63
    int popcount "__builtin_popcountll"(uint64_t) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil

cdef enum:
    LEAF = 64  # distinct scores in a leaf: as many as a word has bits
    FAN = 64  # children of an inner node, in 8 groups of 8
    MAX_HEIGHT = 12

cdef enum Status:
    DONE
    ABSENT  # no such event inside
    NO_MEMORY
    TOO_MANY  # LIMIT events are inside

cdef struct Leaf:
    double keys[64]  # ascending; +inf behind the last

cdef struct Head:
    uint64_t labels  # bit i: class of keys[i]; valid while the leaf has no side
    uint32_t size
    uint32_t side  # the leaf's running counts; NONE while it holds no ties

cdef struct Side:
    uint64_t counts[64]  # packed counts of keys[0] .. keys[i]

cdef struct Inner:
    double first[64]  # smallest score a child may hold; -inf for child 0, +inf behind the last
    double samples[8]  # first[8], first[16], ..., first[56], +inf
    uint64_t within[64]  # packed counts of the children before this one in its group
    uint64_t before[8]  # packed counts of the groups before this one
    uint32_t child[64]
    uint32_t size

cdef struct Step:
    uint32_t node
    uint32_t slot

cdef struct Branch:
    # A finished subtree while a tree is built: its number, smallest score and packed counts.
    uint32_t node
    double first
    uint64_t counts

cdef struct Pool:
    uint32_t capacity, used, free, free_size  # `free` heads a list linked through the nodes


cdef inline int64_t positives(uint64_t counts) noexcept nogil:
    return <int64_t> (counts >> 32)


cdef inline int64_t negatives(uint64_t counts) noexcept nogil:
    return <int64_t> (counts & 0xFFFFFFFFu)


cdef inline uint64_t bits_below(uint32_t rank) noexcept nogil:
    """Mask of the bits under `rank`, which is 0 to 64."""
    return ((<uint64_t> 1 << (rank & 63)) - 1) | (0 - <uint64_t> (rank >> 6))


cdef inline uint32_t rank_below(const double *keys, double score) noexcept nogil:
    """How many keys of a leaf are under `score`: 7 + 8 compares, no branch."""
    cdef uint64_t group = 0, rank = 0
    cdef int j
    for j in range(7):
        group += keys[8 * j + 7] < score
    keys += 8 * group
    for j in range(8):
        rank += keys[j] < score
    return <uint32_t> (8 * group + rank)


cdef inline uint32_t rank_upto(const double *keys, double score) noexcept nogil:
    """How many keys of a leaf are at or under `score`."""
    cdef uint64_t group = 0, rank = 0
    cdef int j
    for j in range(7):
        group += keys[8 * j + 7] <= score
    keys += 8 * group
    for j in range(8):
        rank += keys[j] <= score
    return <uint32_t> (8 * group + rank)


cdef inline uint32_t slot_of(const Inner *inner, double score) noexcept nogil:
    """The child whose range holds `score`."""
    cdef uint64_t group = 0, slot = 0
    cdef int j
    for j in range(7):
        group += inner.samples[j] <= score
    cdef const double *first = inner.first + 8 * group
    for j in range(8):
        slot += first[j] <= score
    return <uint32_t> (8 * group + slot - 1)


cdef inline uint64_t counts_before(const Inner *inner, uint32_t slot) noexcept nogil:
    """Packed counts of the children before `slot`."""
    return inner.before[slot >> 3] + inner.within[slot]


@cython.final
cdef class Tree:
    cdef Leaf *leaves
    cdef Head *heads
    cdef Side *sides
    cdef Inner *inners
    cdef Pool leaf_pool, side_pool, inner_pool
    cdef uint32_t root, height
    cdef readonly uint64_t distinct
    cdef uint64_t total
    cdef int64_t twice_u

    cdef Status add(self, double score, bint label) noexcept nogil
    cdef Status remove(self, double score, bint label) noexcept nogil
    cdef Status build(self, const double *scores, const uint64_t *counts, uint64_t size) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef uint64_t counts_at(self, double score) noexcept nogil
    cdef uint64_t counts_upto(self, double score) noexcept nogil
    cdef uint64_t prefix(self, uint32_t leaf, uint32_t rank) noexcept nogil
    cdef double auc(self) noexcept nogil
    cdef uint32_t next_leaf(self, Step *path, bint first) noexcept nogil
    cdef void blocks(self, double *scores, double *negative, double *positive) noexcept nogil
    cdef size_t bytes(self) noexcept nogil
    cdef void build_leaf(self, uint32_t leaf, const double *scores, const uint64_t *counts, uint32_t size) noexcept nogil
    cdef void count_block(self, uint64_t counts) noexcept nogil
    cdef Status build_inners(self, Branch *branches, uint64_t size) noexcept nogil

    cdef uint32_t descend(self, double score, Step *path, uint64_t *below) noexcept nogil
    cdef void count_pairs(self, uint64_t below, uint64_t at, bint label, int sign) noexcept nogil
    cdef bint is_outermost(self, const Step *path, bint right) noexcept nogil
    cdef bint give_side(self, uint32_t leaf) noexcept nogil
    cdef void drop_side(self, uint32_t leaf) noexcept nogil
    cdef Status split_leaf(self, Step *path, uint32_t leaf, uint32_t rank, double score) noexcept nogil
    cdef void link(self, Step *path, uint32_t level, uint32_t node, double first, uint64_t left) noexcept nogil
    cdef void unlink(self, Step *path, uint32_t level, uint32_t slot) noexcept nogil
    cdef void fill_up(self, Step *path, uint32_t leaf) noexcept nogil
    cdef void fill_up_inner(self, Step *path, uint32_t level) noexcept nogil
    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil
    cdef bint reserve_sides(self, uint32_t more) noexcept nogil
    cdef bint reserve_inners(self, uint32_t more) noexcept nogil
    cdef uint32_t new_leaf(self) noexcept nogil
    cdef uint32_t new_side(self) noexcept nogil
    cdef uint32_t new_inner(self) noexcept nogil
    cdef void free_leaf(self, uint32_t leaf) noexcept nogil
    cdef void free_inner(self, uint32_t node) noexcept nogil
    cdef uint64_t check_node(self, uint32_t node, uint32_t level, double low, double high) except? 0
