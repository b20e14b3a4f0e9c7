# Every dependency is a Debian package (scripts/packages.txt); none is vendored.
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # embeds data files, runs tests
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers only: Beast and Asio
find_package(SQLite3 REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
