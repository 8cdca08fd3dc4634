# The severity: which costs the H-measure holds to be likely.
ctypedef double (*Beta)(double, double, double, int) noexcept nogil

cdef class Severity:
    cdef readonly double alpha, beta
    cdef bint polynomial
    cdef double share_a, share_b
    cdef Beta lower

    cdef double loss(self, double negative, double positive) noexcept nogil
    cdef bint equals(self, Severity other) noexcept
