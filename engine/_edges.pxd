# The hull and the H-measure over weights.
from engine._severity cimport Severity

cdef tuple hull_of_blocks(object scores, object negative, object positive)
cdef double loss_share(object negative, object positive, Severity severity) except? -1
cdef tuple thinned(object negative, object positive, double epsilon)
