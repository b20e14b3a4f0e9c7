#include "replay/lowered.h"

#include "base/error.h"
#include "replay/row_ops.h"

namespace stet {
namespace {

class Lowerer {
 public:
  Lowerer(const CommandList& list, Fusion fusion) : commands_(list.commands), fusion_(fusion) {}

  std::vector<Stage> run() {
    while (next_ < commands_.size()) lower_next();
    return std::move(stages_);
  }

 private:
  const Command* peek(size_t ahead = 0) const {
    return next_ + ahead < commands_.size() ? &commands_[next_ + ahead] : nullptr;
  }
  bool is(Op op, size_t ahead = 0) const { return peek(ahead) != nullptr && peek(ahead)->op == op; }
  const Command* take() { return &commands_[next_++]; }

  void lower_next() {
    if (fusion_ != Fusion::none && is(Op::rmsnorm) && is(Op::matvec, 1) && peek(1)->in == peek()->out && !read_later(peek()->out))
      return lower_projection(Stage::Source::norm);
    if ((fusion_ == Fusion::narrow || fusion_ == Fusion::device) && is(Op::store) && is(Op::attend, 1)) return lower_attend_runs();
    if (is(Op::matvec)) return lower_projection(Stage::Source::buffer);
    const Command* c = take();
    Stage stage = make_stage(simple_kind(c->op), {c});
    stages_.push_back(stage);
  }

  // Whether a norm's output is wanted behind the products that follow it: then it has to be materialised.
  bool read_later(const Buffer* out) const {
    size_t i = next_ + 1;
    while (i < commands_.size() && commands_[i].op == Op::matvec && commands_[i].in == out) ++i;
    for (; i < commands_.size(); ++i) {
      const Command& c = commands_[i];
      if (c.in == out || c.in2 == out || c.in3 == out) return true;
      if (c.out == out) return false;
    }
    return false;
  }

  static Stage::Kind simple_kind(Op op) {
    if (op == Op::store) return Stage::Kind::store;
    if (op == Op::attend) return Stage::Kind::attend_rows;
    STET_CHECK(row_op(op) != nullptr);
    return Stage::Kind::rows;
  }

  Stage make_stage(Stage::Kind kind, std::vector<const Command*> commands) {
    Stage stage;
    stage.kind = kind;
    stage.commands = commands;
    stage.materialised = std::move(commands);
    return stage;
  }

  // Store, attend and the projection behind it: the runs are attended in one stage and joined by whoever reads them.
  void lower_attend_runs() {
    const Command* store = take();
    const Command* attend = take();
    Stage stage = make_stage(Stage::Kind::attend_runs, {store, attend});
    stage.materialised.clear();
    stage.attend = attend;
    stages_.push_back(stage);
    STET_CHECK(is(Op::matvec) && peek()->in == attend->out);
    joined_ = attend;
    lower_projection(Stage::Source::join);
  }

  void lower_projection(Stage::Source source) {
    Stage stage = make_stage(Stage::Kind::project, {});
    stage.source = source;
    if (source == Stage::Source::norm) stage.norm = take();
    if (source == Stage::Source::join) stage.attend = joined_;
    stage.input = source == Stage::Source::norm ? stage.norm->in : peek()->in;
    const Buffer* in = peek()->in;
    const bool fuse = fusion_ != Fusion::none;
    while (is(Op::matvec) && peek()->in == in && (fuse || stage.commands.empty())) stage.commands.push_back(take());
    stage.materialised = stage.commands;
    if (fuse && is(Op::swiglu) && stage.commands.size() == 2 && !stage.commands[0]->rounded && !stage.commands[1]->rounded && peek()->in == stage.commands[0]->out &&
        peek()->in2 == stage.commands[1]->out) {
      stage.kind = Stage::Kind::gated;
      stage.commands.push_back(take());
      stage.materialised = {stage.commands.back()};
    }
    if (fusion_ != Fusion::narrow) {
      Stage prepare = stage;
      prepare.kind = Stage::Kind::prepare;
      prepare.materialised.clear();
      stages_.push_back(prepare);
      stage.prepared = true;
    }
    stages_.push_back(stage);
  }

  const std::vector<Command>& commands_;
  Fusion fusion_;
  size_t next_ = 0;
  const Command* joined_ = nullptr;
  std::vector<Stage> stages_;
};

}  // namespace

LoweredList lower(const CommandList& list, Fusion fusion) { return {&list, fusion, Lowerer(list, fusion).run()}; }

}  // namespace stet
