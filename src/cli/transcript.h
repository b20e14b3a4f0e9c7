// A conversation as a file.
#pragma once

#include <span>
#include <string>

#include "stet/engine.h"

namespace stet {

// {"model": ..., "synthetic": ..., "messages": [{"role": ..., "content": ...}, ...]}, with U+FFFD for what is not
// UTF-8.
std::string transcript_json(const EngineInfo& info, std::span<const ChatMessage> messages);

// Markdown: a heading for each message, its text as it is.
std::string transcript_markdown(const EngineInfo& info, std::span<const ChatMessage> messages);

// JSON when the name ends in .json, else Markdown. The file appears complete or not at all. Throws Error(kUsage) when
// it exists and overwrite is not set, Error(kResource) when it cannot be written.
void save_transcript(const std::string& path, bool overwrite, const EngineInfo& info,
                     std::span<const ChatMessage> messages);

}  // namespace stet
