# Quotients of whole numbers, correctly rounded whatever their size.
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #define ROC_EXACT (1ULL << 53)
    """
    const uint64_t EXACT "ROC_EXACT"  # whole numbers up to this are doubles
    ctypedef long long Whole "unsigned __int128"

cdef double wide_ratio(Whole part, Whole whole) noexcept nogil


cdef inline double ratio(uint64_t part, uint64_t whole) noexcept nogil:
    """part / whole in [0, 1], where whole is not 0."""
    if whole <= EXACT:
        return <double> part / <double> whole
    return wide_ratio(part, whole)
