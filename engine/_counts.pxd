# Packed counts: the events of both classes in one word, positives above negatives. And words of bits.
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from *:
    """
    #define ROC_POSITIVE (1ULL << 32)
    #define ROC_NEGATIVE 1ULL
    #define ROC_LIMIT 0xFFFFFFFFULL
    """
    const uint64_t POSITIVE "ROC_POSITIVE"  # one event of the class
    const uint64_t NEGATIVE "ROC_NEGATIVE"
    const uint64_t LIMIT "ROC_LIMIT"  # events a tree may hold: 2 * U then stays under 2**63
    int popcount "__builtin_popcountll"(uint64_t) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil


cdef inline int64_t positives(uint64_t counts) noexcept nogil:
    return <int64_t> (counts >> 32)


cdef inline int64_t negatives(uint64_t counts) noexcept nogil:
    return <int64_t> (counts & 0xFFFFFFFFu)


cdef inline uint64_t one_event(bint label) noexcept nogil:
    """Packed counts of one event, without a branch."""
    return <uint64_t> 1 << (32 & -<int> label)


cdef inline uint64_t events(uint64_t counts) noexcept nogil:
    """Both classes together."""
    return (counts >> 32) + (counts & 0xFFFFFFFFu)


cdef inline uint64_t bits_below(uint32_t rank) noexcept nogil:
    """Mask of the bits under `rank`, which is 0 to 64."""
    return ((<uint64_t> 1 << (rank & 63)) - 1) | (0 - <uint64_t> (rank >> 6))


cdef inline uint64_t count_bits(uint64_t labels, uint32_t rank) noexcept nogil:
    """Packed counts of the first `rank` events, a bit each."""
    cdef uint64_t ones = popcount(labels & bits_below(rank))
    return (ones << 32) | (rank - ones)


cdef inline uint64_t insert_bit(uint64_t bits, uint32_t rank, uint64_t bit) noexcept nogil:
    cdef uint64_t low = bits_below(rank)
    return (bits & low) | ((bits & ~low) << 1) | (bit << rank)


cdef inline uint64_t delete_bit(uint64_t bits, uint32_t rank) noexcept nogil:
    cdef uint64_t low = bits_below(rank)
    return (bits & low) | ((bits >> 1) & ~low)
