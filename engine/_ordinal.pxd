# The ROC of ordered classes: what its window uses below Python.
from engine._batch cimport Batch
from engine._products cimport ProductTree


cdef class OrdinalRoc:
    cdef ProductTree tree
    cdef dict cells  # score -> the twin's cell per class; None while every weight is 1
    cdef Py_ssize_t events, uneven

    cdef int enter_all(self, Batch batch) except -1
    cdef int clear(self) except -1
    cdef int add_event(self, double score, int label, double weight) except -1
    cdef int remove_event(self, double score, int label, double weight) except -1
    cdef int change_cell(self, double score, int label, object mass, bint enters) except -1
    cdef int to_weights(self) except -1
    cdef list rows(self)
    cdef int to_counts(self) except -1
