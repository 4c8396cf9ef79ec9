// heap.cl - a binary heap of ints in global memory, in the order that C++'s standard library makes
//
// Elements of equal rank leave a heap in an order that depends on how it was built. Reference
// kernels use std::partial_sort and std::priority_queue, so these functions compare and move in the
// order of libstdc++. The file that includes this one defines HEAP_CONTEXT, the type of what ranks
// are looked up in, and HEAP_BELOW(context, a, b): whether a ranks below b. The first element of a heap
// ranks below none.

static inline void heap_rise(HEAP_CONTEXT context, __global int *heap, int hole, int top,
                             int value) {
  int parent = (hole - 1) / 2;
  while (hole > top && HEAP_BELOW(context, heap[parent], value)) {
    heap[hole] = heap[parent];
    hole = parent;
    parent = (hole - 1) / 2;
  }
  heap[hole] = value;
}

// The hole goes down to a leaf, and the value up from there.
static inline void heap_sink(HEAP_CONTEXT context, __global int *heap, int hole, int count,
                             int value) {
  const int top = hole;
  int child = hole;
  while (child < (count - 1) / 2) {
    child = 2 * (child + 1);
    if (HEAP_BELOW(context, heap[child], heap[child - 1])) --child;
    heap[hole] = heap[child];
    hole = child;
  }
  if (count % 2 == 0 && child == (count - 2) / 2) {
    child = 2 * child + 1;
    heap[hole] = heap[child];
    hole = child;
  }
  heap_rise(context, heap, hole, top, value);
}

static inline void heap_make(HEAP_CONTEXT context, __global int *heap, int count) {
  for (int i = (count - 2) / 2; count >= 2 && i >= 0; --i)
    heap_sink(context, heap, i, count, heap[i]);
}

// The first element, which is put behind the others: the heap has one less.
static inline int heap_pop(HEAP_CONTEXT context, __global int *heap, int count) {
  const int first = heap[0], value = heap[count - 1];
  heap[count - 1] = first;
  if (count > 1) heap_sink(context, heap, 0, count - 1, value);
  return first;
}
