#include "server/http/authority.h"

#include <gtest/gtest.h>

namespace stet::http {
namespace {

TEST(HostPort, ReadsNamesAndAddresses) {
  const std::tuple<const char*, const char*, int> cases[] = {
      {"localhost", "localhost", 0}, {"LocalHost:8080", "localhost", 8080}, {"127.0.0.1:1", "127.0.0.1", 1},
      {"[::1]", "[::1]", 0},         {"[::1]:65535", "[::1]", 65535},       {"[0:0:0:0:0:0:0:1]:80", "[::1]", 80},
      {"[FE80::A]", "[fe80::a]", 0}, {"my-box.lan", "my-box.lan", 0},       {"a_b.example:443", "a_b.example", 443},
  };
  for (const auto& [text, host, port] : cases) {
    SCOPED_TRACE(text);
    const auto got = parse_authority(text);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->host, host);
    EXPECT_EQ(got->port, port);
  }
}

TEST(HostPort, RefusesEverythingElse) {
  const std::string_view cases[] = {
      "",
      ":80",
      "localhost:",
      "localhost:0",
      "localhost:65536",
      "localhost:-1",
      "a b",
      "localhost:+1",
      "localhost: 80",
      "user@localhost",
      "localhost/",
      "localhost,evil",
      "[::1",
      "::1",
      "[::1]x",
      "[::1%lo]",
      "[]",
      "[localhost]",
      "[127.0.0.1]",
      "a%6c",
      "http://localhost",
      "localhost:80:80",

      "h\xC3\xB6st",
      "localhost\t",
      "*",
      "localhost:1 ",
      "[::1]:",
      "[[::1]]",
  };
  for (const std::string_view text : cases) EXPECT_FALSE(parse_authority(text)) << text;
  EXPECT_FALSE(parse_authority(std::string_view("loc\0alhost", 10)));
  EXPECT_FALSE(parse_authority(std::string_view("[::1\0]", 6)));
  EXPECT_FALSE(parse_authority(std::string(254, 'a')));
  EXPECT_TRUE(parse_authority(std::string(253, 'a')));
}

TEST(Origin, HasASchemeAndAPlace) {
  EXPECT_EQ(origin_text(*parse_origin("http://LOCALHOST:80")), "http://localhost");
  EXPECT_EQ(origin_text(*parse_origin("HTTPS://a.b:443")), "https://a.b");
  EXPECT_EQ(origin_text(*parse_origin("https://a.b:80")), "https://a.b:80");
  for (const char* text : {"null", "", "localhost", "http:/localhost", "file://", "http://", "http://a/", "http://a/b",
                           "chrome-extension://abc", "http://u@a", "http://a http://b", "://a", "*"})
    EXPECT_FALSE(parse_origin(text)) << text;
}

TEST(Origin, IsAtTheSamePlaceWhenHostAndPortAre) {
  const auto same = [](const char* origin, const char* host) {
    return same_place(*parse_origin(origin), *parse_authority(host));
  };
  EXPECT_TRUE(same("http://localhost:8080", "localhost:8080"));
  EXPECT_TRUE(same("http://localhost", "LOCALHOST:80"));
  EXPECT_TRUE(same("https://box", "box"));
  EXPECT_TRUE(same("https://box:443", "box"));
  EXPECT_FALSE(same("http://localhost:3000", "localhost:8080"));
  EXPECT_FALSE(same("http://127.0.0.1:8080", "localhost:8080"));
  EXPECT_FALSE(same("https://box", "box:80"));
}

TEST(HostPort, AddressesHaveOneSpelling) {
  EXPECT_EQ(canonical_address("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(canonical_address("fe80::1%eth0"), "[fe80::1]");
  EXPECT_EQ(canonical_address("::1"), "[::1]");
  EXPECT_TRUE(is_loopback("127.0.0.2") && is_loopback("[::1]"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("[::]") || is_loopback("192.168.0.1"));
  EXPECT_TRUE(is_wildcard("0.0.0.0") && is_wildcard("[::]"));
}

}  // namespace
}  // namespace stet::http
