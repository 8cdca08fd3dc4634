"""The hull and the H-measure over weights: what holds where counts do not.

With weights, with priors other than the data's, or with only so many vertices, terms change with every
event; so these read the whole list of edges.
"""

from libc.math cimport NAN, fmax, fmin

from engine._severity cimport Severity


cdef tuple hull_of_blocks(object scores, object negative, object positive):
    """The edges of the hull of weighted blocks: last score, negatives, positives of each. O(n)."""
    cdef Py_ssize_t size = 0, i
    last, merged_negative, merged_positive = scores.copy(), negative.copy(), positive.copy()
    cdef double[::1] k = last, n = merged_negative, p = merged_positive
    cdef double more_negative, more_positive
    for i in range(len(scores)):
        more_negative = n[i]
        more_positive = p[i]
        while size and p[size - 1] * more_negative >= more_positive * n[size - 1]:
            size -= 1
            more_negative += n[size]
            more_positive += p[size]
        k[size] = k[i]
        n[size] = more_negative
        p[size] = more_positive
        size += 1
    return last[:size], merged_negative[:size], merged_positive[:size]


cdef double loss_share(object negative, object positive, Severity severity) except? -1:
    """H of edges given by their weights."""
    cdef const double[::1] n = negative, p = positive
    cdef double loss = 0, all_negative = 0, all_positive = 0, worst
    cdef Py_ssize_t i
    for i in range(n.shape[0]):
        loss += severity.loss(n[i], p[i])
        all_negative += n[i]
        all_positive += p[i]
    worst = severity.loss(all_negative, all_positive)
    if worst == 0:
        return NAN
    return fmin(fmax(1 - loss / worst, 0.0), 1.0)
