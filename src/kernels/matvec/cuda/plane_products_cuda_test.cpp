// Products of F8_E4M3 and MXFP4 weights on the GPU, and the rows prepared for them, against the scalar reference.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "formats/e4m3/e4m3.h"
#include "kernels/cuda/activations.h"
#include "kernels/kernels_test_util.h"
#include "kernels/matvec/plane_products_cuda.h"
#include "kernels/quantize/quantize.h"

namespace stet {
namespace {

void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// Memory of the device.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(size_t n) : n_(n) {
    void* data = nullptr;
    check(cudaMalloc(&data, n * sizeof(T)));
    data_ = static_cast<T*>(data);
    check(cudaMemset(data_, 0xff, n * sizeof(T)));
  }
  explicit OnDevice(const std::vector<T>& x) : OnDevice(x.size()) { write(x); }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void write(const std::vector<T>& x) { check(cudaMemcpy(data_, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice)); }
  std::vector<T> read() const {
    std::vector<T> x(n_);
    check(cudaMemcpy(x.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return x;
  }
  T* data() const { return data_; }

 private:
  size_t n_;
  T* data_ = nullptr;
};

// What weights and activations are made of.
enum class Hard { normal, extreme, tiny, nonfinite, planes, scales };

test::Fill fill_of(Hard hard) {
  return hard == Hard::extreme ? test::Fill::extreme
         : hard == Hard::tiny  ? test::Fill::tiny
                               : hard == Hard::nonfinite ? test::Fill::nonfinite : test::Fill::normal;
}

// Encoded rows whose blocks of 32 are all of one extreme of the planes, or two, or random; with scales near 1, or from one end of their
// range to the other, NaN among them.
std::vector<uint8_t> hard_blocks(Format format, uint32_t rows, uint32_t cols, Hard hard, uint32_t seed) {
  if (hard != Hard::planes && hard != Hard::scales) return test::make_blocks(format, rows, cols, fill_of(hard), seed);
  const FormatTraits& t = traits(format);
  const bool e4m3 = format == Format::e4m3;
  std::mt19937 rng(seed);
  // 448, 416, 15/16, 7/8, 7.5, 15/8, 2^-9, zeros; nibbles 6, 4, 1/2
  const std::vector<int> codes = e4m3 ? std::vector<int>{0x7e, 0xfe, 0x7d, 0xfd, 0x37, 0xb7, 0x36, 0xb6,
                                                         0x4f, 0xcf, 0x3f, 0xbf, 0x01, 0x81, 0x00, 0x80}
                                      : std::vector<int>{0x77, 0xff, 0x7f, 0xf7, 0x66, 0xee, 0x11, 0x99, 0x08, 0x80};
  std::vector<int> scales = {126, 127, 128};
  if (hard == Hard::scales) scales = {0, 1, 2, 17, 18, 19, 20, 100, 127, 150, 200, 246, 247, 253, 254, 255};
  std::vector<uint8_t> blocks(size_t{rows} * cols / t.block_elements * t.block_bytes);
  for (size_t b = 0; b < blocks.size(); b += t.block_bytes) {
    blocks[b] = static_cast<uint8_t>(scales[rng() % scales.size()]);
    for (size_t i = 1; i < t.block_bytes; i += e4m3 ? 32 : 16) {
      const int a = codes[rng() % codes.size()], other = codes[rng() % codes.size()];
      const auto kind = rng() % 4;
      for (size_t j = i; j < i + (e4m3 ? 32 : 16); ++j) {
        int code = kind == 0   ? a
                   : kind == 1 ? (j % 2 == 0 ? a : a ^ (e4m3 ? 0x80 : 0x88))
                   : kind == 2 ? (j % 3 == 0 ? a : other)
                               : static_cast<int>(rng() % 256);
        if (e4m3 && (code & 0x7f) == 0x7f) code ^= 1;
        blocks[b + j] = static_cast<uint8_t>(code);
      }
    }
  }
  return blocks;
}

// Groups of 128 that keep their values, times a power of two, or stand between two values; blocks of extremes as above.
std::vector<float> hard_values(size_t n, Hard hard, uint32_t seed) {
  if (hard != Hard::planes && hard != Hard::scales) return test::make_values(n, fill_of(hard), seed);
  std::mt19937 rng(seed);
  const float extremes[] = {448.0f, 416.0f, 15.0f / 16, 7.0f / 8, 7.5f, 15.0f / 8, 0x1p-9f, 0.0f};
  std::vector<float> x(n);
  for (size_t group = 0; group < n; group += 128) {
    const int exponent = hard == Hard::planes ? 0 : static_cast<int>(rng() % 200) - 100;
    for (size_t block = group; block < std::min(n, group + 128); block += 32) {
      const float a = extremes[rng() % 8], other = extremes[rng() % 8];
      const auto kind = rng() % 5;
      for (size_t i = block; i < std::min(n, block + 32); ++i) {
        const auto code = static_cast<uint8_t>(rng() % 0x7e);
        const float low = e4m3_to_f32(code), high = e4m3_to_f32(static_cast<uint8_t>(code + 1));
        float v = kind == 0   ? a
                  : kind == 1 ? (i % 3 == 0 ? -a : a)
                  : kind == 2 ? (i % 2 == 0 ? a : -other)
                  : kind == 3 ? low
                              : (low + high) / 2;
        if (kind >= 3 && rng() % 2 == 0) v = -v;
        x[i] = v * power_of_two(exponent);
      }
    }
    if (rng() % 4 != 0) x[group + rng() % std::min<size_t>(128, n - group)] = 448.0f * power_of_two(exponent);
  }
  return x;
}

struct Inputs {
  std::vector<float> x;
  std::vector<uint8_t> storage;
  Activations act;
};
Inputs quantised(std::vector<float> x, ActKind kind, uint32_t rows, uint32_t k) {
  Inputs in;
  in.x = std::move(x);
  in.storage.resize(activation_bytes(kind, rows, k));
  in.act = {kind, rows, k, in.storage.data()};
  for (uint32_t m = 0; m < rows; ++m) kernels(Isa::scalar).quantize(in.x.data() + size_t{m} * k, m, in.act);
  return in;
}

// [row of x][row of w]
std::vector<float> reference(const PackedMatrix& w, const Activations& act) {
  std::vector<float> out(size_t{act.rows} * w.rows), tile(size_t{act.rows} * kTileRows);
  for (uint32_t t = 0; t < w.tiles(); ++t) {
    kernels(Isa::scalar).matvec(w, t, act, tile.data());
    for (uint32_t m = 0; m < act.rows; ++m)
      for (uint32_t r = 0; r < kTileRows && t * kTileRows + r < w.rows; ++r)
        out[size_t{m} * w.rows + t * kTileRows + r] = tile[m * kTileRows + r];
  }
  return out;
}

PackedMatrix matrix(Format format, uint32_t rows, uint32_t k, ActKind kind, const std::vector<uint8_t>& data) {
  PackedMatrix w{format, rows, k, data.data()};
  w.input = kind;
  return w;
}

class CudaPlanes : public testing::TestWithParam<std::tuple<Format, ActKind, Hard>> {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "skipped: no GPU";
    int processors = 0, major = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    check(cudaStreamCreate(&stream_));
    on_ = {stream_, major >= 9, static_cast<uint32_t>(processors)};
    step_.emplace(1);
  }
  void TearDown() override {
    step_.reset();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  void set_step(CudaStep step) { step_->write({step}); }
  void wait() { check(cudaStreamSynchronize(stream_)); }

  // A product of `rows` prepared rows, shaped for `shape` of them.
  std::vector<float> product(const PackedMatrix& w, const OnDevice<uint8_t>& data, const OnDevice<float>& x, uint32_t rows,
                             uint32_t shape) {
    set_step({rows, 0, 0, 0, {}});
    const OnDevice<uint8_t> planes(cuda_plane_bytes(shape, w.cols));
    const OnDevice<float> out(size_t{shape} * w.rows);
    CudaPrepare prepare;
    prepare.in = x.data(), prepare.width = w.cols, prepare.rows = shape;
    prepare.planes = planes.data(), prepare.planes_of = w.input;
    launch_prepare(on_, step_->data(), prepare);
    CudaProduct p = product_of(w, data, out);
    p.x = planes.data(), p.rows = shape;
    launch_product(on_, step_->data(), p);
    wait();
    return out.read();
  }
  static CudaProduct product_of(const PackedMatrix& w, const OnDevice<uint8_t>& data, const OnDevice<float>& out) {
    CudaProduct p;
    p.format = w.format, p.input = w.input, p.k = w.cols, p.tile_bytes = w.tile_bytes();
    p.matrices = 1;
    p.matrix[0] = {data.data(), w.rows, out.data(), w.rows};
    return p;
  }

  cudaStream_t stream_ = nullptr;
  CudaLaunch on_;
  std::optional<OnDevice<CudaStep>> step_;
};

void expect_rows(const std::vector<float>& got, const std::vector<float>& want, uint32_t rows, uint32_t width,
                 const std::string& what) {
  const size_t n = size_t{rows} * width, i = test::first_difference(got.data(), want.data(), n);
  ASSERT_EQ(i, n) << what << ": row " << i / width << " of x, row " << i % width << " of the weights: " << got[i]
                  << " instead of " << want[i];
}

TEST_P(CudaPlanes, ProductsEqualTheReference) {
  const auto [format, kind, hard] = GetParam();
  struct Shape {
    uint32_t n, k, rows;
  };
  for (const Shape s : {Shape{40, 32, 16}, {16, 96, 128}, {40, 128, 128}, {512, 1024, 9}, {40, 1024, 128}, {512, 4096, 4},
                        {16, 4096, 16}, {40, 8192 + 32, 16}, {40, 8192 + 128, 16}, {16, 2048 + 128, 128}}) {
    if (s.k % traits(format).block_elements != 0) continue;
    const uint32_t seed = s.n + s.k;
    const auto data = pack_matrix(format, hard_blocks(format, s.n, s.k, hard, seed).data(), s.n, s.k);
    const PackedMatrix w = matrix(format, s.n, s.k, kind, data);
    const Inputs in = quantised(hard_values(size_t{s.rows} * s.k, hard, seed + 1), kind, s.rows, s.k);
    const std::vector<float> want = reference(w, in.act);
    const OnDevice<uint8_t> on_device(data);
    const OnDevice<float> x(in.x);
    for (uint32_t rows = 1; rows <= s.rows; rows = rows == 16 && s.rows > 16 ? s.rows : rows + 1) {
      const auto what = std::to_string(s.n) + "x" + std::to_string(s.k) + " by " + std::to_string(rows);
      expect_rows(product(w, on_device, x, rows, rows), want, rows, s.n, what);
    }
    // Fewer rows than the launch is shaped for.
    for (const uint32_t rows : {1u, 3u, 5u})
      if (rows < s.rows) expect_rows(product(w, on_device, x, rows, s.rows), want, rows, s.n, "shaped for more");
  }
}

// The codes and scales themselves.
TEST_P(CudaPlanes, PreparedRowsEqualTheReference) {
  const auto [format, kind, hard] = GetParam();
  for (const uint32_t k : {32u, 96u, 128u, 1024u, 4096u + 32}) {
    constexpr uint32_t kRows = 9;
    const Inputs in = quantised(hard_values(size_t{kRows} * k, hard, k), kind, kRows, k);
    const OnDevice<float> x(in.x);
    const OnDevice<uint8_t> planes(cuda_plane_bytes(kRows, k));
    const OnDevice<float> out(in.x.size());
    for (const bool spread : {true, false}) {
      set_step({kRows, 0, 0, 0, {}});
      CudaPrepare prepare;
      prepare.in = x.data(), prepare.width = k, prepare.rows = kRows;
      prepare.planes = planes.data(), prepare.planes_of = kind;
      if (!spread) prepare.out = out.data();
      launch_prepare(on_, step_->data(), prepare);
      wait();
      const std::vector<uint8_t> got = planes.read();
      for (uint32_t m = 0; m < kRows; ++m)
        for (uint32_t i = 0; i < k; ++i) {
          const uint8_t* row = got.data() + m * cuda_plane_row(k);
          float dx;
          std::memcpy(&dx, row + k + i / 32 * 4, 4);
          const PlaneRecord planes_of = plane_record(in.act, m, i / 32);
          const ActRecord codes_of = act_record(in.act, m, i / 32);
          const uint32_t at = PlaneRecord::place(i % 32), c = m % kGroup;
          const int want = kind == ActKind::i8 ? codes_of.q(c)[i % 32] : 512 * planes_of.high(c)[at] + planes_of.low(c)[at];
          const int code = kind == ActKind::i8 ? static_cast<int8_t>(row[i]) : integer_e4m3(row[i]);
          const float want_dx = kind == ActKind::i8 ? codes_of.d()[c] : planes_of.d()[c];
          ASSERT_EQ(code, want) << "row " << m << " element " << i << " of " << k;
          ASSERT_EQ(test::first_difference(&dx, &want_dx, 1), 1u) << "row " << m << " element " << i << " of " << k;
        }
    }
  }
}

// One row that the product makes itself: as it is, or the norm of a row of the head; two matrices, added, rounded.
TEST_P(CudaPlanes, OneRowFromItsSource) {
  const auto [format, kind, hard] = GetParam();
  for (const uint32_t k : {128u, 1024u, 4096u, 8192u + 128}) {
    const uint32_t n[] = {512, 24};
    std::vector<float> x = hard_values(size_t{3} * k, hard, k + 7), weight = test::make_values(k, test::Fill::normal, k + 8);
    const OnDevice<float> source(x), weights(weight);
    std::vector<std::vector<uint8_t>> data;
    std::vector<std::unique_ptr<OnDevice<uint8_t>>> on_device;
    for (const uint32_t rows : n) {
      data.push_back(pack_matrix(format, hard_blocks(format, rows, k, hard, rows + k).data(), rows, k));
      on_device.push_back(std::make_unique<OnDevice<uint8_t>>(data.back()));
    }
    for (const bool normed : {false, true}) {
      const uint32_t row = normed ? 2 : 0;
      std::vector<float> one(x.begin() + size_t{row} * k, x.begin() + size_t{row + 1} * k);
      if (normed) kernels(Isa::scalar).rmsnorm(one.data(), weight.data(), 1e-6f, k, one.data());
      const Inputs in = quantised(one, kind, 1, k);
      set_step({3, 0, 2, 1, {}});
      std::vector<float> before[2], want[2];
      std::vector<std::unique_ptr<OnDevice<float>>> out;
      CudaProduct p;
      for (uint32_t i = 0; i < 2; ++i) {
        const PackedMatrix w = matrix(format, n[i], k, kind, data[i]);
        before[i] = test::make_values(n[i], test::Fill::normal, i), want[i] = reference(w, in.act);
        for (uint32_t r = 0; r < n[i]; ++r) want[i][r] = normed ? rounded_bf16(before[i][r] + rounded_bf16(want[i][r])) : want[i][r];
        out.push_back(std::make_unique<OnDevice<float>>(before[i]));
        if (i == 0) p = product_of(w, *on_device[i], *out[i]);
        p.matrix[i] = {on_device[i]->data(), n[i], out[i]->data(), n[i]};
      }
      p.matrices = 2, p.rows = 1, p.head = normed, p.accumulate = normed, p.rounded = normed;
      p.source.in = source.data();
      if (normed) p.source.weight = weights.data(), p.source.eps = 1e-6f, p.source.from_head = true;
      launch_product(on_, step_->data(), p);
      wait();
      for (uint32_t i = 0; i < 2; ++i) expect_rows(out[i]->read(), want[i], 1, n[i], std::to_string(k) + (normed ? " normed" : ""));
    }
  }
}

std::string plane_case_name(const testing::TestParamInfo<std::tuple<Format, ActKind, Hard>>& info) {
  static const char* const hards[] = {"normal", "extreme", "tiny", "nonfinite", "planes", "scales"};
  return std::string(traits(std::get<0>(info.param)).name) + "_" + std::string(act_name(std::get<1>(info.param))) + "_" +
         hards[static_cast<int>(std::get<2>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaPlanes,
                         testing::Combine(testing::Values(Format::e4m3, Format::mxfp4), testing::Values(ActKind::i8, ActKind::e4m3),
                                          testing::Values(Hard::normal, Hard::extreme, Hard::tiny, Hard::nonfinite, Hard::planes,
                                                          Hard::scales)),
                         plane_case_name);

}  // namespace
}  // namespace stet
