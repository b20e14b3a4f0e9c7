// What an engine is made of, in the order of its making. Tests, prove and profile reach in here; everybody else uses engine.h.
#pragma once

#include <memory>
#include <optional>

#include "engine/context_size.h"
#include "spec/draft.h"
#include "spec/device_cycles.h"
#include "stet/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace stet {

struct Engine::Parts {
  explicit Parts(const Options& options);

  Options options;
  EngineInfo info;
  std::unique_ptr<TensorSource> source;
  ModelDesc desc;
  std::unique_ptr<Tokenizer> tokenizer;    // null: the file has no vocabulary
  std::unique_ptr<ChatTemplate> chat;      // null: the file has no template
  std::unique_ptr<PackedModel> pack;
  const Kernels* kernels = nullptr;
  std::unique_ptr<WorkerPool> pool;
  std::optional<CudaDeviceInfo> cuda;      // the device that lists run on; none: the processor
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<Session> session;
  const DraftKind* draft_kind = nullptr;
  std::unique_ptr<Draft> draft;            // null: none
  std::unique_ptr<DeviceCycles> cycles;    // null: the host sits between two cycles

  PackOptions pack_options() const;
  // What drafts are made from; argument: what follows the colon of "model:FILE".
  DraftContext draft_context(std::string argument) const;
  ArmOptions arm_options() const;

 private:
  void open_model_file();
  void choose_machine();
  void choose_device();
  void load_weights();
  void make_decoder();
  void make_draft();
  void make_cycles();
};

// The names that options and JSON use.
KvFormat kv_format(const std::string& name);       // Throws Error(kUsage) listing them.
ReplayMode replay_mode(const std::string& name);   // Throws Error(kUsage) listing them.

}  // namespace stet
