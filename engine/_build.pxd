# Whole trees at once.
from libc.stdint cimport uint8_t, uint64_t

from engine._tree cimport Status, Tree

cdef Status build_of_events(
    Tree tree, const double *scores, const uint8_t *labels, uint64_t size
) noexcept nogil
cdef Status build_of_blocks(
    Tree tree, const double *scores, const uint64_t *counts, uint64_t size
) noexcept nogil
