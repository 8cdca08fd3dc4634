# The tree of weights: sums, AUC and hull of both classes, with nothing ever taken back from a sum.
from libc.stdint cimport uint32_t

from engine._fold cimport FoldTree, Node
from engine._severity cimport Severity
from engine._tree cimport Status

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


cdef class WeightTree(FoldTree):
    cdef uint32_t now  # the state of summaries that hold

    cdef Status enter(self, double score, int label, double weight) noexcept nogil
    cdef bint leave(self, double score, int label, double weight) noexcept nogil
    cdef void set_sum(self, double score, int label, double high, double low) noexcept nogil
    cdef void untie(self, double *cell) noexcept nogil
    cdef void scale(self, int exponent) noexcept nogil
    cdef Sums *sums(self) noexcept nogil
    cdef double auc(self) noexcept nogil
    cdef double h_measure(self, Severity severity) except? -1
    cdef int make_hull(self) except -1
    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil

    cdef bint hull(self, Node *node) noexcept nogil

cdef void add_exactly(double *high, double *low, double *slack, double weight) noexcept nogil
