#include "engine/context_size.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "state/decoder.h"
#include "weights/hf/checkpoint.h"

namespace stet {
namespace {

MemoryBudget usable(uint64_t bytes) {
  MemoryBudget budget;
  budget.available_bytes = budget.system_bytes = (bytes + 7) / 8 * 10;
  return budget;
}

// A model whose state grows with the context and has a part that does not.
TEST(ContextSize, CountsTheRingsOnce) {
  const auto source = HfCheckpoint::open("tests/golden/deepseek_v4/mixed");
  const ModelDesc desc = describe_model(*source);
  const uint64_t fixed = kv_bytes(desc, KvFormat::f32, 0), chunk = kv_bytes(desc, KvFormat::f32, kSlots) - fixed;
  ASSERT_GT(fixed, chunk);
  for (const uint32_t chunks : {1u, 2u, 77u}) {
    const ContextChoice choice = choose_context(desc, KvFormat::f32, 0, usable(fixed + chunks * chunk));
    EXPECT_EQ(choice.tokens, chunks * kSlots);
    EXPECT_EQ(choice.kv_bytes, fixed + chunks * chunk);
    EXPECT_EQ(choose_context(desc, KvFormat::f32, chunks * kSlots, usable(fixed + chunks * chunk)).tokens,
              chunks * kSlots);
    EXPECT_THROW(choose_context(desc, KvFormat::f32, chunks * kSlots + 1, usable(fixed + chunks * chunk)), Error);
  }
  for (const uint64_t too_little : {fixed + chunk - 100, fixed, fixed / 2, uint64_t{0}})
    EXPECT_THROW(choose_context(desc, KvFormat::f32, 0, usable(too_little)), Error) << too_little;
}

}  // namespace
}  // namespace stet
