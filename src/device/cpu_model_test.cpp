#include "device/cpu_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace stet {
namespace {

std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) == key)
      return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

// The kernel decodes the same registers by itself.
TEST(CpuModel, AgreesWithTheSystem) {
  if (cpuinfo("model name").empty()) GTEST_SKIP() << "/proc/cpuinfo names no processor";
  std::string name = cpuinfo("model name");
  name.erase(name.find_last_not_of(' ') + 1);
  EXPECT_EQ(cpu_model(), name + " family " + cpuinfo("cpu family") + " model " + cpuinfo("model") + " stepping " + cpuinfo("stepping"));
}

}  // namespace
}  // namespace stet
