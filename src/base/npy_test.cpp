#include "base/npy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace stet {
namespace {

class Npy : public testing::Test {
 protected:
  Npy() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stet-npy-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Npy() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& bytes) const {
    std::ofstream(path("in.npy"), std::ios::binary) << bytes;
    return path("in.npy");
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
  static std::string file(const std::string& header, const std::string& data, char version = 1) {
    std::string out("\x93NUMPY", 6);
    out += version;
    out += '\0';
    out += static_cast<char>(header.size() & 0xff);
    out += static_cast<char>(header.size() >> 8);
    if (version > 1) out += std::string(2, '\0');
    return out + header + data;
  }
  Code code_of(const std::string& bytes) const {
    try {
      read_npy(put(bytes));
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "was read without an error";
    return Code::kInternal;
  }
  size_t files_in_folder() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }

  std::string folder_;
};

// Byte for byte what NumPy 1.x and 2.x write for np.save(f, np.array([[1, 2, 3], [4, 5, 6]], dtype='<i4')).
TEST_F(Npy, WritesWhatNumpyWrites) {
  NpyWriter writer(path("a.npy"), NpyType::kI32, {2, 3});
  writer.write(std::vector<int32_t>{1, 2});
  writer.write(std::vector<int32_t>{3, 4, 5, 6});
  writer.commit();
  std::string want =
      std::string("\x93NUMPY\x01\x00v\x00", 10) + "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  want += std::string(127 - want.size(), ' ') + "\n";
  for (char i = 1; i <= 6; ++i) want += std::string({i, 0, 0, 0});
  EXPECT_EQ(bytes_of(path("a.npy")), want);
}

TEST_F(Npy, RoundTrips) {
  const std::vector<std::vector<uint64_t>> shapes = {{}, {1}, {7}, {0}, {3, 0, 2}, {3, 5}, {2, 3, 4, 1}};
  for (const auto& shape : shapes) {
    uint64_t n = 1;
    for (uint64_t extent : shape) n *= extent;
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = 0.5f * static_cast<float>(i) - 1;
    NpyWriter writer(path("a.npy"), NpyType::kF32, shape);
    writer.write(values);
    writer.commit();
    const NpyArray array = read_npy(path("a.npy"));
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(array.f32, values);
    EXPECT_TRUE(array.i32.empty());
    EXPECT_EQ(bytes_of(path("a.npy")).size() % 64, n * 4 % 64);
  }
}

TEST_F(Npy, NothingAppearsBeforeCommit) {
  {
    NpyWriter writer(path("a.npy"), NpyType::kF32, {2});
    writer.write(std::vector<float>{1, 2});
    EXPECT_FALSE(std::filesystem::exists(path("a.npy")));
  }
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(Npy, WrongCountsAndTypesAreCaught) {
  NpyWriter writer(path("a.npy"), NpyType::kF32, {2});
  EXPECT_THROW(writer.write(std::vector<int32_t>{1}), Error);
  EXPECT_THROW(writer.write(std::vector<float>{1, 2, 3}), Error);
  writer.write(std::vector<float>{1});
  EXPECT_THROW(writer.commit(), Error);
  EXPECT_THROW(NpyWriter(path("b.npy"), NpyType::kF32, {UINT64_MAX, 2}), Error);
}

TEST_F(Npy, PlacesThatCannotBeWrittenAreErrors) {
  EXPECT_THROW(NpyWriter(path("no/such/folder.npy"), NpyType::kF32, {1}), Error);
  EXPECT_THROW(NpyWriter(folder_, NpyType::kF32, {1}), Error);
  EXPECT_THROW(NpyWriter(path("a.npy"), NpyType::kF32, {uint64_t{1} << 60}), Error) << "no disk holds that";
}

// A file size limit stands for a disk that fills up while the file is written.
TEST_F(Npy, FullDiskLeavesNothingBehind) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool refused = false;
    try {
      NpyWriter writer(path("a.npy"), NpyType::kF32, {1 << 20});
      const std::vector<float> row(1 << 16);
      for (int i = 0; i < 16; ++i) writer.write(row);
      writer.commit();
    } catch (const Error& error) {
      refused = error.code() == Code::kResource;
    }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(Npy, ReadsOtherSpellingsOfTheHeader) {
  const std::string two(8, '\0');
  EXPECT_EQ(read_npy(put(file("{\"shape\":(2,),'fortran_order':False,'descr':'<f4'}\n", two))).f32.size(), 2u);
  EXPECT_EQ(read_npy(put(file("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }\n", two, 2))).i32.size(),
            2u);
  EXPECT_EQ(read_npy(put(file("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", "abcd", 3))).i32.size(), 1u);
}

TEST_F(Npy, DamagedFilesAreRefused) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", data(8, '\0');
  for (const std::string& bytes :
       {std::string(), std::string("\x93NUMPY", 6), std::string(100, 'x'), file(good, data.substr(1)),
        file(good, data + "x"), file("", data), file("{}", data), file("{'descr': '<f4'}", data),
        file("{'descr': '<f4', 'shape': (2", data), file("{'descr': '<f4', 'shape': (-2,)}", data),
        file("{'descr': '<f4', 'shape': (2,)} x", data), file("{'descr': '<f4', 'shape': (2,), 'x': 'y'}", data),
        file("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", data), file("{'descr': '<f4", data),
        file("{'descr': '<f4', 'shape': (4611686018427387904, 4)}", data),
        file("{'descr': '<f4', 'shape': (99999999999999999999999,)}", data)})
    EXPECT_EQ(code_of(bytes), Code::kInput) << bytes;
  std::string long_header = file(good, data);
  long_header[8] = long_header[9] = '\xff';
  EXPECT_EQ(code_of(long_header), Code::kInput);
  EXPECT_THROW(read_npy(path("missing.npy")), Error);
  for (const std::string& bytes :
       {file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", data), file(good, data, 4),
        file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", data),
        file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", data)})
    EXPECT_EQ(code_of(bytes), Code::kUnsupported) << bytes;
}

// Every prefix of a sound file is an error, never a crash or an array.
TEST_F(Npy, TruncationIsAlwaysNoticed) {
  const std::string whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", std::string(8, 'x'));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_THROW(read_npy(put(whole.substr(0, bytes))), Error);
}

}  // namespace
}  // namespace stet
