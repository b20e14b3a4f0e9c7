#include "spec/nonfinite.h"

#include "base/error.h"

namespace stet {
namespace {

bool finite(const float* x, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (x[i] - x[i] != 0.0f) return false;
  return true;
}

// Watches eager runs of a decoder. Whatever ends the watch, the decoder runs as before: it outlives what the observer refers to.
class Watch {
 public:
  Watch(Decoder& decoder, StageObserver observer) : decoder_(decoder), mode_(decoder.options().mode) {
    decoder_.set_mode(ReplayMode::eager);
    decoder_.set_observer(std::move(observer));
  }
  ~Watch() {
    decoder_.set_observer(nullptr);
    decoder_.set_mode(mode_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Decoder& decoder_;
  const ReplayMode mode_;
};

}  // namespace

void report_nonfinite(Decoder& decoder, std::span<const int32_t> timeline, uint32_t cached, uint32_t logit_rows,
                      uint32_t position) {
  std::string first = "the sampler";
  bool found = false;
  {
    const Watch watch(decoder, [&](const Stage& stage, const StepParams&, uint32_t rows) {
      for (const Command* c : stage.materialised) {
        if (found || finite(c->out->data, size_t{rows} * c->out->width)) continue;
        found = true;
        first = c->name;
      }
    });
    const uint32_t from = decoder.restorable(cached);  // the pass itself may have overwritten what it read
    decoder.forward(timeline.subspan(from), from, logit_rows);
  }
  fail(Code::kInput,
       "the model produced NaN or infinity at position {}, first in the output of {}; nothing of this step was kept: the weights "
       "are damaged or not meant for this activation mode (try --float with stet logits)",
       position, first);
}

}  // namespace stet
