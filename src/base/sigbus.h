// The process's SIGBUS handler. Only base/mapped_file.cpp uses it.
#pragma once

#include <cstddef>
#include <string>

namespace stet {

// Names a mapped range to the handler, which is installed on the first call. Returns the entry to hand to
// forget_mapping.
void* register_mapping(const void* data, size_t bytes, const std::string& name);
void forget_mapping(void* entry);

}  // namespace stet
