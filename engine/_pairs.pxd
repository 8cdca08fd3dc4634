# Sums over the blocks of a counted tree.
from libc.stdint cimport uint64_t

from engine._ratio cimport Whole
from engine._tree cimport Tree

cdef struct Pairs:
    # Sums of an event's doubled pairs won, squared: over positives, and over negatives pairs lost.
    Whole by_positives, by_negatives
    uint64_t tied  # pairs of a positive and a negative at one score
    uint64_t negatives, positives  # events at scores where both classes are

cdef Pairs pairs_of(Tree tree) noexcept nogil
cdef object whole(Whole number)
