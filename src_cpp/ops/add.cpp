// Room of ADD: apart from its siblings in binary.cpp because ops="core" claims ADD alone.
#include "ops/binary.hpp"
#include "ops/row_rules.hpp"

namespace clgpu::ops {

extern const Family kAddFamily;
const Family kAddFamily{{"add", /*has_epilogue=*/true, /*is_view=*/false, /*residual=*/-1,
                         /*writes_slices=*/true},
                        {{0, "ADD", 2}},
                        {},
                        /*core=*/true,
                        import_binary,
                        infer_binary,
                        binary_candidates,
                        /*fold=*/nullptr,
                        /*allows_quantized=*/true,
                        &kRowwise};

}  // namespace clgpu::ops
