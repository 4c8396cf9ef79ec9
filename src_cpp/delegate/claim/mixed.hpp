// The plan of precision="mixed" for a graph.
#pragma once

#include <optional>
#include <string>

#include "abi/tflite_abi.hpp"
#include "delegate/building/session.hpp"
#include "delegate/building/state.hpp"
#include "delegate/claim/model.hpp"

namespace clgpu::delegate {

/// With precision="mixed", sets the session's report on it: the plan of the options, or the one
/// that the cache has for this model on this device, or none. Throws OptionError if the options
/// have a plan of another model; other graphs than the main one then have none.
void find_mixed(const TfLiteContext& context, const State& state, const Model& model, bool is_main,
                Session& session);

/// Stores a plan in the cache, for this device and the model that the plan names; `label` is for
/// people. Throws OptionError if the text has another form. Returns whether there is a cache.
bool keep_mixed(const State& state, const std::string& plan, const std::string& label);

/// The text of the plan that the cache has for this device and the model of this digest, if it has
/// one.
std::optional<std::string> kept_mixed(const State& state, const std::string& model);

/// Puts it, with a note if there is no plan, into the model's report.
void tell_mixed(const State& state, const Session& session, Report& report);

}  // namespace clgpu::delegate
