# The 64 keys of a leaf: one found among them, one entered, one taken out.
#
# Where the processor has vectors of four (AVX2, asked at run time) all keys are gone over, whatever the
# rank: how many there are to compare or to move would be a branch that nothing can foretell, and a
# branch foretold wrongly costs more than the keys do.
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memmove

from engine._leaf cimport rank_below

cdef extern from *:
    """
    #include <stdint.h>

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>

    #define ROC_FOURS __attribute__((target("avx2")))

    static inline int roc_has_fours(void) { return __builtin_cpu_supports("avx2"); }

    ROC_FOURS static inline uint64_t roc_find(const double *keys, double score) {
        const __m256d s = _mm256_set1_pd(score);
        __m256i below = _mm256_setzero_si256(), upto = below;
        #pragma GCC unroll 4
        for (int i = 0; i < 64; i += 4) {
            __m256d k = _mm256_loadu_pd(keys + i);
            /* A compare gives -1 in each lane where it holds. */
            below = _mm256_sub_epi64(below, _mm256_castpd_si256(_mm256_cmp_pd(k, s, _CMP_LT_OQ)));
            upto = _mm256_sub_epi64(upto, _mm256_castpd_si256(_mm256_cmp_pd(k, s, _CMP_LE_OQ)));
        }
        below = _mm256_or_si256(below, _mm256_slli_epi64(upto, 32));
        __m128i sum = _mm_add_epi64(_mm256_castsi256_si128(below),
                                    _mm256_extracti128_si256(below, 1));
        return (uint64_t)_mm_cvtsi128_si64(sum) + (uint64_t)_mm_extract_epi64(sum, 1);
    }

    /* Each key is the middle one of itself, the one before and the score. */
    ROC_FOURS static inline void roc_enter(double *keys, double score) {
        const __m256d s = _mm256_set1_pd(score);
        #pragma GCC unroll 4
        for (int i = 60; i > 0; i -= 4) {
            __m256d k = _mm256_loadu_pd(keys + i), before = _mm256_loadu_pd(keys + i - 1);
            _mm256_storeu_pd(keys + i, _mm256_max_pd(before, _mm256_min_pd(k, s)));
        }
        for (int i = 3; i > 0; i--) {
            double least = keys[i] < score ? keys[i] : score;
            keys[i] = keys[i - 1] > least ? keys[i - 1] : least;
        }
        keys[0] = keys[0] < score ? keys[0] : score;
    }

    ROC_FOURS static inline void roc_drop(double *keys, double score) {
        const __m256d s = _mm256_set1_pd(score);
        #pragma GCC unroll 4
        for (int i = 0; i < 60; i += 4) {
            __m256d k = _mm256_loadu_pd(keys + i), after = _mm256_loadu_pd(keys + i + 1);
            _mm256_storeu_pd(keys + i,
                             _mm256_blendv_pd(after, k, _mm256_cmp_pd(k, s, _CMP_LT_OQ)));
        }
        for (int i = 60; i < 63; i++) keys[i] = keys[i] < score ? keys[i] : keys[i + 1];
        keys[63] = __builtin_inf();
    }
    #else
    static inline int roc_has_fours(void) { return 0; }
    static inline uint64_t roc_find(const double *keys, double score) { return 0; }
    static inline void roc_enter(double *keys, double score) {}
    static inline void roc_drop(double *keys, double score) {}
    #endif
    """
    bint has_fours "roc_has_fours"() noexcept nogil
    # Of a score the rank and, 32 bits higher, the rank behind its tie.
    uint64_t find_in_fours "roc_find"(const double *keys, double score) noexcept nogil
    # Enter a key into fewer than 64; take one out that is there.
    void enter_in_fours "roc_enter"(double *keys, double score) noexcept nogil
    void drop_in_fours "roc_drop"(double *keys, double score) noexcept nogil


cdef inline uint64_t find_plainly(const double *keys, uint32_t size, double score) noexcept nogil:
    cdef uint64_t rank = rank_below(keys, score), end = rank
    while end < size and keys[end] == score:
        end += 1
    return end << 32 | rank


cdef inline void enter_plainly(double *keys, uint32_t rank, uint32_t size, double score) noexcept nogil:
    memmove(keys + rank + 1, keys + rank, sizeof(double) * (size - rank))
    keys[rank] = score


cdef inline void drop_plainly(double *keys, uint32_t rank, uint32_t size) noexcept nogil:
    memmove(keys + rank, keys + rank + 1, sizeof(double) * (size - rank - 1))
    keys[size - 1] = INFINITY


cdef inline uint64_t find_key(const double *keys, uint32_t size, double score) noexcept nogil:
    """How many keys of `size` are under `score` and, 32 bits higher, how many at or under it."""
    return find_in_fours(keys, score) if has_fours() else find_plainly(keys, size, score)


cdef inline void enter_key(double *keys, uint32_t rank, uint32_t size, double score) noexcept nogil:
    """Enter a key at its rank into `size` of them, fewer than 64."""
    if has_fours():
        enter_in_fours(keys, score)
    else:
        enter_plainly(keys, rank, size, score)


cdef inline void drop_key(double *keys, uint32_t rank, uint32_t size, double score) noexcept nogil:
    """Take a key out of `size` of them; of a tie any, for they are equal."""
    if has_fours():
        drop_in_fours(keys, score)  # which need not wait for the rank
    else:
        drop_plainly(keys, rank, size)
