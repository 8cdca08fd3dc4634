# The tree of weights: what its nodes, its leaves and its ties have.
from libc.math cimport fabs
from libc.stdint cimport uint32_t

from engine._fold cimport Node

cdef extern from *:
    """
    #define ROC_TIED 0x1p600
    """
    # A cell of a leaf is the weight of a single event, negative for a negative one, or
    # TIED * (1 + row).
    const double TIED "ROC_TIED"

cdef struct Edge:
    double negative, positive

cdef struct Part:
    # Of scores in a row; parts merge: u = u_left + u_right + negative_left * positive_right.
    double negative, positive, u

cdef struct Sums:
    # Of a node.
    double negative, positive, u
    Edge *edges  # of its hull, ascending; valid if `hulled`
    uint32_t size, capacity
    bint hulled

cdef struct Tie:
    # Of a score with several events: high + low, a sum of twice the digits, for each class.
    double high[2]
    double low[2]
    double slack[2]  # a bound of the sum's error
    uint32_t events[2]


cdef inline Sums *sums_of(const Node *node) noexcept nogil:
    return <Sums *> node - 1


cdef inline uint32_t row_of(double cell) noexcept nogil:
    return <uint32_t> (cell / TIED) - 1


cdef inline Edge single(double cell) noexcept nogil:
    """Weights of both classes where a single event is, without a branch and exact."""
    cdef Edge weights
    weights.negative = (fabs(cell) - cell) / 2
    weights.positive = (fabs(cell) + cell) / 2
    return weights


cdef inline Edge weights_of(double cell, const Tie *ties) noexcept nogil:
    """Weights of both classes at a score."""
    cdef Edge weights
    if cell < TIED:
        return single(cell)
    weights.negative = ties[row_of(cell)].high[0]
    weights.positive = ties[row_of(cell)].high[1]
    return weights


cdef inline uint32_t push(Edge *edges, uint32_t size, double negative, double positive) noexcept nogil:
    """Put an edge behind others, joined with those it is not strictly convex to; how many then."""
    while size and (
        edges[size - 1].positive * negative >= positive * edges[size - 1].negative
    ):
        size -= 1
        negative += edges[size].negative
        positive += edges[size].positive
    edges[size].negative = negative
    edges[size].positive = positive
    return size + 1
