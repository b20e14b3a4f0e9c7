// A small benchmark, made up: what tests of packets start from.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "base/strict_json.h"

namespace stet {

// A folder that is gone with the test.
class PacketFolderTest : public testing::Test {
 protected:
  PacketFolderTest() {
    std::string form = testing::TempDir() + "stet_packet_XXXXXX";
    folder_ = ::mkdtemp(form.data());
  }
  ~PacketFolderTest() override {
    std::error_code error;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(folder_, error);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

struct FakeBench {
  std::vector<std::string> steps = {"letter", "review", "plan"};
  bool teacher = false, speculative = false, cold = true, repeats_allowed = false;
  uint32_t starts = 2;
  std::string teacher_manifest;

  Json plan_json() const {
    Json list = Json::array();
    for (const std::string& s : steps) list.push_back({{"id", s}, {"class", s == "review" ? "code" : "prose"}});
    const Json arm = {{"name", "A"},
                      {"role", teacher ? "teacher" : "candidate"},
                      {"starts", starts},
                      {"speculative", speculative},
                      {"fixed_length", false}};
    return {{"kind", "bench"},
            {"suite",
             {{"id", "fake-v1"},
              {"version", 1},
              {"sha256", std::string(64, 'a')},
              {"cold", cold},
              {"repeats_allowed", repeats_allowed},
              {"steps", list}}},
            {"arms", Json::array({arm})},
            {"teacher", teacher_manifest.empty() ? Json(nullptr) : Json({{"manifest_sha256", teacher_manifest}})}};
  }
  std::string plan() const { return plan_json().dump(1); }

  StartRecord start(uint32_t number) const {
    const Json identity = {{"build_id", "0123456789abcdef"}, {"draft", speculative ? "ngram" : "none"}, {"kv", "f16"}};
    return {"A", number, true, identity.dump(), 1000 + number};
  }

  // 120 tokens, one a frame, 10 ms apart, the first after 50 ms; ids are the same in every start.
  RequestRecord request(uint32_t number, uint32_t index) const {
    RequestRecord r;
    r.id = "A." + std::to_string(number) + "." + std::to_string(index);
    r.arm = "A";
    r.start = number;
    r.index = index;
    r.step_id = steps.at(index);
    r.step_class = r.step_id == "review" ? "code" : "prose";
    r.prompt = R"([{"role":"user","content":")" + r.step_id + R"("}])";
    r.prompt_token_ids = std::vector<int32_t>{5, 6, 7, static_cast<int32_t>(index)};
    r.sampling = R"({"temperature":0})";
    r.max_tokens = 120;
    r.sent_ns = 1'000'000'000LL * (1 + 3 * index);
    for (int32_t i = 0; i < 120; ++i) {
      ChunkEvent chunk;
      chunk.client_ns = r.sent_ns + 50'000'000 + 10'000'000LL * i;
      chunk.server_ns = chunk.client_ns - 100'000;
      chunk.text = "x";
      chunk.token_ids = std::vector<int32_t>{(i * i * 31 + i * 17 + static_cast<int32_t>(index) * 7) % 9973};
      if (speculative) {
        chunk.depth = 2;
        chunk.accepted = 0;
      }
      r.chunks.push_back(chunk);
    }
    r.end_ns = r.chunks.back().client_ns + 1'000'000;
    r.http_status = 200;
    r.finish_reason = "length";
    r.usage = {4, 120, 0};
    r.complete = true;
    r.before = sample(r.sent_ns, 1000);
    r.after = sample(r.end_ns, 1300);
    return r;
  }

  static SystemSample sample(int64_t ns, uint64_t ticks) {
    SystemSample s;
    s.client_ns = ns;
    s.suspended_ns = 0;
    s.cpu_ticks = ticks;
    s.steal_ticks = 0;
    s.swapped_pages = 0;
    s.throttle_events = 0;
    return s;
  }

  // As the writer would hand it to the judge, without a file.
  Packet packet() const {
    Packet p;
    p.plan_json = plan();
    p.plan_sha256 = std::string(64, 'b');
    p.identity_json = "{}";
    for (uint32_t s = 0; s < starts; ++s) {
      p.starts.push_back(start(s));
      for (uint32_t i = 0; i < steps.size(); ++i) p.requests.push_back(request(s, i));
    }
    return p;
  }

  // A finished packet on disk; returns results.json.
  std::string write(const std::string& path) const {
    PacketWriter writer(path, plan());
    const Packet p = packet();
    for (uint32_t s = 0; s < starts; ++s) {
      writer.add(start(s));
      for (uint32_t i = 0; i < steps.size(); ++i) writer.add(request(s, i));
    }
    return writer.finish();
  }
};

}  // namespace stet
