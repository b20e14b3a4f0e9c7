#include "lab/record/events.h"

namespace stet {

std::vector<int32_t> RequestRecord::token_ids() const {
  std::vector<int32_t> ids;
  for (const ChunkEvent& chunk : chunks)
    if (chunk.token_ids) ids.insert(ids.end(), chunk.token_ids->begin(), chunk.token_ids->end());
  return ids;
}

std::string RequestRecord::text() const {
  std::string text;
  for (const ChunkEvent& chunk : chunks)
    if (chunk.channel == Channel::content) text += chunk.text;
  return text;
}

}  // namespace stet
