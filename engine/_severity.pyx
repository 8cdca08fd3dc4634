"""The term of one hull edge in the H-measure, for a severity Beta(alpha, beta).

The relative cost c of a false positive is distributed as Beta(alpha, beta) (Hand 2009). An edge of
the hull with d0 negatives and d1 positives is where c = d1 / (d0 + d1) changes the best threshold;
it adds to the expected loss

    d0 a / (a + b) I_c(a + 1, b) + d1 b / (a + b) I_{1-c}(b + 1, a)

with I the regularised incomplete beta function, scipy's (Tatti 2018, section 6; both tails are taken
as such and lose no digits near 0 or 1). For a = b = 2 and n = d0 + d1 that is
d0 d1 / n (1 + d0 d1 / n^2) / 2.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport isfinite

from engine.readings.severity import check_severity

cdef Beta incomplete = NULL


cdef Beta scipy_function(str name) except NULL:
    """A double function of scipy.special.cython_special, found when it is first needed.

    scipy's import costs more than this package's, and most severities are Beta(2, 2).
    """
    from scipy.special import cython_special

    capsule = cython_special.__pyx_capi__[name]
    cdef const char *signature = PyCapsule_GetName(capsule)
    if not signature.startswith(b"double (double, double, double, int"):
        raise ImportError(f"scipy's {name} is {signature.decode()}, which this build cannot call")
    return <Beta> PyCapsule_GetPointer(capsule, signature)


cdef class Severity:
    """Beta(alpha, beta) over the relative cost of a false positive.

    Raises
    ------
    ValueError
        When a parameter is not positive and finite.
    """

    def __cinit__(self, double alpha, double beta):
        global incomplete
        if not (isfinite(alpha) and isfinite(beta) and alpha > 0 and beta > 0):
            check_severity(alpha, beta)
        self.alpha = alpha
        self.beta = beta
        self.polynomial = alpha == 2 and beta == 2
        self.share_a = alpha / (alpha + beta)
        self.share_b = beta / (alpha + beta)
        if not self.polynomial:
            if incomplete == NULL:
                incomplete = scipy_function("__pyx_fuse_0betainc")
            self.lower = incomplete

    cdef double loss(self, double negative, double positive) noexcept nogil:
        """The term of an edge with these weights; it scales with them."""
        cdef double length = negative + positive, c, product
        if negative <= 0 or positive <= 0:
            return 0
        if self.polynomial:
            product = (negative / length) * (positive / length)
            return length * product * (1 + product) / 2
        c = positive / length
        return (
            negative * self.share_a * self.lower(self.alpha + 1, self.beta, c, 0)
            + positive * self.share_b * self.lower(self.beta + 1, self.alpha, negative / length, 0)
        )

    cdef bint equals(self, Severity other) noexcept:
        return other is not None and self.alpha == other.alpha and self.beta == other.beta
