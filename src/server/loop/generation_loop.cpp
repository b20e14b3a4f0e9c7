#include "server/loop/generation_loop.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "server/loop/ticket.h"

namespace stet {
namespace {

using Clock = Job::Clock;

// How often the queue is looked at for deadlines and clients that left, while there is a queue.
constexpr std::chrono::milliseconds kWatchInterval{50};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// What a job that never had its turn has to show.
Generation nothing_yet() {
  Generation g;
  g.finish = Finish::cancelled;
  return g;
}

struct UnknownError : std::exception {
  const char* what() const noexcept override { return "internal error: an exception that is no std::exception"; }
};

}  // namespace

struct GenerationLoop::Impl {
  explicit Impl(LoopOptions o) : options(std::move(o)), boundary(options.first_epoch) {
    status.queue_limit = options.queue_limit;
    status.load.phase = "starting";
  }

  void run();
  void load();
  std::shared_ptr<Ticket> next();
  void serve(Ticket& ticket);
  void generate(Ticket& ticket, uint64_t epoch);
  std::string_view reason_to_stop(const Ticket& ticket) const;
  void count_cycle(const CycleEvent& cycle);
  void close(Ticket& ticket, std::string_view why, Generation answer);
  void watch();
  bool anything_to_watch() const;
  void look_at_queue();
  std::vector<std::shared_ptr<Ticket>> take_queue();

  const LoopOptions options;
  Boundary boundary;               // of the thread that generates
  std::unique_ptr<Engine> engine;  // written once, before `loaded`
  std::atomic<const Engine*> loaded = nullptr;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable work, watched, ended;
  std::deque<std::shared_ptr<Ticket>> queue;
  std::shared_ptr<Ticket> active;
  Clock::time_point active_since;
  LoopStatus status;
  bool closed = false, cancel_all = false, has_ended = false;

  std::thread generator, watcher;
};

// ---- the thread that generates

void GenerationLoop::Impl::run() {
  load();
  while (const std::shared_ptr<Ticket> ticket = next()) serve(*ticket);
  for (const auto& ticket : take_queue()) ticket->cancelled("stopping", nothing_yet());
  const std::lock_guard lock(mutex);
  has_ended = true;
  ended.notify_all();
  watched.notify_all();
}

void GenerationLoop::Impl::load() {
  Options o = options.engine;
  o.progress = [this](std::string_view phase, uint64_t done, uint64_t total) {
    {
      const std::lock_guard lock(mutex);
      if (closed) fail(Code::kCancelled, "stopped while the model was loaded");
      status.load.phase = phase;
      status.load.done = done;
      status.load.total = total;
    }
    if (options.engine.progress) options.engine.progress(phase, done, total);
  };
  std::exception_ptr error;
  try {
    engine = std::make_unique<Engine>(o);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    status.load.ready = error == nullptr;
    status.load.failed = error != nullptr;
    status.load.phase = error ? "failed" : "ready";
    if (error) status.load.error = message_of(error);
    if (error) closed = true;
    if (!error) status.context = engine->info().context;
    loaded = engine.get();
  }
  if (options.on_loaded) options.on_loaded(error);
}

std::shared_ptr<Ticket> GenerationLoop::Impl::next() {
  std::unique_lock lock(mutex);
  work.wait(lock, [this] { return closed || !queue.empty(); });
  if (cancel_all || queue.empty()) return nullptr;
  active = queue.front();
  queue.pop_front();
  active_since = Clock::now();
  status.active_prompt_tokens = status.active_output_tokens = 0;
  watched.notify_all();
  return active;
}

std::string_view GenerationLoop::Impl::reason_to_stop(const Ticket& ticket) const {
  {
    const std::lock_guard lock(mutex);
    if (cancel_all) return "stopping";
  }
  return ticket.unwanted(Clock::now());
}

void GenerationLoop::Impl::serve(Ticket& ticket) {
  const uint64_t epoch = boundary.open();
  {
    const std::lock_guard lock(mutex);
    status.epoch = epoch;
  }
  const auto failed = [&](const std::exception& error) {
    {
      const std::lock_guard lock(mutex);
      ++status.failed;
      active = nullptr;
      if (engine) status.cached_tokens = engine->cached_tokens();
    }
    ticket.failed(error);
  };
  try {
    generate(ticket, epoch);
  } catch (const std::exception& e) {
    failed(e);
  } catch (...) {
    failed(UnknownError());
  }
  boundary.close(epoch);
}

void GenerationLoop::Impl::generate(Ticket& ticket, uint64_t epoch) {
  std::string_view why = reason_to_stop(ticket);
  if (!why.empty()) return close(ticket, why, nothing_yet());
  const Request request = ticket.prepare(*engine);
  const auto prompt = static_cast<uint32_t>(request.prompt.size());
  {
    const std::lock_guard lock(mutex);
    status.active_prompt_tokens = prompt;
  }
  const auto wanted = [&] {
    boundary.require(epoch);
    why = reason_to_stop(ticket);
    return why.empty();
  };
  // The engine counts the tokens that it runs; those before them were in the cache.
  const auto on_prefill = [&](uint32_t done, uint32_t total) {
    if (!wanted()) return false;
    if (total <= prompt) ticket.prefill(prompt - total + std::min(done, total), prompt);
    return true;
  };
  const auto on_cycle = [&](const CycleEvent& cycle) {
    boundary.require(epoch);
    ticket.cycle(cycle);
    count_cycle(cycle);
    return wanted();
  };
  Generation answer = engine->generate(request, on_cycle, on_prefill);
  // A deadline that passes with the last token cancels nothing.
  close(ticket, answer.finish == Finish::cancelled ? why : "", std::move(answer));
}

void GenerationLoop::Impl::count_cycle(const CycleEvent& cycle) {
  const std::lock_guard lock(mutex);
  ++status.cycles;
  status.proposed += cycle.cycle.proposed;
  status.accepted += cycle.cycle.accepted;
  status.output_tokens += cycle.cycle.emitted;
  status.active_output_tokens += cycle.cycle.emitted;
  status.cached_tokens = engine->cached_tokens();
}

// The figures are right before the client can ask for them.
void GenerationLoop::Impl::close(Ticket& ticket, std::string_view why, Generation answer) {
  Generation record;
  record.finish = answer.finish;
  record.prompt_tokens = answer.prompt_tokens;
  record.cached_tokens = answer.cached_tokens;
  record.first_token_seconds = answer.first_token_seconds;
  record.total_seconds = answer.total_seconds;
  record.cycles = answer.cycles;
  {
    const std::lock_guard lock(mutex);
    ++(why.empty() ? status.finished : status.cancelled);
    status.prompt_tokens += answer.prompt_tokens;
    status.cached_prompt_tokens += answer.cached_tokens;
    status.cached_tokens = engine->cached_tokens();
    if (answer.prompt_tokens != 0) status.last = std::move(record);
    active = nullptr;
  }
  if (why.empty()) {
    ticket.done(answer);
  } else {
    ticket.cancelled(why, answer);
  }
}

// ---- the thread that watches the queue while the other one is busy

bool GenerationLoop::Impl::anything_to_watch() const {
  return !queue.empty() || (active && active->stage() <= JobStage::prefill);
}

void GenerationLoop::Impl::watch() {
  const auto interval = std::min<Clock::duration>(kWatchInterval, options.keep_alive / 2);
  std::unique_lock lock(mutex);
  while (!has_ended) {
    if (!anything_to_watch()) {
      watched.wait(lock, [this] { return has_ended || anything_to_watch(); });
      continue;
    }
    lock.unlock();
    look_at_queue();
    lock.lock();
    watched.wait_for(lock, interval, [this] { return has_ended; });
  }
}

void GenerationLoop::Impl::look_at_queue() {
  std::vector<std::shared_ptr<Ticket>> waiting;
  std::shared_ptr<Ticket> running;
  {
    const std::lock_guard lock(mutex);
    waiting.assign(queue.begin(), queue.end());
    running = active;
  }
  if (running) running->stay_alive();
  const uint32_t ahead = running ? 1 : 0;
  const auto now = Clock::now();
  uint32_t before = ahead;
  for (const auto& ticket : waiting) {
    const std::string_view why = ticket->unwanted(now);
    if (why.empty()) {
      ticket->wait_on(before++, ahead + static_cast<uint32_t>(waiting.size()));
      continue;
    }
    {
      const std::lock_guard lock(mutex);
      if (std::erase(queue, ticket) == 0) continue;  // its turn came meanwhile
      ++status.cancelled;
    }
    ticket->cancelled(why, nothing_yet());
  }
}

std::vector<std::shared_ptr<Ticket>> GenerationLoop::Impl::take_queue() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Ticket>> all(queue.begin(), queue.end());
  queue.clear();
  status.cancelled += all.size();
  return all;
}

// ---- what others call

GenerationLoop::GenerationLoop(LoopOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  STET_CHECK(impl_->options.keep_alive.count() > 0);
  impl_->watcher = std::thread([this] { impl_->watch(); });
  try {
    impl_->generator = std::thread([this] { impl_->run(); });
  } catch (const std::system_error& e) {
    {
      const std::lock_guard lock(impl_->mutex);
      impl_->has_ended = true;
      impl_->watched.notify_all();
    }
    impl_->watcher.join();
    fail(Code::kResource, "no thread can be started: {}", e.what());
  }
}

GenerationLoop::~GenerationLoop() {
  stop(false);
  impl_->generator.join();
  impl_->watcher.join();
}

GenerationLoop::Submit GenerationLoop::submit(std::shared_ptr<Job> job) {
  Impl& i = *impl_;
  auto ticket = std::make_shared<Ticket>(std::move(job), i.options.keep_alive);
  const std::lock_guard lock(i.mutex);
  if (i.closed) return Submit::stopping;
  if (!i.status.load.ready) return Submit::loading;
  if (i.queue.size() + (i.active ? 1 : 0) > i.options.queue_limit) {
    ++i.status.refused;
    return Submit::full;
  }
  i.queue.push_back(std::move(ticket));
  i.work.notify_one();
  i.watched.notify_all();
  return Submit::accepted;
}

LoopStatus GenerationLoop::status() const {
  const std::lock_guard lock(impl_->mutex);
  LoopStatus s = impl_->status;
  s.stopping = impl_->closed;
  s.waiting = static_cast<uint32_t>(impl_->queue.size());
  if (impl_->active) {
    s.active = impl_->active->stage();
    s.active_seconds = std::chrono::duration<double>(Clock::now() - impl_->active_since).count();
  }
  return s;
}

const Engine* GenerationLoop::engine() const { return impl_->loaded; }

void GenerationLoop::close() {
  const std::lock_guard lock(impl_->mutex);
  impl_->closed = true;
  impl_->work.notify_all();
}

void GenerationLoop::stop(bool finish) {
  close();
  std::unique_lock lock(impl_->mutex);
  if (!finish) impl_->cancel_all = true;
  impl_->work.notify_all();
  impl_->ended.wait(lock, [this] { return impl_->has_ended; });
}

}  // namespace stet
