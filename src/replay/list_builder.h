// Records command lists. Buffers are named; one name is one buffer at one address for all lists of a builder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/memory.h"
#include "replay/command.h"

namespace stet {

class BufferSet {
 public:
  // The buffer of that name, made at the first call. Throws Error(kInternal) when a name is asked for with two widths, or is new
  // after freeze().
  const Buffer* get(const std::string& name, uint32_t width, uint32_t rows);
  void freeze() { frozen_ = true; }
  uint64_t bytes() const;

 private:
  struct Entry {
    Buffer buffer;
    uint32_t rows;
    AlignedBuffer memory;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
  bool frozen_ = false;
};

// Appends commands to one list.
class ListBuilder {
 public:
  ListBuilder(BufferSet& buffers, uint32_t width, RowSet rows) : buffers_(buffers) {
    list_.width = width;
    list_.rows = rows;
  }

  // Buffers have room for the widest pass, so that lists of all widths share them.
  const Buffer* buffer(const std::string& name, uint32_t width);
  // A buffer of the pass, from a head list.
  const Buffer* pass_buffer(const std::string& name, uint32_t width) { return buffers_.get(name, width, kWideRows); }

  void embed(std::string name, const PackedMatrix& table, const Buffer* out);
  Command& rmsnorm(std::string name, const Buffer* in, const float* weight, float eps, const Buffer* out);
  Command& matvec(std::string name, const PackedMatrix& matrix, const Buffer* in, const Buffer* out, bool accumulate = false);
  void store(std::string name, const AttendShape* shape, const Buffer* q, const Buffer* k, const Buffer* v, const Buffer* out);
  void attend(std::string name, const AttendShape* shape, const Buffer* q, const Buffer* out);
  void swiglu(std::string name, const Buffer* gate, const Buffer* up, const Buffer* out);

  // A row op that has no function of its own here; its other fields are the caller's to set.
  Command& row(Op op, std::string name, const Buffer* in, const Buffer* out) { return add(op, std::move(name), in, out); }

  CommandList take() { return std::move(list_); }

 private:
  Command& add(Op op, std::string name, const Buffer* in, const Buffer* out);

  BufferSet& buffers_;
  CommandList list_;
};

}  // namespace stet
