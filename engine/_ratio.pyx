"""Quotients of whole numbers in [0, 1], correctly rounded whatever their size.

A quotient of two doubles is correctly rounded by the machine. Where the numbers do not fit into doubles,
as those of 2**27 events do not, they are divided by hand.
"""

from libc.math cimport ldexp
from libc.stdint cimport uint64_t


cdef double wide_ratio(Whole part, Whole whole) noexcept nogil:
    """part / whole in [0, 1], for whole from 1 up to 2**127."""
    cdef uint64_t bits = 0
    cdef int scale = 0, i
    if part >= whole:
        return 1
    if whole <= EXACT:
        return <double> part / <double> whole
    if part == 0:
        return 0
    # Long division, a bit at a time: 54 from the first one set, and whether anything is left.
    while True:
        scale -= 1
        part <<= 1  # both are under 2**127
        if part >= whole:
            break
    for i in range(54):
        bits <<= 1
        if part >= whole:
            part -= whole
            bits |= 1
        part <<= 1
    # Round half to even; the last bit goes.
    if bits & 1 and (part or bits & 2):
        bits += 1
    return ldexp(<double> (bits >> 1), scale - 52)
