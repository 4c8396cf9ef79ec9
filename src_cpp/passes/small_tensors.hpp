// For tests: a switch of the pass choose_storage.
#pragma once

namespace clgpu::passes {

/// Whether small tensors and constants, too, are stored as a precision says, in graphs that are
/// planned from now on.
void pretend_no_small_tensors(bool is_on);

}  // namespace clgpu::passes
