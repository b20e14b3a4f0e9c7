#include "models/model_desc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/error.h"

namespace stet {

// src/models/<name>.cpp
#define MODEL(name) ModelDesc describe_##name(const TensorSource& source);
#include "models/models.def"
#undef MODEL

namespace {

std::string supported_architectures() {
  std::string out;
#define MODEL(name) out += out.empty() ? #name : ", " #name;
#include "models/models.def"
#undef MODEL
  return out;
}

std::string text_of(const TensorSource& source, std::string_view key) {
  const auto it = source.metadata().find(key);
  if (it == source.metadata().end()) return "";
  const auto* text = std::get_if<std::string>(&it->second.value);
  return text == nullptr ? "" : *text;
}

ModelDesc describe_architecture(const std::string& architecture, const TensorSource& source) {
#define MODEL(name) \
  if (architecture == #name) return describe_##name(source);
#include "models/models.def"
#undef MODEL
  if (architecture.empty())
    fail(Code::kInput, "the file names no architecture (general.architecture): it holds no model, or is incomplete");
  fail(Code::kUnsupported, "architecture '{}' is not supported; stet runs: {}", architecture,
       supported_architectures());
}

std::string shape_text(const std::vector<uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Every tensor of the table is there with its shape, and no other.
void check_tensors(const ModelDesc& desc, const TensorSource& source) {
  std::map<std::string_view, const TensorSpec*> wanted;
  for (const TensorSpec& spec : desc.tensors) wanted[spec.name] = &spec;
  for (const TensorInfo& t : source.tensors()) {
    const auto it = wanted.find(t.name);
    if (it == wanted.end())
      fail(Code::kUnsupported,
           "the model has a tensor {} that stet does not know for architecture {}: leaving it out would change the "
           "answer",
           t.name, desc.architecture);
    if (t.shape != it->second->shape)
      fail(Code::kInput, "tensor {} has shape {}; the configuration asks for {}", t.name, shape_text(t.shape),
           shape_text(it->second->shape));
    wanted.erase(it);
  }
  if (!wanted.empty())
    fail(Code::kInput, "the model lacks tensor {} ({} missing in all); the file is incomplete, get it again",
         wanted.begin()->first, wanted.size());
}

}  // namespace

const PackedMatrix& ModelWeights::matrix(const std::string& name) const {
  const PackedMatrix* m = pack.matrix(name);
  STET_CHECK(m != nullptr);
  return *m;
}

const float* ModelWeights::vector(const std::string& name) const {
  uint64_t length = 0;
  const float* v = pack.vector(name, &length);
  STET_CHECK(v != nullptr);
  return v;
}

const StateRows& ModelWeights::state(const std::string& name) const {
  const auto it = states.find(name);
  STET_CHECK(it != states.end());
  return it->second;
}

std::string_view activation_mode_name(ActivationMode mode) {
  switch (mode) {
    case ActivationMode::a8:
      return "a8";
    case ActivationMode::f32:
      return "f32";
    case ActivationMode::checkpoint:
      return "checkpoint";
  }
  return "";
}

PackOptions pack_options_for(const ModelDesc& desc, PackOptions options) {
  options.dequantize = desc.activations == ActivationMode::f32;
  options.fp_input = desc.activations == ActivationMode::checkpoint ? ActKind::e4m3 : ActKind::i8;
  return options;
}

void choose_activations(ModelDesc& desc, std::string_view asked) {
  ActivationMode mode = desc.declares_checkpoint_mode ? ActivationMode::checkpoint : ActivationMode::a8;
  bool known = asked == "auto";
  for (const auto m : {ActivationMode::a8, ActivationMode::f32, ActivationMode::checkpoint}) {
    if (asked != activation_mode_name(m)) continue;
    mode = m;
    known = true;
  }
  if (!known) fail(Code::kUsage, "there are no activations '{}'; choose one of: auto, a8, f32, checkpoint", asked);
  if (mode == ActivationMode::checkpoint && !desc.has_checkpoint_mode)
    fail(Code::kUsage,
         "activations 'checkpoint' were asked for, and checkpoints of the architecture {} declare none; choose a8 or "
         "f32",
         desc.architecture);
  desc.activations = mode;
  desc.rope.single = mode == ActivationMode::checkpoint;
  for (RopeSpec& rope : desc.further_ropes) rope.single = desc.rope.single;
}

ModelDesc describe_model(const TensorSource& source) {
  const std::string architecture = text_of(source, "general.architecture");
  ModelDesc desc = describe_architecture(architecture, source);
  desc.architecture = architecture;
  desc.name = text_of(source, "general.name");
  desc.synthetic = source.synthetic() || source.metadata().contains("stet.synthetic");
  check_tensors(desc, source);
  return desc;
}

}  // namespace stet
