# The folding tree: its memory layout, and what its two users call.
from libc.stdint cimport uint32_t

cdef enum:
    LEAF = 64  # distinct scores in a leaf
    FAN = 8  # children of an inner node
    MAX_HEIGHT = 20
    FORESEEN = 16  # scores that `foresee` takes at most
    NEVER = 0  # the state of a node that has had no summary yet
    ALL = 0xFF  # every child

cdef extern from *:
    """
    #define FOLD_NONE 0xFFFFFFFFu
    """
    const uint32_t NO_ROW "FOLD_NONE"

cdef struct Node:
    # The summary lies in front of this, so that what its parent reads of a node is in few cache
    # lines: those of weights in one. Behind a leaf's keys lie its cells.
    uint32_t size  # distinct scores of a leaf, children of an inner node
    uint32_t level  # 0: a leaf
    uint32_t state  # what the summary was made for
    uint32_t stale  # bits of the children that changed since, or any bit of a leaf; 0: it holds
    double keys[64]  # of a leaf: scores, ascending, +inf behind the last one

cdef struct Turn:
    Node *node
    uint32_t slot


cdef class FoldTree:
    cdef Node *root
    cdef readonly Py_ssize_t distinct, nodes
    cdef size_t cell_bytes, summary_bytes, row_bytes
    cdef char *rows
    cdef uint32_t rows_used, rows_capacity, free_row
    cdef Turn path[20]  # the way to the leaf reached last, the root first
    cdef uint32_t depth

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil
    cdef void forget(self, Node *node) noexcept nogil

    cdef bint refresh(self, Node *node, uint32_t state) noexcept nogil
    cdef Node *find(self, double score, uint32_t *rank) noexcept nogil
    cdef Node *reach_to_add(self, double score, uint32_t *rank) noexcept nogil
    cdef Node *reach_to_remove(self, double score, uint32_t *rank) noexcept nogil
    cdef void open(self, Node *leaf, uint32_t rank, double score) noexcept nogil
    cdef void close(self, Node *leaf, uint32_t rank) noexcept nogil
    cdef void foresee(self, const double *scores, uint32_t count) noexcept nogil
    cdef Node *next_leaf(self, bint first) noexcept nogil
    cdef char *row(self, uint32_t number) noexcept nogil
    cdef uint32_t new_row(self) noexcept nogil
    cdef void drop_row(self, uint32_t number) noexcept nogil
    cdef size_t bytes(self) noexcept nogil

    cdef size_t front(self) noexcept nogil
    cdef Node *new_node(self, uint32_t level) noexcept nogil
    cdef void free_node(self, Node *node) noexcept nogil
    cdef void empty(self) noexcept nogil
    cdef void clear(self, Node *node) noexcept nogil
    cdef bint split(self, Node *parent, uint32_t slot, bint append, double score) noexcept nogil
    cdef uint32_t fill_up(self, Node *parent, uint32_t slot) noexcept nogil
    cdef void join(self, Node *parent, uint32_t at) noexcept nogil
    cdef void unlink(self, Node *parent, uint32_t slot) noexcept nogil
    cdef Py_ssize_t check_node(self, Node *node, double low, double high) except -1


cdef inline char *cells_of(const Node *leaf) noexcept nogil:
    """What the user keeps of each score of a leaf."""
    return <char *> (leaf + 1)


cdef inline double *firsts_of(const Node *node) noexcept nogil:
    """Smallest scores the children of an inner node may hold: -inf first, +inf behind the last."""
    return <double *> node.keys


cdef inline Node **children_of(const Node *node) noexcept nogil:
    """The children of an inner node, which needs no more bytes than these."""
    return <Node **> (node.keys + FAN)
