"""What leaves of the counted tree do rarely: change between a bit and a count for each score.

A leaf with few ties repeats their key, so that it costs what one without ties does: its label bits
still count. Where ties fill a leaf it keeps each score once, with running counts in a side.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from engine._counts cimport NEGATIVE, POSITIVE, bits_below, negatives, positives


cdef uint32_t distinct_keys(const double *keys, uint32_t size) noexcept nogil:
    cdef uint32_t i, distinct = 0
    for i in range(size):
        distinct += i == 0 or keys[i - 1] != keys[i]
    return distinct


cdef void fold_ties(double *keys, Head *head, uint64_t *counts) noexcept nogil:
    """Write the running counts of a plain leaf and keep each of its keys once."""
    cdef uint32_t i, size = 0
    cdef uint64_t running = 0
    for i in range(head.size):
        if i == 0 or keys[i] != keys[size - 1]:
            keys[size] = keys[i]
            size += 1
        running += POSITIVE if head.labels >> i & 1 else NEGATIVE
        counts[size - 1] = running
    for i in range(size, head.size):
        keys[i] = INFINITY
    head.size = size


cdef void spread_ties(double *keys, Head *head, const uint64_t *counts) noexcept nogil:
    """Write a key and a label bit for every event of a counted leaf, which has 64 at most."""
    cdef double[64] scores
    cdef uint64_t at, before = 0, labels = 0
    cdef uint32_t i, j, end, rank = 0
    for i in range(head.size):
        at = counts[i] - before
        before = counts[i]
        end = rank + <uint32_t> (positives(at) + negatives(at))
        labels |= bits_below(<uint32_t> positives(at)) << rank
        for j in range(rank, end):
            scores[j] = keys[i]
        rank = end
    for i in range(rank):
        keys[i] = scores[i]
    head.labels = labels
    head.size = rank


cdef uint32_t middle_cut(const double *keys) noexcept nogil:
    """The rank near the middle of a full leaf between two scores; over half its keys are distinct."""
    cdef uint32_t cut = LEAF // 2
    while keys[cut] == keys[cut - 1]:
        cut += 1
    return cut


cdef void cut_keys(double *keys, uint32_t cut, double *fresh) noexcept nogil:
    """Move the keys of a full leaf from `cut` on to an empty one."""
    cdef uint32_t i
    for i in range(cut, LEAF):
        fresh[i - cut] = keys[i]
        keys[i] = INFINITY
