#include <map>
#include <set>

#include "base/error.h"
#include "lab/record/event_lines.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr int64_t kMaxHttpStatus = 999;
constexpr int64_t kPlanDigits = 64;

SystemSample read_sample(StrictObject& parent, const char* key) {
  StrictObject object(parent.any(key), fmt::format("{}, '{}'", parent.what(), key));
  SystemSample s;
  s.client_ns = object.nanoseconds("client_ns");
  s.suspended_ns = object.optional_nanoseconds("suspended_ns");
  s.cpu_ticks = object.optional_u64("cpu_ticks");
  s.steal_ticks = object.optional_u64("steal_ticks");
  s.swapped_pages = object.optional_u64("swapped_pages");
  s.throttle_events = object.optional_u64("throttle_events");
  object.finish();
  return s;
}

Channel read_channel(StrictObject& object) {
  const std::string name = object.text("channel");
  for (const Channel channel : {Channel::content, Channel::reasoning, Channel::tool, Channel::none})
    if (channel_name(channel) == name) return channel;
  fail(Code::kInput, "{}: there is no channel '{}'", object.what(), name);
}

}  // namespace

struct EventReader::Impl {
  std::string where() const { return fmt::format("events.jsonl, line {}", number_); }

  void line(std::string_view text) {
    ++number_;
    const Json json = parse_json(text, where());
    StrictObject object(json, where());
    const std::string type = object.text("type");
    if ((number_ == 1) != (type == "plan"))
      fail(Code::kInput, "{}: the first line names the plan, and no other", where());
    const std::string written = read_type(type, object);
    object.finish();
    if (written != std::string(text) + "\n")
      fail(Code::kInput,
           "{}: not as stet writes it (spaces, order of members, a doubled one, a number in another form)", where());
  }

  // Reads the line and returns it as it has to be written.
  std::string read_type(const std::string& type, StrictObject& object) {
    const bool inside = type == "chunk" || type == "end";
    if (open_ && !inside) fail(Code::kInput, "{}: a line of type '{}' within request '{}'", where(), type, request_.id);
    if (!open_ && inside) fail(Code::kInput, "{}: a line of type '{}' outside a request", where(), type);
    if (type == "plan") return plan(object);
    if (type == "start") return start(object);
    if (type == "request") return request(object);
    if (type == "chunk") return chunk(object);
    if (type == "end") return end(object);
    if (type == "measure") return measure(object);
    if (type == "note") return note(object);
    fail(Code::kInput, "{}: there is no line of type '{}'", where(), type);
  }

  std::string plan(StrictObject& object) {
    log_.plan_sha256 = object.text("sha256");
    const bool hex = log_.plan_sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hex || log_.plan_sha256.size() != kPlanDigits)
      fail(Code::kInput, "{}: 'sha256' is no SHA-256 in hex", where());
    return plan_line(log_.plan_sha256);
  }

  std::string start(StrictObject& object) {
    StartRecord s;
    s.arm = object.text("arm");
    s.start = object.u32("start");
    s.fresh = object.flag("fresh");
    s.client_ns = object.nanoseconds("client_ns");
    s.identity_json = object.object("identity");
    if (!next_index_.try_emplace({s.arm, s.start}, 0).second)
      fail(Code::kInput, "{}: start {} of arm '{}' began already", where(), s.start, s.arm);
    log_.starts.push_back(s);
    return start_line(s);
  }

  uint64_t& started(const std::string& arm, uint32_t start) {
    const auto it = next_index_.find({arm, start});
    if (it == next_index_.end()) fail(Code::kInput, "{}: start {} of arm '{}' has not begun", where(), start, arm);
    return it->second;
  }

  std::string request(StrictObject& object) {
    request_ = {};
    request_.id = object.text("id");
    request_.arm = object.text("arm");
    request_.start = object.u32("start");
    request_.index = object.u32("index");
    request_.step_id = object.text("step");
    request_.step_class = object.text("class");
    request_.prompt = object.text("prompt");
    request_.prompt_token_ids = object.optional_ids("prompt_token_ids");
    if (object.has("sampling")) request_.sampling = object.object("sampling");
    request_.max_tokens = object.u32("max_tokens");
    request_.before = read_sample(object, "before");
    request_.sent_ns = object.nanoseconds("sent_ns");
    if (!request_ids_.insert(request_.id).second)
      fail(Code::kInput, "{}: a second request with the id '{}'", where(), request_.id);
    uint64_t& next = started(request_.arm, request_.start);
    if (request_.index < next)
      fail(Code::kInput, "{}: request {} of start {} of arm '{}' comes after request {}", where(), request_.index,
           request_.start, request_.arm, next - 1);
    next = uint64_t{request_.index} + 1;
    open_ = true;
    last_ns_ = request_.sent_ns;
    return request_begin_line(request_);
  }

  std::string chunk(StrictObject& object) {
    ChunkEvent c;
    c.client_ns = object.nanoseconds("client_ns");
    c.server_ns = object.optional_nanoseconds("server_ns");
    c.channel = read_channel(object);
    c.text = object.text("text");
    c.token_ids = object.optional_ids("token_ids");
    c.depth = object.optional_u32("depth");
    c.accepted = object.optional_u32("accepted");
    c.draft_ns = object.optional_nanoseconds("draft_ns");
    c.logprobs = object.optional_numbers("logprobs");
    advance(c.client_ns);
    const std::string written = chunk_line(c);
    request_.chunks.push_back(std::move(c));
    return written;
  }

  std::string end(StrictObject& object) {
    RequestRecord& r = request_;
    const std::string id = object.text("id");
    if (id != r.id) fail(Code::kInput, "{}: request '{}' ends within request '{}'", where(), id, r.id);
    r.end_ns = object.nanoseconds("end_ns");
    r.http_status = static_cast<int>(object.whole("http_status", 0, kMaxHttpStatus));
    r.finish_reason = object.text("finish_reason");
    StrictObject usage(object.any("usage"), where() + ", 'usage'");
    r.usage.prompt_tokens = usage.optional_u32("prompt_tokens");
    r.usage.completion_tokens = usage.optional_u32("completion_tokens");
    r.usage.cached_tokens = usage.optional_u32("cached_tokens");
    usage.finish();
    r.complete = object.flag("complete");
    r.cancelled_by_client = object.flag("cancelled_by_client");
    r.error = object.text("error");
    r.after = read_sample(object, "after");
    advance(r.end_ns);
    open_ = false;
    log_.requests.push_back(r);
    return request_end_line(r);
  }

  void advance(int64_t ns) {
    if (ns < last_ns_) fail(Code::kInput, "{}: {} ns before what came before it", where(), last_ns_ - ns);
    last_ns_ = ns;
  }

  std::string measure(StrictObject& object) {
    MeasureRecord m;
    m.arm = object.text("arm");
    m.start = object.u32("start");
    m.point = object.text("point");
    m.begin_ns = object.nanoseconds("begin_ns");
    m.end_ns = object.nanoseconds("end_ns");
    m.before = read_sample(object, "before");
    m.after = read_sample(object, "after");
    m.figures_json = object.object("figures");
    started(m.arm, m.start);
    if (m.end_ns < m.begin_ns) fail(Code::kInput, "{}: it ended before it began", where());
    log_.measures.push_back(m);
    return measure_line(m);
  }

  std::string note(StrictObject& object) {
    const std::string name = object.text("name");
    const std::string body = object.object("body");
    log_.notes.emplace_back(name, body);
    return note_line(name, body);
  }

  EventLog log_;
  size_t number_ = 0;
  bool open_ = false;  // between the begin of a request and its end
  RequestRecord request_;
  int64_t last_ns_ = 0;
  std::map<std::pair<std::string, uint32_t>, uint64_t> next_index_;  // of a request, by arm and start
  std::set<std::string> request_ids_;
};

EventReader::EventReader() : impl_(std::make_unique<Impl>()) {}
EventReader::~EventReader() = default;
void EventReader::line(std::string_view text) { impl_->line(text); }

EventLog EventReader::finish() {
  if (impl_->number_ == 0) fail(Code::kInput, "events.jsonl: empty; its first line names the plan");
  if (impl_->open_) fail(Code::kInput, "{}: the file ends within request '{}'", impl_->where(), impl_->request_.id);
  return std::move(impl_->log_);
}

EventLog read_events(std::string_view text) {
  EventReader reader;
  size_t number = 1;
  for (; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) fail(Code::kInput, "events.jsonl, line {}: cut off before its end", number);
    reader.line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return reader.finish();
}

}  // namespace stet
