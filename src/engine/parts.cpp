#include "engine/parts.h"

#include <algorithm>

#include "base/error.h"
#include "device/cache_dir.h"
#include "device/memory.h"
#include "device/topology.h"
#include "engine/model_names.h"
#include "models/draft_desc.h"

namespace stet {
namespace {

constexpr uint32_t kDefaultDepth = 4;


// "none" is what writers of models without text put there.
bool names_vocabulary(const TensorSource& source) {
  const auto it = source.metadata().find("tokenizer.ggml.model");
  if (it == source.metadata().end()) return false;
  const auto* name = std::get_if<std::string>(&it->second.value);
  return name == nullptr || *name != "none";
}

std::string_view how_name(Qualification::How how) {
  switch (how) {
    case Qualification::How::no: return "no";
    case Qualification::How::now: return "now";
    case Qualification::How::cached: return "cached";
  }
  return "";
}

std::string explain(const Qualification& q) {
  if (q.how == Qualification::How::no) return "skipped as asked";
  return fmt::format("{} rows equal the reference{}{}", q.compared_rows, q.not_kept.empty() ? "" : "; the verdict was not kept: ", q.not_kept);
}

}  // namespace

KvFormat kv_format(const std::string& name) {
  if (name == "f16") return KvFormat::f16;
  if (name == "f32") return KvFormat::f32;
  if (name == "q8") return KvFormat::q8;
  if (name == "fp8") return KvFormat::fp8;
  fail(Code::kUsage, "there is no KV format '{}'; choose one of: f16, f32, q8, fp8", name);
}

ReplayMode replay_mode(const std::string& name) {
  if (name == "eager") return ReplayMode::eager;
  if (name == "recorded") return ReplayMode::recorded;
  if (name == "replayed") return ReplayMode::replayed;
  fail(Code::kUsage, "there is no replay mode '{}'; choose one of: eager, recorded, replayed", name);
}

Engine::Parts::Parts(const Options& o) : options(o) {
  if (options.pack != "cache" && options.pack != "mapped" && options.pack != "none")
    fail(Code::kUsage, "--pack is '{}'; choose cache, mapped or none", options.pack);
  if (options.prompt_rows < 1 || options.prompt_rows > kWideRows)
    fail(Code::kUsage, "{} prompt rows asked for; 1 to {} are possible", options.prompt_rows, kWideRows);
  if (options.draft_depth > kMaxDepth) fail(Code::kUsage, "a draft depth of {} was asked for; 1 to {} are possible", options.draft_depth, kMaxDepth);
  draft_kind = &stet::draft_kind(options.draft);
  kv_format(options.kv);
  replay_mode(options.replay);
  choose_machine();
  choose_device();
  open_model_file();
  load_weights();
  make_decoder();
  make_draft();
  make_cycles();
}

void Engine::Parts::open_model_file() {
  source = open_model(options.model, options.cache_dir, draft_kind->own);
  desc = describe_model(*source);
  choose_activations(desc, options.activations);
  // Before the weights are read, which may take long.
  if (draft_kind->own) check_own_draft(draft_kind->name, desc);
  if (names_vocabulary(*source)) {
    tokenizer = std::make_unique<Tokenizer>(source->metadata());
    if (tokenizer->size() != desc.vocab)
      fail(Code::kInput, "the file has {} token texts and {} rows of embeddings", tokenizer->size(), desc.vocab);
    if (ChatTemplate::in(source->metadata())) {
      chat = std::make_unique<ChatTemplate>(ChatTemplate::from_metadata(source->metadata()));
      tokenizer->set_markers(chat->literals());
    }
  }
  info.model_name = desc.name.empty() ? options.model : desc.name;
  info.architecture = desc.architecture;
  info.synthetic = desc.synthetic;
}

void Engine::Parts::choose_machine() {
  const std::vector<Isa> isas = available_isas();
  Isa isa = isas.back();
  if (options.isa != "auto") {
    const std::optional<Isa> named = isa_from_name(options.isa);
    if (!named) fail(Code::kUsage, "there is no instruction set '{}'; choose one of: auto, scalar, avx2, avxvnni, avx512", options.isa);
    isa = *named;
  }
  kernels = &stet::kernels(isa);
  const ThreadBudget budget = thread_budget();
  WorkerPool::Options pool_options;
  pool_options.threads = options.threads == 0 ? budget.threads : options.threads;
  pool_options.pin = options.pin;
  pool = std::make_unique<WorkerPool>(pool_options);
  info.isa = isa_name(isa);
  info.threads = pool_options.threads;
  info.threads_why = options.threads == 0 ? budget.explain() : "as asked";
}

PackOptions Engine::Parts::pack_options() const {
  PackOptions p;
  if (options.pack != "none") p.cache_dir = options.cache_dir.empty() ? CacheDir::default_path() : options.cache_dir;
  p.mapped = options.pack == "mapped";
  p.threads = pool->threads();
  if (options.progress) p.progress = options.progress;
  return p;
}

ArmOptions Engine::Parts::arm_options() const {
  ArmOptions a;
  a.qualify = options.qualify ? Qualify::compare : Qualify::skip;
  // As with packs: a synthetic model leaves nothing behind.
  if (!desc.synthetic) a.cache_dir = pack_options().cache_dir;
  a.progress = options.progress;
  return a;
}

// "auto" is not silent about what it chose: EngineInfo says it.
void Engine::Parts::choose_device() {
  info.device = "cpu";
  if (options.device == "cpu") return;
  if (options.device != "cuda" && options.device != "auto")
    fail(Code::kUsage, "there is no device '{}'; choose one of: cpu, cuda, auto", options.device);
  const CudaDevices all = cuda_devices();
  if (all.devices.empty() && options.device == "auto") {
    info.device_why = fmt::format("chosen because {}", all.why_none);
    return;
  }
  cuda = cuda_device();
  info.device = "cuda";
  info.device_name = cuda->name;
  info.device_uuid = cuda->uuid;
  info.device_driver = cuda->driver;
  info.device_why = options.device == "auto" ? "chosen because it is there" : "as asked";
}

void Engine::Parts::load_weights() {
  pack = PackedModel::load(*source, pack_options_for(desc, pack_options()));
  info.pack_key = pack->key();
  info.weight_bytes = pack->bytes();
  info.weights_place = pack->place();
  info.profile = "portable";
  info.activations = activation_mode_name(desc.activations);
}

void Engine::Parts::make_decoder() {
  const KvFormat kv = kv_format(options.kv);
  const MemoryBudget budget = memory_budget();
  const ContextChoice choice = choose_context(desc, kv, options.context, budget);
  decoder = std::make_unique<Decoder>(desc, *pack, *kernels, *pool,
                                      DecoderOptions{choice.tokens, kv, replay_mode(options.replay), options.prompt_rows, cuda ? &*cuda : nullptr}, arm_options());
  info.device_bytes = decoder->device_bytes();
  info.qualified = how_name(decoder->qualification().how);
  info.qualified_why = explain(decoder->qualification());
  session = std::make_unique<Session>(*decoder);
  info.kv = options.kv;
  info.context = choice.tokens;
  info.trained_context = desc.context;
  info.kv_bytes = choice.kv_bytes;
  info.memory_why = choice.why;
}

DraftContext Engine::Parts::draft_context(std::string argument) const {
  return {.argument = std::move(argument),
                       .target = desc,
                       .open = [this](const std::string& name) { return open_model(name, options.cache_dir); },
                       .vocab_hash = [](const TensorSource& s) { return Tokenizer(s.metadata()).vocab_hash(); },
                       .target_vocab_hash = tokenizer ? tokenizer->vocab_hash() : "",
                       .kernels = *kernels,
                       .pool = *pool,
                       .context = info.context,
                       .kv = kv_format(options.kv),
                       .cuda = cuda ? &*cuda : nullptr,
                       .pack = pack_options(),
                       .arm = arm_options(),
                       .decoder = decoder.get()};
}

void Engine::Parts::make_draft() {
  info.draft = options.draft;
  info.history_accelerated = draft_kind->history_accelerated;
  if (draft_kind->make == nullptr) return;
  const uint32_t usual = draft_kind->own ? std::min(desc.draft->depth, kMaxDepth) : kDefaultDepth;
  info.draft_depth = options.draft_depth == 0 ? usual : options.draft_depth;
  draft = draft_kind->make(draft_context(draft_argument(options.draft)));
}

void Engine::Parts::make_cycles() {
  DeviceCycleOptions o;
  o.depth = info.draft_depth;
  if (tokenizer) o.stop_tokens = tokenizer->stop_tokens();
  cycles = make_device_cycles(*decoder, draft.get(), o);
  if (cycles) info.device_bytes += cycles->device_bytes();
}

}  // namespace stet
