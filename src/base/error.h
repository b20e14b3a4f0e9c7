// Errors a caller can act on. The library never prints, exits or falls back in silence: it throws Error, and the
// command line turns its code into an exit code (docs/cli.md).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace stet {

// What the error asks of the caller.
enum class Code {
  kUsage,        // fix the request or the flags
  kInput,        // the file is missing, damaged or not what it claims to be
  kUnsupported,  // the file is sound, but holds something that stet does not run
  kResource,     // not enough memory or disk, or no permission
  kDiverged,     // a promise of bit equality did not hold
  kCancelled,    // the user stopped it
  kInternal,     // a bug in stet
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// Throws Error with a formatted message. The message says what is wrong, with the numbers, and what to do.
template <typename... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// A condition that only a bug in stet can break. Always on.
#define STET_CHECK(condition)                                                                        \
  do {                                                                                               \
    if (!(condition)) ::stet::fail(::stet::Code::kInternal, "internal error: {} ({}:{})", #condition, \
                                   __FILE__, __LINE__);                                              \
  } while (false)

}  // namespace stet
