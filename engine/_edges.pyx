"""The hull and the H-measure over weights: what holds where counts do not.

With weights, with priors other than the data's, or with only so many vertices, terms change with every
event; so these read the whole list of edges.
"""

from libc.math cimport NAN, fmax, fmin

from engine._severity cimport Severity

import numpy as np


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


cdef tuple thinned(object negative, object positive, double epsilon):
    """`engine.readings.severity.thin` in one walk: what it leaves of the edges. O(edges)."""
    cdef Py_ssize_t size = len(negative), kept = 0, i
    above, few_negative, few_positive = np.zeros(size + 1), np.zeros(size), np.zeros(size)
    cdef const double[::1] n = negative, p = positive
    cdef double[::1] a = above, few_n = few_negative, few_p = few_positive
    cdef double factor = 1 + epsilon, first_above, first_under = 0, under = 0
    for i in range(size - 1, -1, -1):
        a[i] = a[i + 1] + n[i]
    first_above = a[0]
    for i in range(size):
        few_n[kept] += n[i]
        few_p[kept] += p[i]
        under += p[i]
        # The edge ends in the first vertex of another group, or in the last one of all.
        if i + 1 == size or a[i + 1] < first_above / factor or under > first_under * factor:
            kept += 1
            first_above = a[i + 1]
            first_under = under
    return few_negative[:kept], few_positive[:kept]


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
