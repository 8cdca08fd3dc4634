# The weighted blocks: what the Roc calls.
from libc.stdint cimport uint32_t

from engine._fold cimport FoldTree, Node

cdef struct Cell:
    # Of a score: the weight of each class, the number of its events, and how many of those have a
    # weight other than 1, as the twin's cells count them.
    double weights[2]
    uint32_t events[2]
    uint32_t odd[2]

cdef struct Part:
    # Of a node; they merge: u = u_left + u_right + negative_left * positive_right.
    double negative, positive, u


cdef class Blocks(FoldTree):
    cdef dict tails
    cdef readonly Py_ssize_t events, uneven

    cdef int add(self, double score, bint label, double weight) except -1
    cdef int remove(self, double score, bint label, double weight) except -1
    cdef int put(self, double score, bint label, list parts, uint32_t events, uint32_t odd) except -1
    cdef double auc(self) noexcept nogil
    cdef double total(self, bint label) noexcept nogil
    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil
    cdef void part_at(self, double threshold, Part *below, Part *above) noexcept nogil

    cdef Cell *cell_at(self, double score) noexcept nogil
    cdef list parts_of(self, double score, bint label)
    cdef const Part *sums(self) noexcept nogil

cdef object absent(double score, bint label, double weight)
