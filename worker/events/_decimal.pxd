# Decimal digits to the nearest double.
from libc.stdint cimport uint64_t

cdef bint nearest(uint64_t digits, int exponent, bint cut, double *value) noexcept nogil
