#include "replay/list_builder.h"

#include "base/error.h"

namespace stet {

const Buffer* BufferSet::get(const std::string& name, uint32_t width, uint32_t rows) {
  for (const auto& entry : entries_) {
    if (entry->buffer.name != name) continue;
    STET_CHECK(entry->buffer.width == width && entry->rows == rows);
    return &entry->buffer;
  }
  STET_CHECK(!frozen_);
  auto entry = std::make_unique<Entry>();
  entry->rows = rows;
  entry->memory = AlignedBuffer(size_t{width} * rows * sizeof(float));
  entry->buffer = {name, width, entry->memory.as<float>().data()};
  entries_.push_back(std::move(entry));
  return &entries_.back()->buffer;
}

uint64_t BufferSet::bytes() const {
  uint64_t total = 0;
  for (const auto& entry : entries_) total += entry->memory.bytes();
  return total;
}

const Buffer* ListBuilder::buffer(const std::string& name, uint32_t width) {
  return buffers_.get(name, width, list_.rows == RowSet::head ? kNarrowRows : kWideRows);
}

Command& ListBuilder::add(Op op, std::string name, const Buffer* in, const Buffer* out) {
  Command c;
  c.op = op;
  c.name = std::move(name);
  c.in = in;
  c.out = out;
  list_.commands.push_back(std::move(c));
  return list_.commands.back();
}

void ListBuilder::embed(std::string name, const PackedMatrix& table, const Buffer* out) {
  STET_CHECK(table.cols == out->width);
  add(Op::embed, std::move(name), nullptr, out).matrix = table;
}

Command& ListBuilder::rmsnorm(std::string name, const Buffer* in, const float* weight, float eps, const Buffer* out) {
  STET_CHECK(in->width == out->width);
  Command& c = add(Op::rmsnorm, std::move(name), in, out);
  c.weight = weight;
  c.eps = eps;
  // The first command of a head list reads the rows of the pass.
  c.from_head = list_.rows == RowSet::head && list_.commands.size() == 1;
  return c;
}

Command& ListBuilder::matvec(std::string name, const PackedMatrix& matrix, const Buffer* in, const Buffer* out, bool accumulate) {
  STET_CHECK(matrix.cols == in->width && matrix.rows == out->width);
  Command& c = add(Op::matvec, std::move(name), in, out);
  c.matrix = matrix;
  c.accumulate = accumulate;
  return c;
}

void ListBuilder::store(std::string name, const AttendShape* shape, const Buffer* q, const Buffer* k, const Buffer* v,
                        const Buffer* out) {
  Command& c = add(Op::store, std::move(name), q, out);
  c.in2 = k;
  c.in3 = v;
  c.shape = shape;
}

void ListBuilder::attend(std::string name, const AttendShape* shape, const Buffer* q, const Buffer* out) {
  add(Op::attend, std::move(name), q, out).shape = shape;
}

void ListBuilder::swiglu(std::string name, const Buffer* gate, const Buffer* up, const Buffer* out) {
  add(Op::swiglu, std::move(name), gate, out).in2 = up;
}

}  // namespace stet
