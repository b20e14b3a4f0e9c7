// One generation on its way to a client: a job of the loop, whatever face the request came by.
#pragma once

#include <memory>

#include "server/api/api_error.h"
#include "server/api/face.h"
#include "server/api/shared_state.h"

namespace stet {

class Answer : public Job {
 public:
  // endpoint: as metrics call it. request.request has its prompt.
  Answer(std::shared_ptr<Exchange> exchange, std::string_view endpoint, ApiRequest request, std::unique_ptr<Face> face,
         std::shared_ptr<SharedState> shared);

  Request prepare(Engine& engine) override;
  std::optional<Clock::time_point> deadline() const override;
  bool wanted() const override { return !exchange_->gone(); }
  void progress(JobStage stage, uint32_t done, uint32_t total) override;
  void cycle(const CycleEvent& cycle) override;
  void done(const Generation& answer) override;
  void cancelled(std::string_view why, const Generation& so_far) override;
  void failed(const std::exception& error) override;

 private:
  void begin();  // the stream, unless it has begun
  void send(std::string_view data);
  void end_with(const ApiError& error);
  void account(const Generation& answer, int status);
  void measure(const CycleEvent& cycle, Clock::time_point now);
  double since_arrival(Clock::time_point now) const;

  const std::shared_ptr<Exchange> exchange_;
  const std::string endpoint_;
  ApiRequest request_;
  const std::optional<uint64_t> seed_;
  const std::unique_ptr<Face> face_;
  const std::shared_ptr<SharedState> shared_;
  const Face::Send send_;

  Clock::time_point last_sent_;  // or arrived
  Clock::time_point last_cycle_;
  double queue_seconds_ = 0, first_token_seconds_ = 0;
  uint64_t cycles_ = 0;
  uint32_t output_tokens_ = 0;
  bool begun_ = false;
};

}  // namespace stet
