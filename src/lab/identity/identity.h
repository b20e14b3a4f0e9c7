// What the client of a measurement says of itself.
#pragma once

#include <string>

namespace stet {

// A JSON object on one line: engine/identity.h's process, its clock's resolution, and how many processors it may use.
std::string client_identity();

}  // namespace stet
