#include "replay/qualify.h"

#include <cstring>

#include "base/error.h"
#include "base/fp.h"
#include "base/philox.h"
#include "device/cpu_model.h"
#include "replay/qualify_detail.h"

namespace stet {
namespace detail {

void fill_sample(std::span<float> x, uint32_t round, uint32_t salt) {
  for (size_t i = 0; i < x.size(); i += 4) {
    const Philox words = philox4x32({{static_cast<uint32_t>(i), salt, round, 0}}, 0x7175616cu, 0x69667931u);
    for (size_t j = i; j < std::min(i + 4, x.size()); ++j) {
      const uint32_t word = words.word[j - i];
      const float uniform = (static_cast<float>(word >> 9) - 4194303.5f) * 0x1p-22f;
      if (round == 1) {
        x[j] = (word & 1u) != 0 ? 1.0f : -1.0f;
      } else {
        x[j] = j % 61 == 60 ? 32.0f * uniform : uniform;
      }
    }
  }
}

size_t Qualifier::first_difference(const float* a, const float* b, size_t n) {
  if (std::memcmp(a, b, n * sizeof(float)) == 0) return n;
  for (size_t i = 0; i < n; ++i)
    if (bits_of_float(a[i]) != bits_of_float(b[i]) && !(a[i] != a[i] && b[i] != b[i])) return i;
  return n;
}

uint64_t Qualifier::bits(float x) { return bits_of_float(x); }

void Qualifier::diverged(std::string_view kernel, const std::string& where, uint64_t got, uint64_t want) const {
  fail(Code::kDiverged,
       "the {} kernel of {} does not compute what the scalar reference does on this machine ({}): {}: bits {:#x}, reference {:#x}. "
       "Nothing was run. Choose another instruction set (--isa), and report this line",
       kernel, isa_name(kernels.isa), cpu_model(), where, got, want);
}

}  // namespace detail

uint64_t qualify_kernels(const Kernels& kernels, const QualifyScope& scope) {
  detail::Qualifier qualifier{kernels, stet::kernels(Isa::scalar), scope};
  qualifier.matvecs();
  qualifier.row_ops();
  qualifier.attention();
  qualifier.sampling();
  return qualifier.rows;
}

namespace {

std::string describe_buffer(const Buffer* b) { return b == nullptr ? "-" : fmt::format("{}:{}", b->name, b->width); }

std::string describe_shape(const AttendShape* s) {
  if (s == nullptr) return "";
  const KvLayout& l = s->layout;
  return fmt::format(" kv {} {}x{} stride {} heads {} scale {:a} rope {}", static_cast<int>(l.format), l.heads, l.head_dim, l.chunk_stride,
                     s->heads, s->scale, s->rope_dim);
}

}  // namespace

std::string describe_list(const CommandList& list) {
  std::string text = fmt::format("list {} {}\n", list.width, static_cast<int>(list.rows));
  for (const Command& c : list.commands) {
    text += fmt::format("{} {} {} {} {} {}", static_cast<int>(c.op), c.name, describe_buffer(c.in), describe_buffer(c.in2),
                        describe_buffer(c.in3), describe_buffer(c.out));
    if (c.matrix.data != nullptr) text += " " + describe_matrix(c.matrix);
    text += fmt::format(" {} {:a} {}{}{}\n", c.accumulate, c.eps, c.from_head, c.rounded ? " rounded" : "",
                        describe_shape(c.shape) + describe_spec(c.spec));
  }
  return text;
}

}  // namespace stet
