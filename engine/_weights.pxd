# The tree of weights: sums, AUC and hull of both classes, with nothing ever taken back from a sum.
from libc.stdint cimport uint32_t

from engine._corners cimport Corners
from engine._fold cimport FoldTree, Node
from engine._severity cimport Severity
from engine._sums cimport Edge, Sums
from engine._tree cimport Status

cdef class WeightTree(FoldTree):
    cdef uint32_t now  # the state of summaries that hold
    cdef Py_ssize_t since  # events that came or went since the last reading of a hull
    cdef Corners corners

    cdef Status enter(self, double score, int label, double weight) noexcept nogil
    cdef bint leave(self, double score, int label, double weight) noexcept nogil
    cdef void set_sum(self, double score, int label, double high, double low) noexcept nogil
    cdef void untie(self, double *cell) noexcept nogil
    cdef void scale(self, int exponent) noexcept nogil
    cdef Sums *sums(self) noexcept nogil
    cdef double auc(self) noexcept nogil
    cdef double h_measure(self, Severity severity) except? -1
    cdef const Edge *edges(self, uint32_t *size) except NULL
    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil

    cdef bint hull(self, Node *node) noexcept nogil

cdef void add_exactly(double *high, double *low, double *slack, double weight) noexcept nogil
