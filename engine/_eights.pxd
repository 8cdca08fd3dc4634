# Eight words at a time, in vectors of two, which every 64-bit machine has.
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #include <stdint.h>

    typedef double roc_doubles __attribute__((vector_size(16), aligned(8), may_alias));
    typedef int64_t roc_words __attribute__((vector_size(16), aligned(8), may_alias));

    /* A compare gives -1 in each lane where it holds. */
    static inline uint64_t roc_sum(roc_words a, roc_words b, roc_words c, roc_words d) {
        roc_words sum = (a + b) + (c + d);
        return 0 - (uint64_t)(sum[0] + sum[1]);
    }

    static inline uint64_t roc_below(const double *keys, double score) {
        const roc_doubles *k = (const roc_doubles *)keys, s = {score, score};
        return roc_sum(k[0] < s, k[1] < s, k[2] < s, k[3] < s);
    }

    static inline uint64_t roc_upto(const double *keys, double score) {
        const roc_doubles *k = (const roc_doubles *)keys, s = {score, score};
        return roc_sum(k[0] <= s, k[1] <= s, k[2] <= s, k[3] <= s);
    }

    /* ROC_AFTER + 7 - i are eight words, all ones behind place i. */
    static const uint64_t ROC_AFTER[16] = {0, 0, 0, 0, 0, 0, 0, 0, ~0ULL, ~0ULL, ~0ULL, ~0ULL,
                                           ~0ULL, ~0ULL, ~0ULL, ~0ULL};

    static inline void roc_add_after(uint64_t *counts, unsigned place, uint64_t more) {
        const roc_words *mask = (const roc_words *)(ROC_AFTER + 7 - place);
        const roc_words added = {(int64_t)more, (int64_t)more};
        roc_words *c = (roc_words *)counts;
        c[0] += mask[0] & added;
        c[1] += mask[1] & added;
        c[2] += mask[2] & added;
        c[3] += mask[3] & added;
    }
    """
    uint64_t below_in_eight "roc_below"(const double *keys, double score) noexcept nogil
    uint64_t upto_in_eight "roc_upto"(const double *keys, double score) noexcept nogil
    # Add packed counts to the words behind `place` of eight.
    void add_after_in_eight "roc_add_after"(uint64_t *counts, unsigned int place, uint64_t more) noexcept nogil
