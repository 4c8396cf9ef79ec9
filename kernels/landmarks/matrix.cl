// matrix.cl - the matrix that maps the pixels of a crop to positions in the image of the landmarks
//
// The crop is the box around some landmarks after a rotation that makes the line from landmark `left`
// to landmark `right` point in a given direction. With r the angle of that rotation, (w, h) the size of
// the box and (cx, cy) its centre, rotated back:
//   x' = cos(r) * sx * (x + hx) + sin(r) * sy * (y + hy) + tx
//   y' = -sin(r) * sx * (x + hx) + cos(r) * sy * (y + hy) + ty
//   RELATIVE 0  s = scale * (w, h), t = (cx, cy)
//   RELATIVE 1  s = scale * (w, h), t = unit * (cx, cy), and then each row times `stretch`: from
//               positions in the range of the landmarks to pixels of the image
//
// Shapes    src: [landmarks, 3]; chosen: [count], indices of landmarks; dst: [4, 4], the rows
//           (a, b, 0, t) of x' and of y', then (0, 0, 1, 0) and (0, 0, 0, 1)
// Launch    one work-group: global = local = (WG, 1, 1)
// Macros    WG        power of two, 1..256  work-items of the work-group
//           RELATIVE  0|1         as above; r = -atan(slope of the line) with 1, else direction - atan2
//           SRC_T     float|half  element type of src
//           DST_T     float|half  element type of dst
// Numerics  float
#include "common/local.cl"
#include "common/types.cl"

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void landmarks_matrix(
    __global const SRC_T *src, __global const int *chosen, __global DST_T *dst, int count, int left,
    int right, float direction, float scale_x, float scale_y, float half_x, float half_y,
    float unit, float stretch_x, float stretch_y) {
  LOCAL_ARRAY(float4, boxes, WG);  // the least x and y, the greatest x and y
  const int item = get_local_id(0);
  const float rise = LOAD(SRC_T, src, 3 * right + 1) - LOAD(SRC_T, src, 3 * left + 1);
  const float run = LOAD(SRC_T, src, 3 * right) - LOAD(SRC_T, src, 3 * left);
#if RELATIVE
  const float angle = -atan(rise / run);
#else
  const float angle = direction - atan2(rise, run);
#endif
  const float c = cos(angle), s = sin(angle);

  float4 box = (float4)(INFINITY, INFINITY, -INFINITY, -INFINITY);
  for (int i = item; i < count; i += WG) {
    const float x = LOAD(SRC_T, src, 3 * chosen[i]), y = LOAD(SRC_T, src, 3 * chosen[i] + 1);
    const float2 turned = (float2)(c * x - s * y, s * x + c * y);
    box = (float4)(fmin(box.lo, turned), fmax(box.hi, turned));
  }
  boxes[item] = box;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) {
      const float4 a = boxes[item], b = boxes[item + step];
      boxes[item] = (float4)(fmin(a.lo, b.lo), fmax(a.hi, b.hi));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item != 0) return;

  box = boxes[0];
  const float2 size = box.hi - box.lo, middle = (box.lo + box.hi) * 0.5f;
  const float2 center = (float2)(c * middle.x + s * middle.y, c * middle.y - s * middle.x);
  const float sx = scale_x * size.x, sy = scale_y * size.y;
  float4 first = (float4)(c * sx, s * sy, 0.0f, c * sx * half_x + s * sy * half_y);
  float4 second = (float4)(-s * sx, c * sy, 0.0f, c * sy * half_y - s * sx * half_x);
#if RELATIVE
  first = (first + (float4)(0.0f, 0.0f, 0.0f, center.x * unit)) * stretch_x;
  second = (second + (float4)(0.0f, 0.0f, 0.0f, center.y * unit)) * stretch_y;
#else
  first.w += center.x;
  second.w += center.y;
#endif
  STORE4(DST_T, dst, 0, first);
  STORE4(DST_T, dst, 4, second);
  STORE4(DST_T, dst, 8, ((float4)(0.0f, 0.0f, 1.0f, 0.0f)));
  STORE4(DST_T, dst, 12, ((float4)(0.0f, 0.0f, 0.0f, 1.0f)));
}
