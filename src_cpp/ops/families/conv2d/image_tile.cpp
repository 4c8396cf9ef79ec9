// Engine `image_tile`: a piece of the image is read once, with its halo, and kept in local memory
// for all taps of the filter.
#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// Macros of kernels/conv2d/image_tile.cl.
struct Piece {
  const char* name;
  int tn, rn, px, xg, th, ck, unroll;

  int items() const { return tn / rn * xg * th; }
  std::size_t local_bytes(const Convolution& conv) const {
    const std::int64_t pitch = round_up(xg * px + conv.filter_w - 1, 4);
    const std::int64_t image = ck * (th + conv.filter_h - 1) * pitch;
    return uz(image + 2 * conv.filter_w * ck * tn) * sizeof(float);
  }
};

// Measured on an H200: the values of a work-item fit 128 registers, and few work-items read the
// same words. More channels at a time use more of each read of the image; large filters leave no
// registers for that.
constexpr Piece kPieces[] = {
    {"image_tile_64x8", 64, 8, 8, 2, 8, 8, 4},  {"image_tile_64x4", 64, 8, 8, 2, 8, 4, 2},
    {"image_tile_32x8", 32, 8, 8, 4, 8, 8, 2},  {"image_tile_32x4", 32, 8, 8, 4, 8, 4, 4},
    {"image_tile_16x4", 16, 8, 8, 4, 16, 4, 1}, {"image_tile_4x16", 4, 4, 4, 8, 8, 16, 1},
    {"image_tile_4x8", 4, 4, 4, 8, 16, 8, 1},   {"image_tile_4x4", 4, 4, 4, 8, 16, 4, 1}};

kernel::Candidate make(const Convolution& conv, const Piece& piece) {
  const auto packed =
      pack_weights(conv.node, kWeights, conv.groups, piece.tn, conv.image_storage());
  kernel::Launch launch("conv2d/image_tile.cl", "conv2d_image_tile");
  conv.set_types(launch);
  launch.type("PACKED_T", packed.storage).macro("TN", piece.tn).macro("RN", piece.rn);
  launch.macro("PX", piece.px).macro("XG", piece.xg).macro("TH", piece.th).macro("CK", piece.ck);
  launch.macro("UNROLL", piece.unroll).macro("VEC_N", conv.aligned_result() ? 1 : 0);
  launch.macro("FILTER_H", conv.filter_h).macro("FILTER_W", conv.filter_w);
  const std::int64_t tiles_x = ceil_div(conv.out_w, piece.xg * piece.px);
  conv.push_result(launch.src(kImage).scratch_in(0));
  launch.i32(packed.panels).i32(conv.groups).i32(tiles_x).i32(conv.group_in).i32(conv.group_out);
  launch.i32(conv.in_h).i32(conv.in_w).i32(conv.in_c);
  launch.i32(conv.out_h).i32(conv.out_w).i32(conv.out_c).i32(conv.at.h.before);
  launch.i32(conv.at.w.before);
  const std::size_t items = uz(piece.items());
  launch.range({uz(packed.panels) * items, uz(tiles_x * ceil_div(conv.out_h, piece.th)),
                uz(conv.batch) * uz(conv.groups)},
               {items});
  return {piece.name, {packed.launch, launch}, {packed.scratch}};
}

}  // namespace

std::vector<kernel::Candidate> image_tiles(const Convolution& conv) {
  const ConvGeometry& at = conv.geometry;
  const int taps = conv.filter_h * conv.filter_w;
  constexpr int kMostTaps = 121;  // the loop over columns is unrolled
  std::vector<kernel::Candidate> result;
  if (taps == 1 || taps > kMostTaps ||
      at.stride_h * at.stride_w * at.dilation_h * at.dilation_w > 1) {
    return result;
  }
  for (const Piece& piece : kPieces) {
    // The narrowest tiles that hold all channels, or the widest.
    const int width = conv.group_out > 32   ? 64
                      : conv.group_out > 16 ? 32
                      : conv.group_out > 4  ? 16
                                            : 4;
    if (piece.tn != width || conv.group_in % piece.ck != 0) continue;
    if (piece.local_bytes(conv) > conv.device.local_bytes) continue;
    if (uz(piece.items()) > conv.device.max_work_group_size) continue;
    if (uz(piece.items()) > conv.device.max_work_item_sizes[0]) continue;
    result.push_back(make(conv, piece));
  }
  return result;
}

}  // namespace clgpu::ops::conv2d
