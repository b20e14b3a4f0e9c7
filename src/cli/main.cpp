#include <string>
#include <vector>

#include "cli/verb.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return stet::stet_main(arguments);
}
