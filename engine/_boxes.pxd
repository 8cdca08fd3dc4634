# Boxes of the curve beside a chord, eight at a time.
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>

    typedef double roc_pair __attribute__((vector_size(16), aligned(8), may_alias));
    typedef int64_t roc_bits __attribute__((vector_size(16), aligned(8), may_alias));

    /* A whole number under 2**52 in the low bits of a double of 2**52, less that: the number. */
    static inline roc_pair roc_to_doubles(roc_bits whole) {
        const roc_bits magic = {0x4330000000000000, 0x4330000000000000};
        const roc_pair base = {0x1p52, 0x1p52};
        return (roc_pair)(whole | magic) - base;
    }

    /* Bit i: the lower right corner of child i's box lies deeper below the chord to (end_x, end_y)
       than `depth`. `starts` are packed counts before each child of a group, `end` those behind the
       last, and (x, y) what comes before the group. Exact while no product passes 2**53. */
    static inline unsigned roc_deep_boxes(const uint64_t *starts, uint64_t end, double end_x,
                                          double end_y, double x, double y, double depth) {
        const roc_bits low = {0xFFFFFFFF, 0xFFFFFFFF};
        const roc_pair ex = {end_x, end_x}, ey = {end_y, end_y}, xs = {x, x}, ys = {y, y};
        const roc_pair least = {depth, depth};
        unsigned deep = 0;
        for (int i = 0; i < 8; i += 2) {
            roc_bits before = *(const roc_bits *)(starts + i);
            roc_bits upto = {(int64_t)starts[i + 1], (int64_t)(i < 6 ? starts[i + 2] : end)};
            roc_pair rise = ys + roc_to_doubles((before >> 32) & low);
            roc_pair run = xs + roc_to_doubles(upto & low);
            roc_bits below = ex * rise - ey * run < least;
            deep |= (unsigned)(below[0] & 1) << i | (unsigned)(below[1] & 2) << i;
        }
        return deep;
    }
    """
    unsigned int deep_boxes "roc_deep_boxes"(
        const uint64_t *starts, uint64_t end, double end_x, double end_y, double x, double y, double depth
    ) noexcept nogil
