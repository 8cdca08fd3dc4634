# Where the curve may be below a chord: by boxes, eight at a time, and by label bits, sixteen at a time.
from libc.stdint cimport int64_t, uint32_t, uint64_t

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

cdef extern from *:
    """
    #include <stdint.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    typedef int16_t roc_shorts __attribute__((vector_size(16)));
    typedef uint16_t roc_ushorts __attribute__((vector_size(16)));
    typedef uint8_t roc_octets __attribute__((vector_size(8), aligned(8), may_alias));

    /* Of each byte how many of its lowest 1 to 8 bits are set, a byte each. */
    #define ROC_UPTO(byte, i) ((uint64_t)__builtin_popcount((byte) & ((2 << (i)) - 1)) << 8 * (i))
    #define ROC_ONE(b) (ROC_UPTO(b, 0) | ROC_UPTO(b, 1) | ROC_UPTO(b, 2) | ROC_UPTO(b, 3) | \\
                        ROC_UPTO(b, 4) | ROC_UPTO(b, 5) | ROC_UPTO(b, 6) | ROC_UPTO(b, 7))
    #define ROC_FOUR(b) ROC_ONE(b), ROC_ONE(b + 1), ROC_ONE(b + 2), ROC_ONE(b + 3)
    #define ROC_16(b) ROC_FOUR(b), ROC_FOUR(b + 4), ROC_FOUR(b + 8), ROC_FOUR(b + 12)
    #define ROC_64(b) ROC_16(b), ROC_16(b + 16), ROC_16(b + 32), ROC_16(b + 48)
    static const uint64_t ROC_ONES[256] = {ROC_64(0), ROC_64(64), ROC_64(128), ROC_64(192)};

    /* Signs of sixteen numbers, a bit each. */
    static inline uint64_t roc_signs(roc_ushorts low, roc_ushorts high) {
    #ifdef __SSE2__
        return (unsigned)_mm_movemask_epi8(_mm_packs_epi16((__m128i)low, (__m128i)high));
    #else
        uint64_t signs = 0;
        for (int i = 0; i < 8; i++)
            signs |= (uint64_t)(low[i] >> 15) << i | (uint64_t)(high[i] >> 15) << (i + 8);
        return signs;
    #endif
    }

    /* Bits of a leaf's labels behind which the curve may be under a chord that it has `depth` over
       where the leaf begins: an event adds `run` to that or takes `rise` away. In numbers of sixteen
       bits, rounded down, so that no bit is missed. Where `depth` is `rise` for each event or more, there
       is none. */
    static inline uint64_t roc_low_bits(uint64_t labels, unsigned size, int64_t depth, uint64_t run,
                                        uint64_t rise) {
        const int shift = (run | rise) >> 8 ? 56 - __builtin_clzll(run | rise) : 0;
        const uint16_t up = run >> shift, down = (rise + (1ULL << shift) - 1) >> shift;
        const roc_ushorts places = {1, 2, 3, 4, 5, 6, 7, 8};
        const roc_ushorts fall = places * down;
        const uint16_t step = up + down;
        uint64_t low = 0;
        uint16_t level;
        if (depth >= (int64_t)(rise * 64))
            return 0;
        depth >>= shift;
        level = depth < -16384 ? -16384 : depth;
        for (unsigned i = 0; i < size; i += 16) {
            const unsigned first = labels >> i & 255, second = labels >> i >> 8 & 255;
            const roc_ushorts a = __builtin_convertvector(
                *(const roc_octets *)(ROC_ONES + first), roc_ushorts);
            const roc_ushorts b = __builtin_convertvector(
                *(const roc_octets *)(ROC_ONES + second), roc_ushorts);
            const uint16_t middle = level + step * (ROC_ONES[first] >> 56) - 8 * down;
            low |= roc_signs(a * step + (level - fall), b * step + (middle - fall)) << i;
            level = middle + step * (ROC_ONES[second] >> 56) - 8 * down;
        }
        return low;
    }
    """
    uint64_t low_bits "roc_low_bits"(
        uint64_t labels, uint32_t size, int64_t depth, uint64_t run, uint64_t rise
    ) noexcept nogil
