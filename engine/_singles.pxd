# Sums over single events with weights, in vectors of two.
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>

    typedef double roc_pair __attribute__((vector_size(16), may_alias));
    typedef int64_t roc_bits __attribute__((vector_size(16), may_alias));

    /* What is above 0 and what is below it, and the chains through both so far. */
    static inline void roc_take(roc_pair cell, roc_pair *below, roc_pair *above, roc_pair *u) {
        const roc_pair zero = {0, 0};
        const roc_bits is_above = (roc_bits)(cell > zero);
        const roc_pair up = (roc_pair)((roc_bits)cell & is_above);
        *u += up * *below;
        *below += (roc_pair)((roc_bits)cell & ~is_above);
        *above += up;
    }

    static inline void roc_part(double *parts, double below, double above, double u) {
        parts[0] = -below;
        parts[1] = above;
        parts[2] = -u;
    }

    /* Four runs of equal length side by side, as each sum only waits for itself. */
    static inline void roc_sum_four(const double *cells, uint32_t run, double (*parts)[3]) {
        const double *second = cells + run, *third = second + run, *fourth = third + run;
        roc_pair below = {0, 0}, above = {0, 0}, u = {0, 0};
        roc_pair next_below = {0, 0}, next_above = {0, 0}, next_u = {0, 0};
        for (uint32_t i = 0; i < run; i++) {
            const roc_pair cell = {cells[i], second[i]}, next = {third[i], fourth[i]};
            roc_take(cell, &below, &above, &u);
            roc_take(next, &next_below, &next_above, &next_u);
        }
        for (int k = 0; k < 2; k++) {
            roc_part(parts[k], below[k], above[k], u[k]);
            roc_part(parts[2 + k], next_below[k], next_above[k], next_u[k]);
        }
    }
    """
    # Weights of negatives and positives and U of each of four runs of cells.
    void sum_four "roc_sum_four"(const double *cells, uint32_t run, double (*parts)[3]) noexcept nogil
