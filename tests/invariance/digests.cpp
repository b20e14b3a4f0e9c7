#include "digests.h"

#include "base/hash.h"
#include "base/numerics_version.h"
#include "spec/step.h"
#include "state/test_model.h"

namespace stet::test {
namespace {

struct DigestCase {
  const char* model;
  KvFormat kv;
  const char* kv_name;
};

constexpr DigestCase kCases[] = {
    {"synth:tiny-gqa:q4_1", KvFormat::f16, "f16"},
    {"synth:tiny:q4_0", KvFormat::f32, "f32"},
    {"synth:tiny-wide:q8_0", KvFormat::q8, "q8"},
    {"synth:tiny-256:q6_k", KvFormat::f16, "f16"},
    {"synth:tiny-gqa:f16", KvFormat::f16, "f16"},
    {"synth:tiny:bf16", KvFormat::f32, "f32"},
    {"synth:tiny:f32", KvFormat::f16, "f16"},
    {"synth:tiny:mxfp4", KvFormat::f16, "f16"},
    {"synth:tiny-256:f8_e4m3", KvFormat::f32, "f32"},
    {"synth:tiny-gqa:mxfp4 by e4m3", KvFormat::f32, "f32"},
    {"synth:tiny-256:f8_e4m3 by e4m3", KvFormat::f16, "f16"},
};

std::string answer_digest(Decoder& decoder, const Kernels& kernels, std::span<const int32_t> prompt, const SamplingParams& sampling) {
  Session session(decoder);
  Sampler sampler(kernels, sampling, decoder.desc().vocab);
  session.begin(prompt, false);
  for (int i = 0; i < 12; ++i) step(session, sampler, {});
  return sha256_hex(session.output().data(), session.output().size_bytes());
}

Digest compute(const DigestCase& c, const Kernels& kernels) {
  const TestModel model(c.model);
  WorkerPool pool(pool_options(1));
  Decoder decoder(model.desc, *model.pack, kernels, pool, {.context = 512, .kv = c.kv}, unqualified());
  const auto tokens = test_tokens(model.desc, 140);  // into the second chunk of the KV cache
  const float* logits = decoder.forward(tokens, 0, kNarrowRows);
  Digest d;
  d.name = fmt::format("{} kv {}", c.model, c.kv_name);
  d.logits = sha256_hex(logits, size_t{kNarrowRows} * model.desc.vocab * sizeof(float));
  d.kv = fmt::format("{:016x}", decoder.kv_hash(140));
  d.greedy = answer_digest(decoder, kernels, std::span(tokens).first(10), {});
  d.sampled = answer_digest(decoder, kernels, std::span(tokens).first(10),
                            {.temperature = 0.8f, .top_k = 50, .top_p = 0.95f, .repetition_penalty = 1.1f, .seed = 42});
  d.rope = fmt::format("{:016x}", RopeTable(model.desc.rope, 4096).hash(4096));
  return d;
}

}  // namespace

std::vector<Digest> compute_digests(const Kernels& kernels, size_t models) {
  std::vector<Digest> out;
  for (const DigestCase& c : kCases)
    if (out.size() < models) out.push_back(compute(c, kernels));
  return out;
}

std::string digests_json(const std::vector<Digest>& digests) {
  std::string text = fmt::format("{{\n  \"numerics_version\": {},\n", kNumericsVersion);
  text += "  \"command\": \"stet_digests > tests/golden/digests.json\",\n  \"digests\": [\n";
  for (size_t i = 0; i < digests.size(); ++i) {
    const Digest& d = digests[i];
    text += fmt::format(
        "    {{\"name\": \"{}\",\n     \"logits\": \"{}\",\n     \"greedy\": \"{}\",\n     \"sampled\": \"{}\",\n"
        "     \"kv\": \"{}\", \"rope\": \"{}\"}}{}\n",
        d.name, d.logits, d.greedy, d.sampled, d.kv, d.rope, i + 1 < digests.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace stet::test
