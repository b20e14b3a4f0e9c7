#include "spec/device_cycles.h"

namespace stet {

std::unique_ptr<DeviceCycles> make_device_cycles(Decoder&, Draft*, const DeviceCycleOptions&) { return nullptr; }

}  // namespace stet
