#include "server/http/api_keys.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace stet::http {
namespace {

constexpr off_t kLongestFile = 1 << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void check_safe(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode)) fail(Code::kResource, "the key file {} is not a regular file", path);
  const bool group_is_chosen = file.st_uid == 0 && ::geteuid() != 0;
  const mode_t forbidden = group_is_chosen ? 07 : 077;
  if ((file.st_mode & forbidden) != 0)
    fail(Code::kResource, "the key file {} has mode {:04o}: others can read it; run chmod 600 {}", path,
         file.st_mode & 07777, path);
  if (file.st_uid != 0 && file.st_uid != ::geteuid())
    fail(Code::kResource, "the key file {} belongs to user {}, and this process runs as {}", path, file.st_uid,
         ::geteuid());
  if (file.st_size > kLongestFile)
    fail(Code::kResource, "the key file {} is longer than 1 MiB; it holds one key a line", path);
}

std::string read_safe_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0)
    fail(errno == ENOENT ? Code::kInput : Code::kResource, "the key file {} cannot be read: {}", path,
         std::strerror(errno));
  struct stat status = {};
  if (::fstat(file.fd, &status) != 0)
    fail(Code::kInput, "the key file {} cannot be read: {}", path, std::strerror(errno));
  check_safe(path, status);
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::read(file.fd, text.data() + got, text.size() - got);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  text.resize(got);
  return text;
}

std::string hash_of(std::string_view key) { return sha256_hex(key.data(), key.size()); }

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) hashes_.push_back(hash_of(key));
}

ApiKeys ApiKeys::from_file(const std::string& path) {
  const std::string text = read_safe_file(path);
  std::vector<std::string> keys;
  size_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    if (!std::ranges::all_of(line, [](char c) { return c > ' ' && c < 0x7f; }))
      fail(Code::kInput, "line {} of the key file {} is no key: printable ASCII without spaces is needed", number + 1,
           path);
    keys.push_back(line);
  }
  if (keys.empty()) fail(Code::kInput, "the key file {} holds no key; write one a line", path);
  return ApiKeys(keys);
}

bool ApiKeys::accepts(std::string_view key) const {
  const std::string presented = hash_of(key);
  unsigned found = 0;
  for (const std::string& known : hashes_)
    found |= static_cast<unsigned>(::CRYPTO_memcmp(known.data(), presented.data(), known.size()) == 0);
  return found != 0;
}

}  // namespace stet::http
