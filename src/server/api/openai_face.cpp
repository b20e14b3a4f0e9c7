#include "server/api/openai_face.h"

#include "text/unicode.h"

namespace stet {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson usage_of(const AnswerEnd& end) {
  OrderedJson usage;
  usage["prompt_tokens"] = end.prompt_tokens;
  usage["completion_tokens"] = end.output_tokens;
  usage["total_tokens"] = uint64_t{end.prompt_tokens} + end.output_tokens;
  usage["prompt_tokens_details"] = {{"cached_tokens", end.cached_tokens}};
  return usage;
}

std::string_view finish_reason_of(Finish finish) { return finish == Finish::stop ? "stop" : "length"; }

// What OpenAI's form has no place for.
OrderedJson extension_of(const AnswerEnd& end) {
  OrderedJson out;
  out["finish"] = finish_name(end.finish);
  out["seed"] = end.seed ? OrderedJson(*end.seed) : OrderedJson(nullptr);
  out["digest"] = end.digest;
  return out;
}

// Text was made valid, and the rest is our own; replace is for what nobody thought of.
std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void append_arrays(OrderedJson& to, const OrderedJson& from) {
  if (to.is_null()) {
    to = from;
    return;
  }
  for (const auto& [name, value] : from.items())
    if (value.is_array()) to[name].insert(to[name].end(), value.begin(), value.end());
}

}  // namespace

OrderedJson OpenAiFace::head(bool is_chunk) const {
  OrderedJson out;
  out["id"] = context_.id;
  out["object"] = object(is_chunk);
  out["created"] = context_.created;
  out["model"] = context_.model;
  out["system_fingerprint"] = context_.fingerprint;
  return out;
}

OrderedJson OpenAiFace::chunk(OrderedJson content, OrderedJson logprobs, OrderedJson finish_reason) {
  OrderedJson choice;
  choice["index"] = 0;
  choice.update(content);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  OrderedJson out;
  out["choices"] = OrderedJson::array({std::move(choice)});
  if (context_.include_usage) out["usage"] = nullptr;
  return out;
}

void OpenAiFace::send_chunk(OrderedJson chunk, const Send& send) {
  if (context_.return_token_ids && !prompt_ids_sent_) chunk["prompt_token_ids"] = context_.prompt;
  prompt_ids_sent_ = true;
  // All chunks begin alike, and a cycle is short: that part is written once.
  if (head_.empty()) {
    head_ = text_of(head(true));
    head_.back() = ',';
  }
  send(head_ + text_of(chunk).substr(1));
}

void OpenAiFace::open(const Send& send) {
  if (auto first = first_delta()) send_chunk(chunk(std::move(*first)), send);
}

void OpenAiFace::keep_alive(JobStage stage, uint32_t done, uint32_t total, const Send& send) {
  OrderedJson out = chunk(delta(""));
  out["stet"] = {{"stage", stage_name(stage)}, {"done", done}, {"total", total}};
  send_chunk(std::move(out), send);
}

bool OpenAiFace::piece(const Piece& piece, const Send& send) {
  const std::string text = replace_invalid_utf8(piece.text);
  const bool every_cycle = context_.return_token_ids || context_.cycle_events || context_.logprobs;
  if (text.empty() && !every_cycle) return false;
  OrderedJson out = chunk(delta(text), context_.logprobs ? logprobs(piece) : OrderedJson(nullptr));
  if (context_.return_token_ids) out["choices"][0]["token_ids"] = piece.tokens;
  if (context_.cycle_events) {
    OrderedJson& event = out["stet"];
    event["cycle"] = piece.cycle;
    event["depth"] = piece.proposed;
    event["accepted"] = piece.accepted;
    event["token_ids"] = piece.tokens;
    event["server_ns"] = piece.server_ns;
  }
  send_chunk(std::move(out), send);
  return true;
}

void OpenAiFace::close(const AnswerEnd& end, const Send& send) {
  OrderedJson last = chunk(delta(""), nullptr, finish_reason_of(end.finish));
  last["stet"] = extension_of(end);
  send_chunk(std::move(last), send);
  if (context_.include_usage) {
    OrderedJson out;
    out["choices"] = OrderedJson::array();
    out["usage"] = usage_of(end);
    send_chunk(std::move(out), send);
  }
  send("[DONE]");
}

void OpenAiFace::keep(const Piece& piece) {
  text_ += piece.text;
  if (context_.return_token_ids) tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
  if (context_.logprobs) append_arrays(logprobs_, logprobs(piece));
}

std::string OpenAiFace::body(const AnswerEnd& end) {
  OrderedJson choice;
  choice["index"] = 0;
  choice.update(whole(replace_invalid_utf8(text_)));
  choice["logprobs"] = logprobs_;
  choice["finish_reason"] = finish_reason_of(end.finish);
  if (context_.return_token_ids) choice["token_ids"] = tokens_;
  OrderedJson out = head(false);
  out["choices"] = OrderedJson::array({std::move(choice)});
  out["usage"] = usage_of(end);
  if (context_.return_token_ids) out["prompt_token_ids"] = context_.prompt;
  out["stet"] = extension_of(end);
  return text_of(out);
}

}  // namespace stet
