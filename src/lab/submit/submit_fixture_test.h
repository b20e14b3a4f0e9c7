// A made-up benchmark that proves everything a board wants; what tests of submissions take away from.
#pragma once

#include "lab/bench/suite.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/submit/submission.h"

namespace stet {

struct SubmittableBench {
  FakeBench bench;
  Json identity = {{"program", "stet"},
                   {"version", "0.1.0"},
                   {"build_id", "0123456789abcdef"},
                   {"commit", std::string(40, 'c')},
                   {"commit_state", "clean"},
                   {"compiler", "GNU 12.2.0"},
                   {"libraries", {{{"name", "stet"}, {"sha256", std::string(64, 'd')}}}},
                   {"cpu_model", "A processor"},
                   {"memory_bytes", uint64_t{16} << 30},
                   {"kernel_release", "6.1.0"},
                   {"model", "A model"},
                   {"synthetic", false},
                   {"weight_formats", {{{"format", "F32"}, {"bytes", 10}}, {{"format", "Q4_1"}, {"bytes", 90}}}},
                   {"model_sha256", std::string(64, 'e')},
                   {"tokenizer_sha256", std::string(64, 'f')},
                   {"draft", "none"},
                   {"draft_sha256", "unproven"},
                   {"history_accelerated", false},
                   {"activations", "a8"},
                   {"isa", "avx2"},
                   {"kv", "f16"},
                   {"context", 4096},
                   {"threads", 2},
                   {"device", "cpu"}};
  SubmitterWords words{"", "owner/model", std::string(40, '1'), ""};

  SubmittableBench() {
    bench.teacher = true;
    bench.steps.clear();
    for (const SuiteStep& step : load_suite("realistic-v1").steps) bench.steps.push_back(step.id);
  }

  Json plan() const {
    const Suite suite = load_suite("realistic-v1");
    Json plan = bench.plan_json();
    plan["label"] = "a label";
    plan["suite"]["id"] = suite.id;
    plan["suite"]["sha256"] = suite.sha256;
    for (size_t i = 0; i < suite.steps.size() && i < plan["suite"]["steps"].size(); ++i)
      plan["suite"]["steps"][i]["class"] = suite.steps[i].step_class;
    return plan;
  }

  // As it would be read from a folder; the results are still to be computed.
  Packet raw() const {
    Packet p = bench.packet();
    p.plan_json = plan().dump(1);
    for (StartRecord& s : p.starts) s.identity_json = identity.dump();
    // The second start is faster, so that the first is the row.
    for (RequestRecord& r : p.requests)
      if (r.start == 1)
        for (ChunkEvent& c : r.chunks) c.client_ns = r.sent_ns + (c.client_ns - r.sent_ns) / 2;
    return p;
  }

  static Packet judged(Packet p) {
    p.results_json = recompute_results(p);
    return p;
  }
  Packet packet() const { return judged(raw()); }
  Submission submission() const { return build_submission(packet(), std::string(64, 'a'), words); }
};

}  // namespace stet
