"""Decimal digits to the nearest double, as float() and orjson round them.

Up to 2^53 and 10^22 one exact operation does (Clinger 1990). Beyond, the digits are multiplied by 128
bits of the power of ten, which decides every case but those this module leaves to its caller (Lemire,
"Number parsing at a gigabyte per second", 2021; Mushtak and Lemire, "Fast number parsing without
fallback", 2023).
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    static inline uint64_t rocstream_product(uint64_t a, uint64_t b, uint64_t *high) {
        unsigned __int128 product = (unsigned __int128) a * b;
        *high = (uint64_t) (product >> 64);
        return (uint64_t) product;
    }
    static inline int rocstream_zeros(uint64_t a) { return __builtin_clzll(a); }
    """
    uint64_t product "rocstream_product"(uint64_t a, uint64_t b, uint64_t *high) noexcept nogil
    int leading_zeros "rocstream_zeros"(uint64_t a) noexcept nogil

cdef enum:
    # Between them every product is a normal double, whatever the 19 digits.
    LOWEST = -300
    HIGHEST = 280
    POWERS = HIGHEST - LOWEST + 1

cdef double[23] TENS
cdef uint64_t[POWERS] HIGH
cdef uint64_t[POWERS] LOW


def _power(exponent):
    """Return the leading 128 bits of 5 ** exponent, of a negative one rounded up."""
    five = 5 ** abs(exponent)
    if exponent >= 0:
        shift = 128 - five.bit_length()
        return five << shift if shift >= 0 else five >> -shift
    bits = (five - 1).bit_length()
    if exponent >= -27:
        return 2 ** (bits + 127) // five + 1
    power = 2 ** (2 * bits + 128) // five + 1
    return power >> (power.bit_length() - 128)


def _fill():
    for at in range(23):
        TENS[at] = float(10**at)
    for at in range(POWERS):
        power = _power(at + LOWEST)
        HIGH[at] = power >> 64
        LOW[at] = power & ((1 << 64) - 1)


_fill()


cdef uint64_t rounded(uint64_t digits, int exponent) noexcept nogil:
    """The bits of the double nearest to digits * 10 ** exponent, digits above 0."""
    cdef int zeros = leading_zeros(digits), upper, shift
    cdef int64_t power
    cdef uint64_t high, low, more, mantissa
    digits <<= zeros
    low = product(digits, HIGH[exponent - LOWEST], &high)
    if (high & 0x1FF) == 0x1FF:
        product(digits, LOW[exponent - LOWEST], &more)
        low += more
        if more > low:
            high += 1
    upper = high >> 63
    shift = upper + 64 - 52 - 3
    mantissa = high >> shift
    power = (((152170 + 65536) * <int64_t> exponent) >> 16) + 63 + upper - zeros + 1023
    # Exactly between two doubles: to the even one.
    if low <= 1 and -4 <= exponent <= 23 and (mantissa & 3) == 1 and mantissa << shift == high:
        mantissa &= ~(<uint64_t> 1)
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >= <uint64_t> 1 << 53:
        mantissa = <uint64_t> 1 << 52
        power += 1
    return (mantissa & ~(<uint64_t> 1 << 52)) | (<uint64_t> power << 52)


cdef bint nearest(uint64_t digits, int exponent, bint cut, double *value) noexcept nogil:
    """Give the double nearest to digits * 10 ** exponent; False where this cannot tell.

    Parameters
    ----------
    digits
        At most 19 of them.
    cut
        Whether digits other than 0 may follow.
    """
    cdef uint64_t bits
    if digits == 0 and not cut:
        value[0] = 0.0
        return True
    if not cut and digits <= <uint64_t> 1 << 53 and -22 <= exponent <= 22:
        if exponent < 0:
            value[0] = <double> digits / TENS[-exponent]
        else:
            value[0] = <double> digits * TENS[exponent]
        return True
    if digits == 0 or not LOWEST <= exponent <= HIGHEST:
        return False
    bits = rounded(digits, exponent)
    if cut and bits != rounded(digits + 1, exponent):
        return False
    memcpy(value, &bits, 8)
    return True


def _nearest(uint64_t digits, int exponent, bint cut):
    """Let tests ask: the double, or None."""
    cdef double value
    return value if nearest(digits, exponent, cut, &value) else None
