// One request out of a stream of bytes, however they are cut. No sockets: the tests and the fuzzer feed it.
#pragma once

#include <memory>

#include "server/http/request_head.h"

namespace stet::http {

class RequestReader {
 public:
  enum class State : uint8_t {
    head,       // wants more of the head
    head_done,  // stands behind the head until read_body() is called
    body,       // wants more of the body
    done,
    refused,  // what it read is no request: refusal() says why, and nothing more is read
  };

  RequestReader(size_t max_header_bytes, uint64_t max_body_bytes);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // Takes bytes from the front, and returns how many. What it does not take has to be offered again, with more behind
  // it; it leaves fewer than max_header_bytes bytes when it wants more.
  size_t feed(std::string_view bytes);
  State state() const { return state_; }
  const Refusal& refusal() const { return refusal_; }
  // REQUIRES: the head is done.
  const RequestHead& head() const { return head_; }
  // From head_done to body, or to done where there is none.
  void read_body();
  // What has come of the body.
  uint64_t body_bytes() const;
  // REQUIRES: state done.
  std::string take_body();

 private:
  struct Parser;
  size_t feed_parser(std::string_view bytes);
  void finish_head();
  Refusal too_long_head() const;
  void refuse(Refusal why);

  size_t max_header_bytes_;
  uint64_t max_body_bytes_;
  size_t header_bytes_ = 0;
  std::unique_ptr<Parser> parser_;
  RequestHead head_;
  Refusal refusal_;
  State state_ = State::head;
};

}  // namespace stet::http
