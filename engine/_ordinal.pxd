# The ROC of ordered classes: what its window uses below Python.
from engine._batch cimport Batch
from engine._products cimport ProductTree

cdef struct Past:
    # What a score was before an event came.
    double weights[8]
    int uneven  # how many more of its cells the event made uneven


cdef class OrdinalRoc:
    cdef ProductTree tree
    cdef dict cells  # score -> the twin's cell per class; None while every weight is 1
    cdef Py_ssize_t events, uneven
    cdef bint busy  # a call is half-way through cells, which is Python's

    cdef int enter_all(self, Batch batch) except -1
    cdef int clear(self) except -1
    cdef int add_event(self, double score, int label, double weight) except -1
    cdef int remove_event(self, double score, int label, double weight) except -1
    cdef int check_idle(self) except -1
    cdef int enter_weighted(self, Batch batch) except -1
    cdef int change_weight(self, double score, int label, double weight, bint enters) except -1
    cdef tuple change_cell(self, double score, int label, object mass, bint enters, Past *past)
    cdef int set_cell(
        self, object key, list row, int label, object cell, const double *weights, int uneven
    ) except -1
    cdef int to_weights(self) except -1
    cdef list rows(self)
    cdef int to_counts(self) except -1
