// Sending a row to a board, once.
#pragma once

#include <functional>
#include <string>

#include "lab/bench/http_client.h"
#include "lab/ledger/ledger.h"

namespace stet {

struct BoardAddress {
  Endpoint endpoint;
  std::string path;  // "/api/benchmarks"
  std::string shown() const { return endpoint.shown() + path; }
};

// http://HOST:PORT/PATH on this machine. Throws Error(kUsage): https, which is not spoken here, and any other host,
// because the key would cross the network for everybody to read; the message names the tunnel that is meant.
BoardAddress board_address(const std::string& url);

// The key on the one line of a file. Throws Error(kUsage) for a file that lies in a Git tree or holds no key,
// Error(kResource) for one that others can read, Error(kInput) for one that is not there.
std::string board_key(const std::string& file);

struct BoardRequest {
  BoardAddress address;
  std::string key, payload;
  std::string subject;  // what the ledger calls the row: the packet's MANIFEST hash and its arm
  std::function<bool()> stop;
  std::function<void(double seconds)> waiting;  // the board asked for patience
};

struct BoardAnswer {
  int status = 0;
  std::string id;  // the row's, where the answer names one
};

// Writes into the ledger that the row is sent, sends it, and writes what became of it. After 429 it waits as long as
// the board asks (at most ten minutes) and sends once more. Throws Error(kUsage) for a row that was sent before, or of
// whose sending nobody knows what became; Error(kInput) where nobody answers, or the answer is no; Error(kCancelled).
BoardAnswer send_to_board(Ledger& ledger, const BoardRequest& request);

}  // namespace stet
