// scatter.cl - dst[n, i] = the value of src whose index is i, else 0; of several the last one
//
// Shapes    src, indices: [batches, per_image]; dst, owners: [batches, image]: the position of the
//           value in src plus 1, or 0
// Launch    one work-item per element: max_unpool_clear of owners, then max_unpool_mark of indices, then
//           max_unpool_take of dst
// Macros    SRC_T  float|half  element type of src
//           DST_T  float|half  element type of dst
// Numerics  exact. Indices outside of an image are ignored
#include "common/types.cl"

__kernel void max_unpool_clear(__global int *owners, int places) {
  const int i = get_global_id(0);
  if (i < places) owners[i] = 0;
}

__kernel void max_unpool_mark(__global const int *indices, __global int *owners, int count,
                              int per_image, int image) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int place = indices[i];
  if (place >= 0 && place < image) atomic_max(owners + i / per_image * image + place, i + 1);
}

__kernel void max_unpool_take(__global const SRC_T *src, __global const int *owners,
                              __global DST_T *dst, int places) {
  const int i = get_global_id(0);
  if (i >= places) return;
  const int owner = owners[i];
  STORE(DST_T, dst, i, owner > 0 ? LOAD(SRC_T, src, owner - 1) : 0.0f);
}
