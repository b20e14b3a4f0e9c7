// The folder of a packet while it is written: every function returns when its bytes are on disk.
#pragma once

#include <string>
#include <string_view>

namespace stet {

class PacketFolder {
 public:
  // Makes PATH.partial. Throws Error(kUsage) when PATH or PATH.partial exists, Error(kResource) when the folder above
  // is missing or cannot be written.
  explicit PacketFolder(const std::string& path);
  ~PacketFolder();
  PacketFolder(const PacketFolder&) = delete;
  PacketFolder& operator=(const PacketFolder&) = delete;

  // A new file. Throws Error(kResource) when the disk is full or fails.
  void write(std::string_view name, std::string_view content);
  // Appends to the events; what could not be written completely is taken back. Throws Error(kResource).
  void append_events(std::string_view lines);
  // PATH.partial becomes PATH. Throws Error(kUsage) when another process took the name meanwhile.
  void finish();

  std::string file(std::string_view name) const { return partial_ + "/" + std::string(name); }
  const std::string& partial() const { return partial_; }

 private:
  void sync_folder(const std::string& folder) const;

  std::string path_, partial_;
  int events_ = -1;
};

}  // namespace stet
