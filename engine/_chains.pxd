# Chains through single events of up to four classes, in vectors of four.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>

    typedef uint32_t roc_fours __attribute__((vector_size(16), aligned(4), may_alias));

    #define ROC_ALL {~0u, ~0u, ~0u, ~0u}
    /* Which column an event of each class adds to the one behind it. */
    static const roc_fours ROC_TAKES[4][4] = {
        {ROC_ALL, {0}, {0}, {0}}, {{0}, ROC_ALL, {0}, {0}},
        {{0}, {0}, ROC_ALL, {0}}, {{0}, {0}, {0}, ROC_ALL}};

    /* Columns lie eight words apart. All stay in registers: an event of class k adds column k to the
       next, and through memory each would wait for the one before. */
    static inline int roc_fold_four(uint32_t *columns, const uint32_t *tags, uint32_t size) {
        const roc_fours first = {1, 0, 0, 0};
        roc_fours a = {0, 1, 0, 0}, b = {0, 0, 1, 0}, c = {0, 0, 0, 1}, d = {0, 0, 0, 0};
        uint32_t seen = 0;
        for (uint32_t i = 0; i < size; i++) {
            const roc_fours *takes = ROC_TAKES[tags[i] & 3];
            seen |= tags[i];
            d += c & takes[3];
            c += b & takes[2];
            b += a & takes[1];
            a += first & takes[0];
        }
        *(roc_fours *)(columns + 8) = a;
        *(roc_fours *)(columns + 16) = b;
        *(roc_fours *)(columns + 24) = c;
        *(roc_fours *)(columns + 32) = d;
        return seen < 4;
    }
    """
    # Fold events into the columns behind each class; 0 when a tag is none of 0 to 3.
    bint fold_four "roc_fold_four"(uint32_t *columns, const uint32_t *tags, uint32_t size) noexcept nogil
