// What `stet inspect` prints of a model.
#pragma once

#include <string>

#include "weights/summary.h"

namespace stet {

// For a terminal: control characters visible, long values cut with their length stated. Ends with a newline.
std::string inspect_text(const ModelSummary& model);

// One JSON object, everything complete (docs/cli.md): name, synthetic, files, parameters, weight_bytes,
// bytes_per_token, formats, metadata, tensors. Bytes that are not UTF-8 become U+FFFD, numbers that JSON lacks null.
// Ends with a newline.
std::string inspect_json(const ModelSummary& model);

}  // namespace stet
