// What must not be in a packet: who ran it, on which machine, where, and with which key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stet {

struct PrivateNames {
  std::string user, host, home;  // empty: not known
};

// Of the user and machine of this process. Names that say nothing about anybody ("root", "localhost", a host of less
// than four letters, a home of "/") are left out.
PrivateNames private_names();

enum class ScrubScope {
  metadata,  // what stet and its user wrote: the names as whole words anywhere, the home path, keys
  prompt,  // running text: the home path, keys, and the names only where they stand for an account ("name@", "/name/",
           // "@host")
};

// Nothing, or what the text holds, without repeating it: "the user's name", "this machine's name", "the home
// directory", "something that looks like a key (sk-...)".
std::optional<std::string> private_content(std::string_view text, const PrivateNames& names, ScrubScope scope);

// The same for every string and member name of a JSON text. Throws Error(kInput) for what is no JSON.
std::optional<std::string> private_json_content(std::string_view json, const PrivateNames& names, ScrubScope scope);

}  // namespace stet
