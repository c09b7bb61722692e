# Memory of objects that are gone, kept for the next ones of their class. @cython.freelist does this for classes without a base
# class only. A module that cimports this keeps the memory of one class of its own, of at most HG_RECYCLED objects.

cdef extern from *:
    """
    #include <string.h>

    #define HG_RECYCLED 64

    static PyTypeObject* hg_recycled_type = NULL;
    static PyObject* hg_recycled[HG_RECYCLED];
    static int hg_recycled_count = 0;

    static PyObject* hg_recycled_alloc(PyTypeObject* type, Py_ssize_t items) {
        PyObject* found;
        if (type != hg_recycled_type || hg_recycled_count == 0) return PyType_GenericAlloc(type, items);
        found = hg_recycled[--hg_recycled_count];
        memset(found, 0, (size_t)type->tp_basicsize);
        PyObject_Init(found, type);
        PyObject_GC_Track(found);
        return found;
    }

    /* The object is not tracked by the garbage collector any more. Subclasses inherit this function. */
    static void hg_recycled_free(void* gone) {
        if (Py_TYPE((PyObject*)gone) == hg_recycled_type && hg_recycled_count < HG_RECYCLED)
            hg_recycled[hg_recycled_count++] = (PyObject*)gone;
        else
            PyObject_GC_Del(gone);
    }

    static void hg_recycle(PyObject* type) {
        hg_recycled_type = (PyTypeObject*)type;
        hg_recycled_type->tp_alloc = hg_recycled_alloc;
        hg_recycled_type->tp_free = hg_recycled_free;
    }
    """
    # type: an extension class that the garbage collector knows, without subclasses in Python.
    void recycle "hg_recycle"(object type)
