# Extreme points of the counted tree below an edge of the hull.
from libc.stdint cimport int64_t, uint64_t

from engine._tree cimport Tree

cdef struct Query:
    # All points are counts (negatives, positives) after a score, seen from the edge's start.
    int64_t end_x, end_y  # where the edge ends
    double low, high  # only points at scores in (low, high]
    int64_t depth, x, y  # the deepest point so far; depth < 0 once there is one
    double score

cdef void search(Tree tree, Query *query, uint64_t start) noexcept nogil
