// A cache directory of a test's own, and what the tests of packs on disk share.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "weights/fake_source_test.h"
#include "weights/pack_store.h"
#include "weights/packed_model.h"

namespace stet {

class PackOnDisk : public testing::Test {
 protected:
  PackOnDisk() {
    std::string path = std::filesystem::temp_directory_path() / "stet-pack-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = path;
    cache_ = path + "/cache";
    source_.add("a", Format::q4_1, {256, 40}).add("norm", Format::f16, {64}).add("b", Format::q8_0, {96, 17});
  }
  ~PackOnDisk() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  PackOptions options(unsigned threads = 1) {
    PackOptions o;
    o.cache_dir = cache_;
    o.threads = threads;
    o.progress = [this](std::string_view what, uint64_t, uint64_t) { messages_ += std::string(what) + "\n"; };
    return o;
  }
  std::unique_ptr<PackedModel> load() { return load(source_); }
  std::unique_ptr<PackedModel> load(const FakeSource& source) {
    messages_.clear();
    return PackedModel::load(source, options());
  }
  // What load() complains about; empty when it succeeds.
  std::string refusal(const FakeSource& source, Code code = Code::kResource) {
    try {
      load(source);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "";
  }

  static std::string matrix_bytes(const PackedModel& pack, const char* name) {
    const PackedMatrix* m = pack.matrix(name);
    return m == nullptr ? "" : std::string(reinterpret_cast<const char*>(m->data), m->bytes());
  }
  // All bytes that a kernel could read.
  static std::string content(const PackedModel& pack) {
    uint64_t length = 0;
    const float* norm = pack.vector("norm", &length);
    return matrix_bytes(pack, "a") + matrix_bytes(pack, "b") +
           std::string(reinterpret_cast<const char*>(norm), length * sizeof(float));
  }
  std::string content_in_memory(const FakeSource& source) {
    PackOptions o;
    return content(*PackedModel::load(source, o));
  }

  std::string pack_path(const std::string& key) const { return cache_ + "/packs/" + pack_name(key); }
  std::vector<std::string> files(const char* folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache_ + "/" + folder))
      names.push_back(entry.path().filename());
    return names;
  }
  static std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  // In place: the inode, and so what is mapped of it, stays. (Truncating first would make some file systems wait for
  // the disk on every close.)
  static void write_file(const std::string& path, const std::string& bytes) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const bool written = fd >= 0 && ::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
                         ::ftruncate(fd, static_cast<off_t>(bytes.size())) == 0;
    ::close(fd);
    if (!written) throw std::runtime_error("cannot write " + path);
  }

  // Runs f in another process and returns its text.
  static std::string in_child(const std::function<std::string()>& f) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      std::string text;
      try {
        text = f();
      } catch (const std::exception& e) {
        text = e.what();
      }
      (void)!::write(ends[1], text.data(), text.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return text;
  }

  std::string folder_;
  std::string cache_;
  FakeSource source_;
  std::string messages_;
};

}  // namespace stet
