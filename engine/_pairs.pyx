"""What readings over pairs of a positive and a negative sum up: DeLong's interval, and ties.

One walk over the leaves, all whole numbers: with n0 negatives and n1 positives, at most 2**32 of them
together, squares of doubled pairs sum up to 4 n0**2 n1, under 2**98.
"""

from libc.stdint cimport uint32_t, uint64_t

from engine._balance cimport MAX_HEIGHT, Step
from engine._counts cimport negatives, one_event, positives
from engine._pool cimport NONE


cdef inline void sum_up(
    Pairs *pairs, uint64_t there, uint64_t *doubled_below, uint64_t *doubled_above
) noexcept nogil:
    """Take in the packed counts of a score; `doubled_*` are twice the negatives below it and the
    positives from it on upwards."""
    cdef uint64_t negative = negatives(there), positive = positives(there), won, lost
    won = doubled_below[0] + negative
    lost = doubled_above[0] - positive
    # The first product is at most 2 n0 n1 and so within 2**63.
    pairs.by_positives += <Whole> (positive * won) * won
    pairs.by_negatives += <Whole> (negative * lost) * lost
    doubled_below[0] += 2 * negative
    doubled_above[0] -= 2 * positive
    if negative and positive:
        pairs.tied += negative * positive
        pairs.negatives += negative
        pairs.positives += positive


cdef Pairs pairs_of(Tree tree) noexcept nogil:
    """Sum up; O(distinct scores), and nothing is allocated."""
    cdef Step path[MAX_HEIGHT]
    cdef uint32_t leaf = tree.next_leaf(path, True), rank, size
    cdef uint64_t below = 0, above = 2 * positives(tree.total), labels, there, before
    cdef const uint64_t *counts
    cdef const double *keys
    cdef Pairs pairs
    pairs.by_positives = pairs.by_negatives = 0
    pairs.tied = pairs.negatives = pairs.positives = 0
    while leaf != NONE:
        size = tree.heads[leaf].size
        if tree.heads[leaf].side != NONE:
            counts = tree.sides[tree.heads[leaf].side].counts
            before = 0
            for rank in range(size):
                sum_up(&pairs, counts[rank] - before, &below, &above)
                before = counts[rank]
        else:
            keys = tree.leaves[leaf].keys
            labels = tree.heads[leaf].labels
            there = 0
            for rank in range(size):
                there += one_event(labels >> rank & 1)
                # Behind the last key stands infinity, but no key stands behind the 64th.
                if rank + 1 == size or keys[rank + 1] != keys[rank]:
                    sum_up(&pairs, there, &below, &above)
                    there = 0
        leaf = tree.next_leaf(path, False)
    return pairs


cdef object whole(Whole number):
    """A whole number as Python has it."""
    cdef object high = <uint64_t> (number >> 64)
    return high << 64 | <uint64_t> number
