/* What the loops that numba compiled need in order to be called from Python without numba: arguments are
   unpacked as its calling convention has them, results boxed, and memory counts its references.
   `library.py` appends a function for each loop. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_DIMENSIONS 8
#define MEMORY "gridsched.memory"
#define FOR_LOOPS __attribute__((visibility("hidden")))

/* ---- memory of arrays and lists; loops read `count` and `data` at these places themselves ---- */

typedef struct {
    size_t count;
    void (*destroy)(void *data, size_t size, void *of_items);
    void *of_items;
    void *data;
    size_t size;
    void *allocator;
} Memory;

FOR_LOOPS void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align)
{
    void *all;
    size_t least = align < 16 ? 16 : align, head = (sizeof(Memory) + least - 1) / least * least;
    if (posix_memalign(&all, least, head + size))
        return NULL;
    Memory *memory = all;
    *memory = (Memory){.count = 1, .data = (char *)all + head, .size = size};
    return memory;
}

FOR_LOOPS void *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }
FOR_LOOPS void *NRT_Allocate(size_t size) { return malloc(size ? size : 1); }
FOR_LOOPS void NRT_Free(void *data) { free(data); }

static void destroy_list(void *data, size_t size, void *of_items)
{
    if (of_items)
        ((void (*)(void *, size_t, void *))of_items)(data, size, NULL);
    free(data);
}

/* A list's data may grow, so it stands by itself. */
FOR_LOOPS void *NRT_MemInfo_new_varsize_dtor(size_t size, void *of_items)
{
    Memory *memory = malloc(sizeof(Memory));
    void *data = NRT_Allocate(size);
    if (!memory || !data) {
        free(memory);
        free(data);
        return NULL;
    }
    *memory = (Memory){.count = 1, .destroy = destroy_list, .of_items = of_items, .data = data, .size = size};
    return memory;
}

FOR_LOOPS void *NRT_MemInfo_varsize_realloc(Memory *memory, size_t size)
{
    void *data = realloc(memory->data, size);
    if (!data)
        return NULL;
    memory->data = data;
    memory->size = size;
    return data;
}

FOR_LOOPS void NRT_MemInfo_call_dtor(Memory *memory)
{
    if (memory->destroy)
        memory->destroy(memory->data, memory->size, memory->of_items);
    free(memory);
}

static void let_go(Memory *memory)
{
    if (memory && --memory->count == 0)
        NRT_MemInfo_call_dtor(memory);
}

/* ---- functions that numba has in C ---- */

FOR_LOOPS double numba_nextafter(double from, double to) { return nextafter(from, to); }

/* Only arrays without gaps are given other shapes in place. */
FOR_LOOPS int numba_attempt_nocopy_reshape(intptr_t n, const intptr_t *shape, const intptr_t *strides, intptr_t new_n,
                                           const intptr_t *new_shape, intptr_t *new_strides, intptr_t item, int fortran)
{
    intptr_t step = item;
    if (fortran)
        return 0;
    for (intptr_t i = n - 1; i >= 0; i--) {
        if (shape[i] != 1 && strides[i] != step)
            return 0;
        step *= shape[i];
    }
    step = item;
    for (intptr_t i = new_n - 1; i >= 0; i--) {
        new_strides[i] = step;
        step *= new_shape[i];
    }
    return 1;
}

/* ---- arguments: each of these refuses what the loop was not compiled for ---- */

static PyObject *no_fit(void) { return Py_NewRef(Py_NotImplemented); }

static inline PyArrayObject *array_of(PyObject *object, int type, int n, int is_written)
{
    const int need = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (is_written ? NPY_ARRAY_WRITEABLE : 0);
    if (!PyArray_Check(object))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) != type || PyArray_NDIM(array) != n || (PyArray_FLAGS(array) & need) != need
        || !PyArray_ISNOTSWAPPED(array))
        return NULL;
    return array;
}

static inline int is_tuple(PyObject *object, Py_ssize_t size)
{
    return PyTuple_Check(object) && PyTuple_Size(object) == size;
}

static inline int truth_of(PyObject *object, int8_t *value)
{
    if (!PyBool_Check(object) && !PyArray_IsScalar(object, Bool))
        return 0;
    *value = (int8_t)(PyObject_IsTrue(object) == 1);
    return 1;
}

static inline int integer_of(PyObject *object, int64_t *value)
{
    PyObject *whole;
    if (PyBool_Check(object) || !(PyLong_Check(object) || PyArray_IsScalar(object, Integer)))
        return 0;
    whole = PyNumber_Index(object);
    *value = whole ? PyLong_AsLongLong(whole) : -1;
    Py_XDECREF(whole);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static inline int float_of(PyObject *object, double *value)
{
    if (!PyFloat_Check(object))
        return 0;
    *value = PyFloat_AsDouble(object);
    return 1;
}

/* ---- results ---- */

static void release(PyObject *capsule) { let_go(PyCapsule_GetPointer(capsule, MEMORY)); }

/* Whether a result is all of an argument, as it is: of a part of one, too, numba names that as the argument. No part
   has all lengths and steps of the whole but begins elsewhere. */
static int is_all_of(PyObject *argument, int n, const int64_t *shape, const int64_t *strides, int type)
{
    PyArrayObject *array = (PyArrayObject *)argument;
    if (PyArray_NDIM(array) != n || PyArray_TYPE(array) != type)
        return 0;
    for (int i = 0; i < n; i++)
        if (PyArray_DIM(array, i) != shape[i] || PyArray_STRIDE(array, i) != strides[i])
            return 0;
    return 1;
}

/* An array in a loop's own memory; an argument that is returned; or a copy of a part of an argument. */
static PyObject *boxed(Memory *memory, PyObject *argument, void *data, int n, const int64_t *shape,
                       const int64_t *strides, int type)
{
    npy_intp dims[MOST_DIMENSIONS], steps[MOST_DIMENSIONS];
    PyObject *array, *other;
    if (!memory && argument && is_all_of(argument, n, shape, strides, type))
        return Py_NewRef(argument);
    for (int i = 0; i < n; i++) {
        dims[i] = shape[i];
        steps[i] = strides[i];
    }
    array = PyArray_New(&PyArray_Type, n, dims, type, steps, data, 0, NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, NULL);
    if (!array) {
        let_go(memory);
        return NULL;
    }
    if (!memory) {
        other = PyArray_NewCopy((PyArrayObject *)array, NPY_CORDER);
        Py_DECREF(array);
        return other;
    }
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    other = PyCapsule_New(memory, MEMORY, release);
    if (!other || PyArray_SetBaseObject((PyArrayObject *)array, other) < 0) {
        if (!other)
            let_go(memory);
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

/* A tuple of results, which it takes over. */
static PyObject *tuple_of(int n, ...)
{
    va_list each;
    PyObject *made = PyTuple_New(n);
    int is_whole = made != NULL;
    va_start(each, n);
    for (int i = 0; i < n; i++) {
        PyObject *item = va_arg(each, PyObject *);
        is_whole = is_whole && item;
        if (made && item)
            PyTuple_SetItem(made, i, item);
        else
            Py_XDECREF(item);
    }
    va_end(each);
    if (!is_whole)
        Py_CLEAR(made);
    return made;
}

/* Raise what a loop raised: it leaves a pickle of the class and the arguments, made when it was compiled. */
static PyObject *failed(const char *name, int32_t status, const void *fault)
{
    const struct {
        const char *data;
        int32_t size;
    } *pickled = fault;
    PyObject *pickle, *raised = NULL;
    if (status > 0 && pickled && (pickle = PyImport_ImportModule("pickle"))) {
        raised = PyObject_CallMethod(pickle, "loads", "y#", pickled->data, (Py_ssize_t)pickled->size);
        Py_DECREF(pickle);
        if (raised && PyTuple_Check(raised) && PyTuple_Size(raised) >= 2)
            PyErr_SetObject(PyTuple_GetItem(raised, 0), PyTuple_GetItem(raised, 1));
        Py_XDECREF(raised);
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "the compiled loop %s failed with status %d", name, (int)status);
    return NULL;
}
