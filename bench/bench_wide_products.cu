// Products of wide lists on a device, whose launches are shaped for 128 rows of x whatever a step has: the wide kernels
// against the narrow ones, bits first, then time. Ends with 1 where a bit differs. bench_wide_products [FORMAT]
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "base/cuda/device.cuh"
#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/quantize/prepare_cuda.h"

namespace stet {
namespace {

using cuda::CudaWeights;
using cuda::kFloatWeights;
using cuda::kIntegerWeights;

struct Shape {
  const char* name;
  uint32_t k;
  std::vector<uint32_t> n;  // rows of each matrix
  bool gated = false, accumulate = false;
};

// Layers of an 8B and of a 1B model.
const std::vector<Shape> kInteger = {{"8b qkv", 4096, {4096, 1024, 1024}},
                                     {"8b o", 4096, {4096}, false, true},
                                     {"8b gate/up", 4096, {14336, 14336}, true},
                                     {"8b down", 14336, {4096}, false, true}};
const std::vector<Shape> kFloat = {{"1b qkv", 2048, {2048, 512, 512}},
                                   {"1b o", 2048, {2048}, false, true},
                                   {"1b gate/up", 2048, {8192, 8192}, true},
                                   {"1b down", 8192, {2048}, false, true}};
// Where tiles, segments and chunks do not come out even.
const std::vector<Shape> kOdd = {
    {"odd", 1024, {77, 40}, false, true}, {"odd", 2304, {131}}, {"odd", 4608, {48, 48}, true},
    {"odd", 8448, {208}, false, true},    {"odd", 768, {31}},   {"odd", 14336, {320, 320}, true}};

__device__ uint32_t scatter(uint64_t i) {
  i = (i ^ i >> 31) * 0x7fb5d329728ea185ull;
  i = (i ^ i >> 27) * 0x81dadef4bc2dd44dull;
  return static_cast<uint32_t>(i ^ i >> 33);
}

__global__ void fill_words(uint32_t* out, size_t words) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < words; i += size_t{gridDim.x} * blockDim.x) {
    const uint32_t kind = scatter(i / 256) % 23;  // runs of the smallest and the largest codes
    out[i] = kind == 0 ? 0 : kind == 1 ? 0xffffffffu : scatter(i + 1000003);
  }
}

// Finite f16 scales over what fill_words left; some are subnormal. `at`: where they begin among the scales of a block.
__global__ void fill_scales(uint8_t* out, uint32_t tiles, uint64_t tile_bytes, uint32_t blocks, uint32_t codes,
                            uint32_t scales, uint32_t at) {
  const size_t count = size_t{tiles} * blocks;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const uint32_t b = static_cast<uint32_t>(i % blocks), chunk = b / kChunkBlocks,
                   of = min(kChunkBlocks, blocks - chunk * kChunkBlocks);
    uint8_t* to = out + i / blocks * tile_bytes + size_t{chunk} * kChunkBlocks * (codes + scales) + of * codes +
                  b % kChunkBlocks * scales;
    for (uint32_t j = at; j < scales; j += 2) {
      const uint32_t bits = scatter(i * 64 + j);
      *reinterpret_cast<uint16_t*>(to + j) =
          static_cast<uint16_t>((bits >> 31 << 15) | (bits % 61 == 0 ? 0 : 7 + (bits >> 8 & 3)) << 10 | (bits & 1023));
    }
  }
}

template <typename Element>
__global__ void fill_elements(Element* out, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    const float v = static_cast<float>(static_cast<int32_t>(scatter(i)) >> 8) * 1e-8f;
    if constexpr (sizeof(Element) == 4) {
      out[i] = v;
    } else {
      out[i] = static_cast<Element>(0x2c00u | (__float_as_uint(v) >> 16 & 0x83ffu));  // finite as f16 and as bf16
    }
  }
}

// Rows of x; every ninth has one size throughout, so that all its codes are 127.
__global__ void fill_rows(float* out, size_t n, uint32_t width) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    out[i] = i / width % 9 == 4 ? 1.7f : static_cast<float>(static_cast<int32_t>(scatter(i * 3)) >> 8) * 2e-7f;
}

template <typename T>
struct Memory {
  explicit Memory(size_t count) { cuda::check(cudaMalloc(&data, count * sizeof(T)), "memory of the device"); }
  ~Memory() { cudaFree(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  T* data = nullptr;
};

const char* name_of(Format format) { return traits(format).name.data(); }

uint64_t weight_bytes(const Shape& shape, Format format) {
  uint64_t tiles = 0;
  for (const uint32_t n : shape.n) tiles += (n + kTileRows - 1) / kTileRows;
  return tiles * pack_traits(format).tile_bytes(shape.k);
}

size_t out_floats(const Shape& shape) {
  size_t n = 0;
  for (const uint32_t width : shape.n) n += size_t{width} * kWideProductRows;
  return n;
}

template <Format kFormat>
void fill_weights(uint8_t* to, uint64_t bytes, uint64_t tile_bytes, uint32_t k) {
  using W = CudaWeights<kFormat>;
  if constexpr (kIntegerWeights<kFormat>) {
    fill_words<<<512, 256>>>(reinterpret_cast<uint32_t*>(to), bytes / 4);
    fill_scales<<<512, 256>>>(to, static_cast<uint32_t>(bytes / tile_bytes), tile_bytes, k / kBlock, W::kCodes,
                              W::kScales, W::kHalves ? 32 : 0);
  } else if constexpr (kFloatWeights<kFormat>) {
    fill_elements<<<512, 256>>>(reinterpret_cast<typename W::Element*>(to), bytes / sizeof(typename W::Element));
  }
}

void fill_weights_of(Format format, uint8_t* to, uint64_t bytes, uint64_t tile_bytes, uint32_t k) {
  switch (format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return fill_weights<Format::id>(to, bytes, tile_bytes, k);
#include "formats/formats.def"
#undef FORMAT
  }
}

// Operands of a step of `rows`. `copies` of the weights lie one after the other, so that repeated launches find none in
// the cache.
struct Operands {
  Operands(const Shape& of, Format of_format, uint32_t rows, uint32_t weight_copies, const CudaLaunch& on)
      : shape(of),
        format(of_format),
        copies(weight_copies),
        bytes(weight_bytes(of, of_format)),
        floats(out_floats(of)),
        weights(bytes * copies),
        values(size_t{kWideProductRows} * of.k),
        x(size_t{kWideProductRows / 8} * of.k * 32),
        out(floats),
        start(floats),
        step(1) {
    const uint64_t tile_bytes = pack_traits(format).tile_bytes(of.k);
    fill_weights_of(format, weights.data, bytes * copies, tile_bytes, of.k);
    fill_rows<<<512, 256>>>(values.data, size_t{kWideProductRows} * of.k, of.k);
    fill_rows<<<512, 256>>>(start.data, floats, 64);
    product = {.format = format,
               .k = of.k,
               .tile_bytes = tile_bytes,
               .matrices = static_cast<uint32_t>(of.n.size()),
               .accumulate = of.accumulate,
               .gated = of.gated,
               .x = x.data,
               .rows = kWideProductRows};
    uint64_t tile = 0;
    size_t at = 0;
    for (size_t i = 0; i < of.n.size(); ++i) {
      product.matrix[i] = {weights.data + tile * tile_bytes, of.n[i], out.data + at, of.n[i]};
      tile += (of.n[i] + kTileRows - 1) / kTileRows;
      at += size_t{of.n[i]} * kWideProductRows;
    }
    CudaStep host = {};
    host.rows = rows;
    cuda::check(cudaMemcpy(step.data, &host, sizeof(host), cudaMemcpyHostToDevice), "a step");
    CudaPrepare prepare = {.in = values.data, .width = of.k, .rows = kWideProductRows};
    (traits(format).integer_block ? prepare.i8 : prepare.f32) = x.data;
    cuda::check(cudaDeviceSynchronize(), "operands");
    launch_prepare(on, step.data, prepare);
    cuda::check(cudaDeviceSynchronize(), "activations");
  }
  const Shape& shape;
  Format format;
  uint32_t copies;
  uint64_t bytes;
  size_t floats;
  Memory<uint8_t> weights;
  Memory<float> values;
  Memory<uint8_t> x;
  Memory<float> out, start;
  Memory<CudaStep> step;
  CudaProduct product;
};

using Launch = void (*)(const CudaLaunch&, const CudaStep*, const CudaProduct&);
void launch_narrow(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  traits(p.format).integer_block ? launch_integer_product(on, step, p) : launch_float_product(on, step, p);
}

std::vector<float> result_of(const Operands& o, const CudaLaunch& on, Launch launch) {
  cuda::check(cudaMemcpy(o.out.data, o.start.data, o.floats * sizeof(float), cudaMemcpyDeviceToDevice), "outputs");
  cuda::check(cudaDeviceSynchronize(), "outputs");
  launch(on, o.step.data, o.product);
  cuda::check(cudaDeviceSynchronize(), "a product");
  std::vector<float> result(o.floats);
  cuda::check(cudaMemcpy(result.data(), o.out.data, o.floats * sizeof(float), cudaMemcpyDeviceToHost), "outputs");
  return result;
}

bool same_bits(const Shape& shape, Format format, uint32_t rows, const CudaLaunch& on) {
  const Operands o(shape, format, rows, 1, on);
  const std::vector<float> narrow = result_of(o, on, launch_narrow), wide = result_of(o, on, launch_product);
  size_t differ = 0;
  for (size_t i = 0; i < narrow.size(); ++i)
    differ += std::memcmp(&narrow[i], &wide[i], 4) != 0 && (narrow[i] == narrow[i] || wide[i] == wide[i]);
  if (differ != 0)
    std::printf("%s %s k %u rows %u: %zu of %zu outputs differ\n", name_of(format), shape.name, shape.k, rows, differ,
                narrow.size());
  return differ == 0;
}

// Microseconds of a launch among many of a graph, each with other weights.
double time_of(const Operands& o, const CudaLaunch& on, Launch launch) {
  constexpr uint32_t kLaunches = 20;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  cuda::check(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal), "a capture");
  for (uint32_t i = 0; i < kLaunches; ++i) {
    CudaProduct p = o.product;
    for (uint32_t m = 0; m < p.matrices; ++m) p.matrix[m].data += i % o.copies * o.bytes;
    launch(on, o.step.data, p);
  }
  cuda::check(cudaStreamEndCapture(on.stream, &graph), "a capture");
  cuda::check(cudaGraphInstantiate(&exec, graph, 0), "a graph");
  cuda::check(cudaEventCreate(&begin), "an event");
  cuda::check(cudaEventCreate(&end), "an event");
  float best = 1e30f;
  for (int i = 0; i < 5; ++i) {
    cudaEventRecord(begin, on.stream);
    cudaGraphLaunch(exec, on.stream);
    cudaEventRecord(end, on.stream);
    cuda::check(cudaEventSynchronize(end), "a graph");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, begin, end), "a time");
    best = std::min(best, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return best * 1000.0 / kLaunches;
}

void print_times(const Shape& shape, Format format, CudaLaunch on) {
  on.pdl = true;
  for (const uint32_t rows : {128u, 64u, 32u}) {
    constexpr uint64_t kCache = 200u << 20;
    const Operands o(shape, format, rows,
                     static_cast<uint32_t>(std::min<uint64_t>(4, kCache / weight_bytes(shape, format) + 1)), on);
    double operations = 2.0 * rows * shape.k;
    uint32_t n = 0;
    for (const uint32_t width : shape.n) n += width;
    operations *= n;
    const double narrow = time_of(o, on, launch_narrow), wide = time_of(o, on, launch_product);
    std::printf("%-5s %-10s rows %3u  narrow %7.1f us  launch_product %7.1f us  %6.1f TOPS\n", name_of(format),
                shape.name, rows, narrow, wide, operations / wide * 1e-6);
  }
}

bool bench(const char* only) {
  CudaLaunch on;
  int processors = 0;
  cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "processors");
  cuda::check(cudaStreamCreate(&on.stream), "a stream");
  on.processors = static_cast<uint32_t>(processors);
  bool same = true;
  for (const FormatTraits& t : all_formats()) {
    const Format format = t.format;
    if (!has_cuda_weights(format)) continue;
    if (only != nullptr && only != traits(format).name) continue;
    const std::vector<Shape>& shapes = traits(format).integer_block ? kInteger : kFloat;
    for (const uint32_t rows : {17u, 33u, 64u, 100u, 128u}) {
      for (const Shape& shape : kOdd) same &= same_bits(shape, format, rows, on);
      for (const Shape& shape : shapes) same &= same_bits(shape, format, rows, on);
    }
    std::printf("%s: %s\n", name_of(format), same ? "same bits" : "BITS DIFFER");
    for (const Shape& shape : shapes) print_times(shape, format, on);
  }
  return same;
}

}  // namespace
}  // namespace stet

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no GPU");
    return 0;
  }
  try {
    return stet::bench(argc > 1 ? argv[1] : nullptr) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
