# The tree of ordered classes, and the ROC over it: what its window uses below Python.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._fold cimport FoldTree, Node
from engine._ratio cimport Whole
from engine._tree cimport Status

ctypedef fused Exact:
    uint64_t
    Whole

cdef class ProductTree(FoldTree):
    cdef int classes
    cdef int64_t counts[8]  # events of each class
    cdef double units[8]  # per class, what a weight of 1 counts as: a power of two
    cdef bint weighted  # whether weights other than 1 may be inside
    cdef bint large  # whether products are too large for whole numbers
    cdef uint32_t real_state  # of summaries made of doubles with these units

    cdef Status enter(self, double score, int label) noexcept nogil
    cdef Status leave(self, double score, int label) noexcept nogil
    cdef Status put(self, double score, const double *weights) noexcept nogil
    cdef void fold_whole(self, Exact *product, const Node *node) noexcept nogil
    cdef double vuhs(self) except? -1
    cdef double real_vuhs(self) except? -1
    cdef void choose_units(self) noexcept nogil
    cdef Status tie(self, Node *leaf, uint32_t rank) noexcept nogil
    cdef void untie(self, Node *leaf, uint32_t rank) noexcept nogil


cdef class OrdinalRoc:
    cdef ProductTree tree
    cdef dict cells  # score -> the twin's cell per class; None while every weight is 1
    cdef Py_ssize_t events, uneven

    cdef int add_event(self, double score, int label, double weight) except -1
    cdef int remove_event(self, double score, int label, double weight) except -1
    cdef int change_cell(self, double score, int label, object mass, bint enters) except -1
    cdef int to_weights(self) except -1
    cdef list rows(self)
    cdef int to_counts(self) except -1
