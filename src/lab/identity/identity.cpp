#include "lab/identity/identity.h"

#include <ctime>

#include "device/topology.h"
#include "engine/identity.h"
#include "base/strict_json.h"

namespace stet {

std::string client_identity() {
  Json json = parse_json(process_identity(), "the identity of this process");
  timespec resolution = {};
  const bool known = ::clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_sec == 0;
  json["clock"] = "CLOCK_MONOTONIC";
  json["clock_resolution_ns"] = known ? Json(resolution.tv_nsec) : Json("unproven");
  json["processors"] = thread_budget().threads;
  return dump_line(json);
}

}  // namespace stet
