// Which processor this is, as its maker names it.
#pragma once

#include <string>

namespace stet {

// "AMD EPYC 7B13 family 25 model 1 stepping 1": the brand string, then the numbers that errata lists go by.
std::string cpu_model();

}  // namespace stet
