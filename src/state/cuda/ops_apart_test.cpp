// Every command by itself, on the processor and on a GPU, from the same buffers and the same state: what differs is named, all of it in one
// run, because no difference reaches another command.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/fp.h"
#include "models/draft_desc.h"
#include "state/test_model.h"

namespace stet {
namespace {

constexpr uint32_t kContext = 1024, kPrompt = 300;
constexpr size_t kMostLines = 8;  // of one kind of command

struct Case {
  const char *model, *activations;
  KvFormat kv;
};

// A list, as the processor runs it command by command and as the GPU runs it: command by command, and fused.
struct ApartList {
  std::string name;
  CommandList list;
  LoweredList eager, fused;
  CudaInterpreter* cuda = nullptr;
};

// Stages that go together, and the commands that they stand for.
struct Unit {
  std::vector<Stage> stages;
  std::vector<const Command*> commands, results;
};

std::vector<Unit> units_of(const LoweredList& list) {
  std::vector<Unit> units;
  bool open = false;  // the next stage needs what the last one left on the device, and in no buffer
  for (const Stage& stage : list.stages) {
    if (!open) units.emplace_back();
    Unit& unit = units.back();
    unit.stages.push_back(stage);
    open = stage.kind == Stage::Kind::prepare || stage.kind == Stage::Kind::attend_runs;
    if (stage.norm != nullptr && stage.kind != Stage::Kind::prepare) unit.commands.push_back(stage.norm);
    if (stage.kind != Stage::Kind::prepare)
      unit.commands.insert(unit.commands.end(), stage.commands.begin(), stage.commands.end());
    unit.results.insert(unit.results.end(), stage.materialised.begin(), stage.materialised.end());
  }
  return units;
}

bool stores(const Command& c) {
  return c.op == Op::store || c.op == Op::cache_row || c.op == Op::pool_row || c.op == Op::pool_entry || c.op == Op::keep_row;
}

bool same(float a, float b) { return bits_of_float(a) == bits_of_float(b) || (a != a && b != b); }

class OpsApart {
 public:
  OpsApart(const Case& c, const CudaDeviceInfo& device)
      : model_(c.model, c.activations), desc_(with_draft_states(model_.desc)), plan_(plan_state(desc_, c.kv)),
        memory_(plan_.bytes(kContext)), pool_(test::pool_options(std::clamp(std::thread::hardware_concurrency(), 1u, 8u))) {
    memory_.commit(memory_.reserved_bytes());
    place();
    record();
    make_interpreters(device);
  }

  void run() {
    tokens_ = test::test_tokens(desc_, kContext);
    compare_pass(16, 16, 0);
    for (uint32_t done = 0; done < kPrompt; done += kWideRows) prompt(done, std::min(kWideRows, kPrompt - done));
    uint32_t position = kPrompt;
    for (const auto& [width, rows] : {std::pair{1u, 1u}, {3u, 3u}, {8u, 8u}, {16u, 16u}, {16u, 5u}, {128u, 128u}, {128u, 77u}}) {
      compare_pass(width, rows, position);
      position += rows;
    }
    if (desc_.draft != nullptr) desc_.draft->kind == "mtp" ? compare_mtp(position) : compare_dspark(position);
  }

  uint64_t compared() const { return compared_; }
  // What differs, by what commands do. Empty: nothing.
  std::string text() const {
    std::string all;
    for (const auto& [kind, found] : found_) {
      if (found.lines.empty()) continue;
      all += fmt::format("\n{}: {} of {} comparisons differ\n", kind, found.lines.size(), found.comparisons);
      for (size_t i = 0; i < std::min(kMostLines, found.lines.size()); ++i) all += "  " + found.lines[i] + "\n";
    }
    return all;
  }

 private:
  // The draft's own states lie among the target's.
  static ModelDesc with_draft_states(ModelDesc d) {
    if (d.draft != nullptr) d.states.insert(d.states.end(), d.draft->states.begin(), d.draft->states.end());
    return d;
  }
  uint8_t* memory() const { return reinterpret_cast<uint8_t*>(memory_.data()); }

  void place() {
    ropes_.push_back(std::make_unique<RopeTable>(desc_.rope, kContext));
    for (const RopeSpec& spec : desc_.further_ropes) ropes_.push_back(std::make_unique<RopeTable>(spec, kContext));
    for (const auto& table : ropes_) {
      table->ensure(kContext);
      rows_.push_back({table->data(), table->dim()});
    }
    for (uint32_t l = 0; l < desc_.layers; ++l)
      attend_.push_back({plan_.kv, memory() + plan_.fixed_bytes + l * plan_.kv.chunk_bytes(), desc_.heads, desc_.attention_scale,
                         desc_.rope_dim(), ropes_[0]->data()});
    states_ = place_states(desc_, plan_, memory());
  }

  void add(std::string name, BufferSet& buffers, uint32_t width, RowSet rows, const std::function<void(ListBuilder&)>& record,
           std::vector<std::unique_ptr<ApartList>>& to) {
    ListBuilder builder(buffers, width, rows);
    record(builder);
    ApartList& l = *to.emplace_back(std::make_unique<ApartList>());
    l.name = fmt::format("{} {}", name, width);
    l.list = builder.take();
    l.eager = lower(l.list, Fusion::none);
    l.fused = lower(l.list, width > kNarrowRows ? Fusion::wide : device_fusion(width));
  }
  void record() {
    const ModelWeights weights{*model_.pack, attend_, rows_, states_};
    for (const uint32_t width : {1u, 3u, 8u, 16u, 128u}) {
      add("body", buffers_, width, RowSet::pass, [&](ListBuilder& b) { desc_.record_body(desc_, weights, b); }, lists_);
      if (width <= kNarrowRows)
        add("head", buffers_, width, RowSet::head, [&](ListBuilder& b) { desc_.record_head(desc_, weights, b); }, lists_);
    }
    if (desc_.draft == nullptr) return;
    const auto draft = [&](const char* name, DraftPass pass, uint32_t width, RowSet rows) {
      add(name, draft_buffers_, width, rows, [&](ListBuilder& b) { desc_.draft->record(desc_, weights, pass, b); }, draft_lists_);
    };
    const bool mtp = desc_.draft->kind == "mtp";
    for (const uint32_t width : {1u, 3u, 8u, 16u}) {
      draft(mtp ? "rows" : "block", mtp ? DraftPass::rows : DraftPass::block, width, RowSet::pass);
      draft("draft head", DraftPass::head, width, RowSet::head);
    }
    if (mtp) {
      draft("rows", DraftPass::rows, kWideRows, RowSet::pass);
      draft("first", DraftPass::first, 1, RowSet::pass);
      draft("next", DraftPass::next, 1, RowSet::pass);
    } else {
      draft("choose", DraftPass::choose, 1, RowSet::head);
    }
  }

  void make_interpreters(const CudaDeviceInfo& device) {
    std::vector<const CommandList*> all;
    for (const auto* lists : {&lists_, &draft_lists_})
      for (const auto& l : *lists) all.push_back(&l->list);
    cpu_ = std::make_unique<CpuInterpreter>(kernels(available_isas().back()), pool_, all);
    CudaPlan plan;
    plan.device = device;
    plan.context = kContext;
    plan.cache = {memory(), plan_.bytes(kContext)};
    for (const auto& table : ropes_) plan.ropes.push_back({{table->data(), table->row_bytes() * kContext}, table->row_bytes()});
    cuda_ = make_interpreter(plan, lists_);
    cuda_->extend_rope(kContext);
    if (draft_lists_.empty()) return;
    CudaPlan own;
    own.device = device;
    own.context = kContext;
    own.shared = cuda_.get();
    draft_cuda_ = make_interpreter(own, draft_lists_);
  }
  static std::unique_ptr<CudaInterpreter> make_interpreter(CudaPlan& plan, std::vector<std::unique_ptr<ApartList>>& lists) {
    for (const auto& l : lists)
      for (const LoweredList* lowered : {&l->eager, &l->fused}) plan.lists.push_back(lowered);
    std::unique_ptr<CudaInterpreter> cuda = make_cuda_interpreter(plan);
    for (const auto& l : lists) l->cuda = cuda.get();
    return cuda;
  }

  ApartList& list(const std::string& name) {
    for (const auto* lists : {&lists_, &draft_lists_})
      for (const auto& l : *lists)
        if (l->name == name) return *l;
    fail(Code::kInternal, "no list {}", name);
  }

  StepParams step(uint32_t rows, uint32_t position) const {
    StepParams p;
    p.rows = rows;
    p.position = position;
    std::copy_n(tokens_.begin() + position, rows, p.tokens);
    p.head_rows = std::min(rows, kNarrowRows);
    p.head_first = rows - p.head_rows;
    return p;
  }

  // ---- what is compared

  void prompt(uint32_t position, uint32_t rows) {
    cpu_->run(list("body 128").eager, step(rows, position), ReplayMode::eager);
    cuda_->send_cache(plan_.bytes(kContext));
  }
  void compare_pass(uint32_t width, uint32_t rows, uint32_t position) {
    const StepParams p = step(rows, position);
    compare(list(fmt::format("body {}", width)), p);
    compare(list(fmt::format("head {}", std::min(width, kNarrowRows))), p);
  }
  // Rows behind which the target has one more.
  void compare_mtp(uint32_t end) {
    for (const uint32_t rows : {1u, 3u, 8u, 16u, 128u}) compare(list(fmt::format("rows {}", rows)), step(rows, end - rows));
    const StepParams one = step(1, end - 1);
    for (const char* pass : {"first 1", "next 1"}) {
      compare(list(pass), one);
      compare(list("draft head 1"), one);
    }
  }
  void compare_dspark(uint32_t end) {
    for (const uint32_t rows : {1u, 3u, 8u, 16u}) {
      const StepParams p = step(rows, end);
      compare(list(fmt::format("block {}", rows)), p);
      compare(list(fmt::format("draft head {}", rows)), p);
      StepParams choice = step(1, end);
      choice.head_first = rows - 1;
      compare(list("choose 1"), choice);
    }
  }
  void compare(const ApartList& list, const StepParams& p) {
    for (const Unit& unit : units_of(list.eager)) compare_unit(list, list.eager, unit, p, "eager");
    for (const Unit& unit : units_of(list.fused)) compare_unit(list, list.fused, unit, p, "fused");
  }

  struct Found {
    uint64_t comparisons = 0;
    std::vector<std::string> lines;
  };
  Found& found(const Command& c) {
    Found& f = found_[c.name.substr(c.name.rfind('.') + 1)];
    ++f.comparisons;
    return f;
  }

  static uint32_t rows_of(const ApartList& list, const Command& c, const Buffer* b, const StepParams& p) {
    if (list.list.rows == RowSet::pass) return p.rows;
    return c.from_head && b == c.in ? p.head_first + p.head_rows : p.head_rows;
  }

  void compare_unit(const ApartList& list, const LoweredList& lowered, const Unit& unit, const StepParams& p, const char* form) {
    send_inputs(list, unit, p);
    for (const Command* c : unit.commands) run_on_processor(list, *c, p);
    list.cuda->run({&list.list, lowered.fusion, unit.stages}, p, ReplayMode::recorded);
    const std::string where = fmt::format("{} at {}, {} rows, {}", list.name, p.position, p.rows, form);
    for (const Command* c : unit.results) compare_rows(list, *c, p, where);
    if (std::ranges::any_of(unit.commands, [](const Command* c) { return stores(*c); })) compare_state(unit, where);
  }

  // Outputs that no command reads begin as NaN: one that nobody wrote shows.
  void send_inputs(const ApartList& list, const Unit& unit, const StepParams& p) {
    std::map<const Buffer*, uint32_t> rows;
    std::set<const Buffer*> read;
    for (const Command* c : unit.commands) {
      for (const Buffer* b : {c->in, c->in2, c->in3, c->out})
        if (b != nullptr) rows[b] = std::max(rows[b], rows_of(list, *c, b, p));
      for (const Buffer* b : {c->in, c->in2, c->in3, c->accumulate ? c->out : nullptr}) read.insert(b);
    }
    for (const auto& [buffer, n] : rows) {
      if (!read.contains(buffer)) std::fill_n(buffer->data, size_t{n} * buffer->width, __builtin_nanf(""));
      list.cuda->send(*buffer, n);
    }
  }

  void run_on_processor(const ApartList& list, const Command& c, const StepParams& p) {
    LoweredList one{&list.list, Fusion::none, {}};
    for (const Stage& stage : list.eager.stages)
      if (stage.commands[0] == &c) one.stages.push_back(stage);
    cpu_->run(one, p, ReplayMode::eager);
  }

  void compare_rows(const ApartList& list, const Command& c, const StepParams& p, const std::string& where) {
    const Buffer& out = *c.out;
    const uint32_t rows = rows_of(list, c, c.out, p);
    const size_t n = size_t{rows} * out.width;
    const std::vector<float> want(out.data, out.data + n);
    list.cuda->fetch(out, rows);
    size_t first = n, wrong = 0;
    std::set<size_t> wrong_rows;
    for (size_t i = 0; i < n; ++i) {
      if (same(out.data[i], want[i])) continue;
      first = std::min(first, i);
      ++wrong;
      wrong_rows.insert(i / out.width);
    }
    Found& found = this->found(c);
    compared_ += n;
    if (wrong != 0)
      found.lines.push_back(fmt::format("{} ({}): {} of {} differ, in {} of {} rows; first row {} element {}: {:#010x} ({}) instead of {:#010x} ({})",
                                   c.name, where, wrong, n, wrong_rows.size(), rows, first / out.width, first % out.width,
                                   bits_of_float(out.data[first]), out.data[first], bits_of_float(want[first]), want[first]));
    std::copy(want.begin(), want.end(), out.data);
  }

  // The state of the processor stays, on both sides.
  void compare_state(const Unit& unit, const std::string& where) {
    const uint64_t bytes = plan_.bytes(kContext);
    const std::vector<uint8_t> want(memory(), memory() + bytes);
    cuda_->fetch_cache(bytes);
    Found& found = this->found(*unit.commands.back());
    compared_ += bytes / sizeof(float);
    const std::vector<uint8_t> got(memory(), memory() + bytes);
    std::copy(want.begin(), want.end(), memory());
    if (got == want) return;
    const auto at = static_cast<uint64_t>(std::ranges::mismatch(got, want).in1 - got.begin());
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < bytes; ++i) wrong += got[i] != want[i];
    found.lines.push_back(fmt::format("state behind {} ({}): {} bytes differ; first byte {}, of {}: {:#x} instead of {:#x}",
                                 unit.commands.back()->name, where, wrong, at, state_at(at), got[at], want[at]));
    cuda_->send_cache(bytes);
  }
  std::string state_at(uint64_t offset) const {
    for (const auto& [name, rows] : states_) {
      const auto begin = static_cast<uint64_t>(rows.first - memory());
      const uint64_t size = rows.row_bytes() * (rows.ring != 0 ? rows.ring : rows.rows_of_chunk());
      const uint64_t from = offset < begin ? size : rows.ring != 0 ? offset - begin : (offset - begin) % rows.chunk_stride;
      if (from < size) return fmt::format("{}, row {} of its {}", name, from / rows.row_bytes(), rows.ring != 0 ? "ring" : "chunk");
    }
    return "the KV cache";
  }

  const test::ModeModel model_;
  const ModelDesc desc_;
  const StatePlan plan_;
  Reservation memory_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<RopeTable>> ropes_;
  std::vector<RopeRows> rows_;
  std::vector<AttendShape> attend_;
  std::map<std::string, StateRows> states_;
  BufferSet buffers_, draft_buffers_;
  std::vector<std::unique_ptr<ApartList>> lists_, draft_lists_;
  std::unique_ptr<CpuInterpreter> cpu_;
  std::unique_ptr<CudaInterpreter> cuda_, draft_cuda_;
  std::vector<int32_t> tokens_;
  std::map<std::string, Found> found_;  // by the command's name without its layer
  uint64_t compared_ = 0;
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  constexpr const char* kKv[] = {"f32", "f16", "q8", "fp8"};
  std::string name = fmt::format("{}_{}_{}", info.param.model, info.param.activations, kKv[static_cast<size_t>(info.param.kv)]);
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class CudaOpsApart : public testing::TestWithParam<Case> {};

TEST_P(CudaOpsApart, HaveTheBitsOfTheProcessor) {
  const CudaDevices devices = cuda_devices();
  if (devices.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices.why_none << ")";
  OpsApart apart(GetParam(), devices.devices[0]);
  apart.run();
  EXPECT_GT(apart.compared(), 1000000u);
  if (const std::string text = apart.text(); !text.empty()) ADD_FAILURE() << text;
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaOpsApart,
    testing::Values(Case{"synth:tiny-gqa:q4_0", "a8", KvFormat::f16}, Case{"synth:tiny:f32", "f32", KvFormat::f32},
                    Case{"synth:deepseek-v4-mini-mtp", "f32", KvFormat::f32},
                    Case{"synth:deepseek-v4-mini-mtp", "a8", KvFormat::f16},
                    Case{"synth:deepseek-v4-mini-mtp", "checkpoint", KvFormat::fp8},
                    Case{"synth:deepseek-v4-mini-dspark", "f32", KvFormat::f16},
                    Case{"synth:deepseek-v4-mini-dspark", "a8", KvFormat::f32},
                    Case{"synth:deepseek-v4-mini-dspark", "checkpoint", KvFormat::f16},
                    Case{"synth:deepseek-v4-mini-dspark", "checkpoint", KvFormat::fp8}),
    case_name);

}  // namespace
}  // namespace stet
