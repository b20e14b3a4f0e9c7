// Who may ask: a table of heads and what becomes of them.
#include "server/http/guard.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stet::http {
namespace {

using Fields = std::vector<RequestHead::Field>;

RequestHead head(Fields fields, std::string target = "/v1/models", std::string method = "GET") {
  RequestHead h;
  h.method = std::move(method);
  h.target = std::move(target);
  h.fields = std::move(fields);
  return h;
}

int status(const GuardRules& rules, const RequestHead& h) { return guard(rules, h, "127.0.0.1").refusal.status; }

TEST(GuardHost, OnlyNamesOfThisServerPass) {
  GuardRules rules;
  rules.hosts = {allowed_host("Box.lan"), allowed_host("[fe80:0::1]")};
  for (const char* host : {"localhost", "LOCALHOST:1234", "127.0.0.1:8080", "[::1]", "[::1]:8080", "[0::1]", "box.lan",
                           "BOX.lan:80", "[fe80::1]"})
    EXPECT_EQ(status(rules, head({{"host", host}})), 0) << host;
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost.", "127.1",
                           "127.0.0.2", "0x7f000001", "2130706433", "0.0.0.0", "0.0.0.0:8080", "[::]",
                           "[::ffff:127.0.0.1]", "foo.localhost", "10.0.0.1", "box", "lan"})
    EXPECT_EQ(status(rules, head({{"host", host}})), 403) << host;
  for (const char* host : {"", "localhost:", "localhost:99999", "user@localhost", "localhost,localhost", "a b", "[::1"})
    EXPECT_EQ(status(rules, head({{"host", host}})), 400) << host;
}

TEST(GuardHost, MissingAndDoubledAreRefused) {
  EXPECT_EQ(status({}, head({})), 400);
  EXPECT_EQ(status({}, head({{"host", "localhost"}, {"host", "localhost"}})), 400);
  RequestHead old = head({});
  old.version = 10;
  EXPECT_EQ(status({}, old), 400);
}

TEST(GuardHost, TheAddressThatAConnectionCameToIsKnown) {
  EXPECT_EQ(guard({}, head({{"host", "192.168.7.5:8080"}}), "192.168.7.5").refusal.status, 0);
  EXPECT_EQ(guard({}, head({{"host", "192.168.7.6:8080"}}), "192.168.7.5").refusal.status, 403);
  EXPECT_EQ(guard({}, head({{"host", "0.0.0.0"}}), "0.0.0.0").refusal.status, 403);
}

TEST(GuardHost, ASocketInTheFileSystemTakesAnyWellFormedOne) {
  GuardRules rules;
  rules.is_unix = true;
  EXPECT_EQ(status(rules, head({{"host", "whatever"}})), 0);
  EXPECT_EQ(status(rules, head({{"host", "what ever"}})), 400);
  EXPECT_EQ(status(rules, head({})), 400) << "HTTP/1.1 needs one";
  EXPECT_EQ(status(rules, head({{"host", "a"}, {"host", "a"}})), 400);
  RequestHead old = head({});
  old.version = 10;
  EXPECT_EQ(status(rules, old), 0);
}

TEST(GuardTarget, IsAPathOrNamesTheSameHost) {
  const auto verdict = [](const char* target, const char* method = "GET") {
    return guard({}, head({{"host", "localhost:8080"}}, target, method), "127.0.0.1");
  };
  EXPECT_EQ(verdict("/a?b=c?d").path, "/a");
  EXPECT_EQ(verdict("/a?b=c?d").query, "b=c?d");
  EXPECT_EQ(verdict("/").path, "/");
  EXPECT_EQ(verdict("http://localhost:8080/a?b").path, "/a");
  EXPECT_EQ(verdict("http://localhost:8080").path, "/");
  EXPECT_EQ(verdict("http://localhost:8080?x").refusal.status, 400);
  EXPECT_EQ(verdict("*", "OPTIONS").path, "*");
  for (const char* target : {"http://evil.example/", "http://localhost/", "http://127.0.0.1:8080/",
                             "https://localhost:8080/", "evil.example:80", "a", "*", "", "//evil", "/a b", "/a#b",
                             "/\x01", "/\xC3\xA9", "ftp://localhost:8080/", "http:///x", "http://u@localhost:8080/"}) {
    const int got = verdict(target).refusal.status;
    EXPECT_EQ(got, std::string_view(target) == "//evil" ? 0 : 400) << target;
  }
}

TEST(GuardOrigin, PagesOfOthersAreRefused) {
  const auto got = [](Fields more, const char* method = "POST", const char* host = "localhost:8080") {
    more.push_back({"host", host});
    GuardRules rules;
    rules.hosts = {"box.lan"};
    return status(rules, head(more, "/", method));
  };
  EXPECT_EQ(got({}), 0) << "no page";
  EXPECT_EQ(got({{"origin", "http://localhost:8080"}}), 0) << "this server's own";
  EXPECT_EQ(got({{"origin", "https://box.lan"}}, "POST", "box.lan"), 0) << "behind a proxy with TLS";
  for (const char* origin :
       {"http://evil.example", "null", "", "http://localhost:3000", "http://localhost", "http://127.0.0.1:8080",
        "http://localhost:8080/", "http://localhost:8080, http://evil.example", "file://", "chrome-extension://abc"})
    EXPECT_EQ(got({{"origin", origin}}), 403) << origin;
}

TEST(GuardOrigin, WhatABrowserSaysOfThePageCountsToo) {
  const auto got = [](const char* site, const char* mode, const char* method) {
    return status({}, head({{"host", "localhost"}, {"sec-fetch-site", site}, {"sec-fetch-mode", mode}}, "/", method));
  };
  EXPECT_EQ(got("cross-site", "no-cors", "GET"), 403) << "a picture on another site";
  EXPECT_EQ(got("same-site", "no-cors", "GET"), 403) << "another port of this machine";
  EXPECT_EQ(got("cross-site", "navigate", "GET"), 0) << "a link";
  EXPECT_EQ(got("cross-site", "navigate", "POST"), 403) << "a form";
  EXPECT_EQ(got("same-origin", "cors", "POST"), 0);
  EXPECT_EQ(got("none", "navigate", "GET"), 0) << "typed by the user";
}

TEST(GuardOrigin, AllowedOnesGetCorsHeadersAndTheirPreflight) {
  GuardRules rules;
  rules.origins = {allowed_origin("http://LOCALHOST:3000")};
  rules.keys = ApiKeys({"secret"});
  RequestHead h = head({{"host", "localhost:8080"}, {"origin", "http://localhost:3000"}}, "/v1/models", "OPTIONS");
  EXPECT_EQ(status(rules, h), 401) << "no preflight";
  h.fields.push_back({"access-control-request-method", "POST"});
  GuardVerdict verdict = guard(rules, h, "127.0.0.1");
  EXPECT_FALSE(verdict.refusal);
  EXPECT_TRUE(verdict.preflight);
  EXPECT_EQ(verdict.allow_origin, "http://localhost:3000");
  verdict = guard({}, h, "127.0.0.1");
  EXPECT_EQ(verdict.refusal.status, 403);
  EXPECT_EQ(verdict.allow_origin, "");
}

TEST(GuardKey, OpensEverythingButThePageAndHealth) {
  GuardRules rules;
  rules.keys = ApiKeys({"key-one", "key-two"});
  const auto got = [&](Fields more, const char* target = "/v1/models", const char* method = "GET") {
    more.push_back({"host", "localhost"});
    return status(rules, head(more, target, method));
  };
  EXPECT_EQ(got({}), 401);
  EXPECT_EQ(got({{"authorization", "Bearer key-one"}}), 0);
  EXPECT_EQ(got({{"authorization", "bearer   key-two"}}), 0);
  EXPECT_EQ(got({{"x-api-key", "key-two"}}), 0);
  EXPECT_EQ(got({{"authorization", "Bearer wrong"}, {"x-api-key", "key-one"}}), 0);
  for (const char* value :
       {"Bearer key-onex", "Bearer key-on", "Bearer", "Bearer ", "Basic key-one", "key-one", "Bearer key-one x"})
    EXPECT_EQ(got({{"authorization", value}}), 401) << value;
  EXPECT_EQ(got({{"x-api-key", ""}}), 401);
  EXPECT_EQ(got({}, "/"), 0);
  EXPECT_EQ(got({}, "/health"), 0);
  EXPECT_EQ(got({}, "/health", "POST"), 401);
  for (const char* target : {"/metrics", "/status", "/health/", "//", "/x/../health"})
    EXPECT_EQ(got({}, target), 401) << target;
  EXPECT_EQ(status(rules, head({{"host", "evil.example"}, {"x-api-key", "key-one"}})), 403) << "a key is no host";
}

TEST(Guard, FlagsAreReadStrictly) {
  EXPECT_EQ(allowed_host("LAPTOP"), "laptop");
  for (const char* host : {"", "box:80", "0.0.0.0", "[::]", "http://box", "*", "a b"})
    EXPECT_THROW(allowed_host(host), Error) << host;
  for (const char* origin : {"", "*", "null", "localhost:3000", "http://a/b"})
    EXPECT_THROW(allowed_origin(origin), Error) << origin;
}

}  // namespace
}  // namespace stet::http
