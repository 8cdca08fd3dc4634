# The tree of ordered classes: what the ROC over it calls.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._fold cimport FoldTree, Node, cells_of
from engine._ratio cimport Whole
from engine._tree cimport Status

cdef enum:
    MOST = 8  # classes
    TIED = 8  # see tags_of

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


cdef inline uint32_t *tags_of(const Node *leaf) noexcept nogil:
    """The cells of a leaf: the class of a single event, or TIED + a row."""
    return <uint32_t *> cells_of(leaf)
