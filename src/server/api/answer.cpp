#include "server/api/answer.h"

namespace stet {
namespace {

std::optional<uint64_t> seed_of(const ApiRequest& request) {
  return request.sampled() ? std::optional(request.request.sampling.seed) : std::nullopt;
}

int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

Answer::Answer(std::shared_ptr<Exchange> exchange, std::string_view endpoint, ApiRequest request,
               std::unique_ptr<Face> face, std::shared_ptr<SharedState> shared)
    : exchange_(std::move(exchange)),
      endpoint_(endpoint),
      request_(std::move(request)),
      seed_(seed_of(request_)),
      face_(std::move(face)),
      shared_(std::move(shared)),
      send_([this](std::string_view data) { send(data); }),
      last_sent_(exchange_->request().arrived) {}

Request Answer::prepare(Engine&) {
  queue_seconds_ = since_arrival(Clock::now());
  shared_->metrics.queued(queue_seconds_);
  return std::move(request_.request);
}

std::optional<Answer::Clock::time_point> Answer::deadline() const {
  const double seconds = shared_->options.request_deadline;
  if (seconds <= 0) return std::nullopt;
  return exchange_->request().arrived +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double Answer::since_arrival(Clock::time_point now) const {
  return std::chrono::duration<double>(now - exchange_->request().arrived).count();
}

void Answer::begin() {
  if (begun_) return;
  begun_ = true;
  exchange_->begin_events({{"cache-control", "no-store"}});
  face_->open(send_);
}

void Answer::send(std::string_view data) {
  exchange_->event(data);
  last_sent_ = Clock::now();
}

// A stream begins with its first token, so that an error before has an HTTP status of its own; unless that takes too
// long.
void Answer::progress(JobStage stage, uint32_t done, uint32_t total) {
  if (!request_.stream || Clock::now() - last_sent_ < shared_->options.keep_alive) return;
  begin();
  face_->keep_alive(stage, done, total, send_);
}

void Answer::cycle(const CycleEvent& cycle) {
  const Clock::time_point now = Clock::now();
  const Piece piece{cycle.text,           cycle.tokens,         cycle.logprobs,  cycles_,
                    cycle.cycle.proposed, cycle.cycle.accepted, nanoseconds(now)};
  output_tokens_ += cycle.cycle.emitted;
  if (request_.stream) {
    begin();
    const bool sent = face_->piece(piece, send_);
    if (!sent && now - last_sent_ >= shared_->options.keep_alive)
      face_->keep_alive(JobStage::decode, output_tokens_, 0, send_);
  } else {
    face_->keep(piece);
  }
  measure(cycle, now);
}

void Answer::measure(const CycleEvent& cycle, Clock::time_point now) {
  if (cycles_++ == 0) {
    first_token_seconds_ = since_arrival(now);
    shared_->metrics.first_token(first_token_seconds_);
  } else if (cycle.cycle.emitted > 0) {
    shared_->metrics.tokens(cycle.cycle.emitted, std::chrono::duration<double>(now - last_cycle_).count());
  }
  last_cycle_ = now;
}

void Answer::done(const Generation& answer) {
  const AnswerEnd end{.finish = answer.finish,
                      .prompt_tokens = answer.prompt_tokens,
                      .cached_tokens = answer.cached_tokens,
                      .output_tokens = static_cast<uint32_t>(answer.tokens.size()),
                      .seed = seed_,
                      .digest = answer.digest()};
  if (request_.stream) {
    begin();
    face_->close(end, send_);
    exchange_->end_events();
  } else {
    exchange_->reply({.body = face_->body(end), .headers = {{"cache-control", "no-store"}}});
  }
  account(answer, 200);
}

void Answer::cancelled(std::string_view why, const Generation& so_far) {
  if (why == "disconnected" || exchange_->gone()) return account(so_far, kClientLeft);
  const ApiError error = why == "deadline" ? error_deadline(shared_->options.request_deadline) : error_stopping();
  end_with(error);
  account(so_far, error.status);
}

void Answer::failed(const std::exception& error) {
  const ApiError known = to_api_error(error);
  end_with(known);
  shared_->metrics.failed();
  shared_->metrics.replied(endpoint_, known.status);
  shared_->log_request(exchange_->request(), known.status, fmt::format("failed: {}", known.what()));
}

void Answer::end_with(const ApiError& error) {
  if (!begun_) return exchange_->reply(error.reply());
  send(error.json());
  exchange_->cut_events();
}

void Answer::account(const Generation& answer, int status) {
  const double seconds = since_arrival(Clock::now());
  shared_->metrics.finished(answer, seconds);
  shared_->metrics.replied(endpoint_, status);
  std::string more = fmt::format("prompt {} ({} cached), answer {}, {}; queue {:.3f} s, first {:.3f} s",
                                 answer.prompt_tokens, answer.cached_tokens, output_tokens_, finish_name(answer.finish),
                                 queue_seconds_, first_token_seconds_);
  if (const double rate = answer.decode_tokens_per_second(); rate > 0) more += fmt::format(", {:.1f} tokens/s", rate);
  shared_->log_request(exchange_->request(), status, more);
  if (shared_->options.log_prompts)
    shared_->log(fmt::format("#{} is answered: {}", exchange_->request().id, answer.text));
}

}  // namespace stet
