// One row op on the processor and on a GPU, on the same small inputs: what the tests of src/replay/cuda/ops share.
//
//   const Kernels& scalar = ...;
//   TestRows in("in", 96), out("out", 64);
//   Command c = ...;                                     // c.in = &in.buffer, ...
//   DeviceRowOp device(info);
//   const std::vector<float> got = device.run(launch_slice, c, params, {1}, [&](CudaRowOp& op) {
//     std::get<KeepSpec>(op.spec).rows.first = device.twin(state.data(), state.size());
//   });
//   run_on_processor(c, params, RowSet::pass);           // writes c.out, and the state
//   expect_same_rows(got, c);                            // device.bytes_of(state.data()): what the GPU made of it
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "device/cuda_device.h"
#include "kernels/kernels_test_util.h"
#include "replay/cuda/row_op_cuda.h"
#include "replay/row_ops.h"

namespace stet::test {

// A buffer of its own with the rows of a wide pass, NaN until it is filled.
struct TestRows {
  TestRows(const char* name, uint32_t width) : values(poisoned(size_t{width} * kWideRows)), buffer{name, width, values.data()} {}
  TestRows(const char* name, uint32_t width, Fill fill, uint32_t seed)
      : values(make_values(size_t{width} * kWideRows, fill, seed)), buffer{name, width, values.data()} {}
  TestRows(const TestRows&) = delete;
  TestRows& operator=(const TestRows&) = delete;

  std::vector<float> values;
  Buffer buffer;
};

using LaunchRowOp = void (*)(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op);

struct TestList {
  uint32_t width = 1;  // rows that the launch is shaped for
  RowSet rows = RowSet::pass;
  uint32_t context = 1024;  // positions
};

// Device memory and a stream for one run of one op.
class DeviceRowOp {
 public:
  explicit DeviceRowOp(const CudaDeviceInfo& info) : info_(info), stream_(info) {}

  // The twin of `bytes` at `host`, which begins as they are now; the same at every call.
  template <typename T>
  T* twin(const T* host, uint64_t bytes) {
    if (host == nullptr || bytes == 0) return nullptr;
    const auto [it, fresh] = twins_.try_emplace(host);
    if (fresh) {
      it->second = CudaMemory(bytes, "a test");
      stream_.to_device(it->second.data(), host, bytes);
      stream_.wait();
    }
    EXPECT_EQ(it->second.bytes(), bytes);
    return reinterpret_cast<T*>(it->second.data());
  }
  // What the twin of `host` holds now.
  std::vector<uint8_t> bytes_of(const void* host) {
    const CudaMemory& memory = twins_.at(host);
    std::vector<uint8_t> bytes(memory.bytes());
    stream_.to_host(bytes.data(), memory.data(), bytes.size());
    stream_.wait();
    return bytes;
  }

  // All kWideRows rows of the output. translate() puts the device's addresses in place of those in op.spec (by twin()), and the
  // experts' tables; the rest is done here.
  std::vector<float> run(LaunchRowOp launch, const Command& c, const StepParams& params, const TestList& list,
                         const std::function<void(CudaRowOp& op)>& translate = {}) {
    CudaRowOp op = op_of(c, list);
    if (translate) translate(op);
    const uint64_t scratch_bytes = cuda_op_scratch(c, list.width, list.context);
    const CudaMemory scratch(scratch_bytes + kGuard, "scratch of a test"), step(sizeof(CudaStep), "a step");
    std::vector<uint8_t> dirt(scratch_bytes + kGuard, 0xee), after(dirt.size());
    stream_.to_device(scratch.data(), dirt.data(), dirt.size());
    op.scratch = scratch.data();
    CudaStep s = {params.rows, params.position, params.head_first, params.head_rows, {}};
    std::copy(std::begin(params.tokens), std::end(params.tokens), s.tokens);
    stream_.to_device(step.data(), &s, sizeof s);
    stream_.wait();
    launch({stream_.get(), info_.dependent_launch(), info_.processors}, reinterpret_cast<const CudaStep*>(step.data()), op);
    std::vector<float> out(size_t{c.out->width} * kWideRows);
    stream_.to_host(out.data(), op.out, out.size() * sizeof(float));
    stream_.to_host(after.data(), scratch.data(), after.size());
    stream_.wait();
    EXPECT_TRUE(std::equal(dirt.end() - kGuard, dirt.end(), after.end() - kGuard)) << "written behind the scratch";
    return out;
  }

 private:
  static constexpr uint32_t kGuard = 256;

  float* rows_of(const Buffer* b, uint32_t* width) {
    if (b == nullptr) return nullptr;
    *width = b->width;
    return twin(b->data, uint64_t{b->width} * kWideRows * sizeof(float));
  }
  CudaRowOp op_of(const Command& c, const TestList& list) {
    CudaRowOp op;
    op.in = rows_of(c.in, &op.in_width);
    op.in2 = rows_of(c.in2, &op.in2_width);
    op.in3 = rows_of(c.in3, &op.in3_width);
    op.out = rows_of(c.out, &op.out_width);
    op.rows = list.width;
    op.head = list.rows == RowSet::head;
    op.from_head = c.from_head;
    op.rounded = c.rounded;
    op.parts = c.parts;
    op.context = list.context;
    if (c.weight != nullptr) op.weight = twin(c.weight, uint64_t{c.in->width} * sizeof(float));
    op.eps = c.eps;
    op.matrix = c.matrix;
    if (c.matrix.data != nullptr) op.matrix.data = twin(c.matrix.data, c.matrix.bytes());
    op.spec = c.spec;
    return op;
  }

  const CudaDeviceInfo info_;
  CudaStream stream_;
  std::map<const void*, CudaMemory> twins_;
};

// The reference: c.out, and whatever state the op stores.
inline void run_on_processor(const Command& c, const StepParams& params, RowSet rows) {
  const uint32_t n = rows == RowSet::head ? params.head_rows : params.rows;
  for (uint32_t row = 0; row < n; ++row)
    for (uint32_t part = 0; part < c.parts; ++part) row_op(c.op)(kernels(Isa::scalar), c, params, row, part);
}

// All rows of c.out, those behind the pass too: nothing may have touched them.
inline void expect_same_rows(const std::vector<float>& got, const Command& c) {
  const size_t n = size_t{c.out->width} * kWideRows, at = first_difference(got.data(), c.out->data, n);
  if (at == n) return;
  ADD_FAILURE() << c.name << ": row " << at / c.out->width << ", element " << at % c.out->width << ": " << got[at] << " ("
                << std::hex << bits_of_float(got[at]) << ") instead of " << c.out->data[at] << " ("
                << bits_of_float(c.out->data[at]) << ")";
}

inline StepParams test_step(uint32_t rows, uint32_t position = 0) {
  StepParams params;
  params.rows = rows;
  params.position = position;
  return params;
}

// Tests of row ops are skipped where there is no GPU.
class RowOpTest : public testing::Test {
 protected:
  void SetUp() override {
    const CudaDevices devices = cuda_devices();
    if (devices.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices.why_none << ")";
    info = devices.devices[0];
  }
  CudaDeviceInfo info;
};

}  // namespace stet::test
