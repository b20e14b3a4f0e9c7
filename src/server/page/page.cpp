#include "server/page/page.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "base/error.h"
#include "embedded/server.h"

namespace stet {
namespace {

std::string content_security_policy(std::string_view html) {
  return fmt::format(
      "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; "
      "frame-ancestors 'none'; trusted-types 'none'; require-trusted-types-for 'script'",
      csp_hash(html, "style"), csp_hash(html, "script"));
}

}  // namespace

std::string csp_hash(std::string_view html, std::string_view tag) {
  const std::string open = fmt::format("<{}>", tag), close = fmt::format("</{}>", tag);
  const size_t begin = html.find(open), end = html.find(close);
  const bool once = begin != html.npos && end != html.npos && begin < end &&
                    html.find(fmt::format("<{}", tag), begin + 1) == html.npos &&
                    html.find(fmt::format("<{}", tag)) == begin && html.find(close, end + 1) == html.npos;
  if (!once) fail(Code::kInternal, "the page must have <{}> exactly once, without attributes", tag);
  const std::string_view content = html.substr(begin + open.size(), end - begin - open.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> text;
  const int length = EVP_EncodeBlock(text.data(), digest.data(), digest.size());
  return fmt::format("'sha256-{}'", std::string_view(reinterpret_cast<const char*>(text.data()), size_t(length)));
}

HttpReply page_reply() {
  static const std::string policy = content_security_policy(embedded::kIndex);
  HttpReply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.body = embedded::kIndex;
  reply.headers = {{"content-security-policy", policy},
                   {"x-content-type-options", "nosniff"},
                   {"referrer-policy", "no-referrer"},
                   {"cross-origin-opener-policy", "same-origin"},
                   {"cross-origin-resource-policy", "same-origin"},
                   {"cache-control", "no-cache"}};
  return reply;
}

}  // namespace stet
