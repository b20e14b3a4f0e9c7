#include "server/page/page.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/error.h"

namespace stet {
namespace {

TEST(Page, IsOneFileThatAsksNobodyElse) {
  const std::string page = page_reply().body;
  EXPECT_LT(page.size(), 40u * 1024) << "the page is meant to be small";
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  for (const char* outside : {"http://", "https://", "//cdn", "@import", "url("}) {
    const std::string rest = std::regex_replace(page, std::regex("http://www\\.w3\\.org/2000/svg"), "");
    EXPECT_EQ(rest.find(outside), std::string::npos) << outside;
  }
}

// A policy of hashes forbids attributes that run or style.
TEST(Page, HasNoInlineAttributes) {
  const std::string page = page_reply().body;
  const std::string body = page.substr(page.find("</style>"), page.find("<script>") - page.find("</style>"));
  EXPECT_FALSE(std::regex_search(body, std::regex(R"(\s(on\w+|style)\s*=)")));
}

// Text of a message is only ever set as text.
TEST(Page, HasNoWayToInterpretText) {
  const std::string page = page_reply().body;
  for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
                           "DOMParser", "localStorage", "sessionStorage", "document.cookie"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
}

TEST(Page, PolicyNamesItsStyleAndScript) {
  const HttpReply reply = page_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  const std::string& policy = reply.headers.at("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; "));
  EXPECT_NE(policy.find("style-src " + csp_hash(reply.body, "style") + ";"), std::string::npos);
  EXPECT_NE(policy.find("script-src " + csp_hash(reply.body, "script") + ";"), std::string::npos);
  EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
}

// What `printf 'alert(1)' | openssl dgst -sha256 -binary | base64` prints.
TEST(CspHash, IsTheHashOfTheContent) {
  EXPECT_EQ(csp_hash("<p><script>alert(1)</script>", "script"),
            "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='");
}

TEST(CspHash, WantsTheElementOnceAndPlain) {
  for (const char* html : {"", "<script>1", "<script>1</script><script>2</script>", "<script src='x'>1</script>",
                           "</script><script>", "<script>1</script></script>", "<script>1</script><script async>2"})
    EXPECT_THROW(csp_hash(html, "script"), Error) << html;
}

}  // namespace
}  // namespace stet
