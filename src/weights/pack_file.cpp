#include "weights/pack_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr std::string_view kSuffix = ".pack";
constexpr std::string_view kTemporaryPrefix = ".pack.";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr const char* kWayOut = "make room (`stet cache clear`), or keep the pack in memory with --pack none";

}  // namespace

bool is_pack_key(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string pack_name(const std::string& key) { return key + std::string(kSuffix); }

std::string key_of_pack_name(const std::string& name) {
  const std::string_view text = name;
  if (!text.ends_with(kSuffix)) return "";
  const std::string_view key = text.substr(0, text.size() - kSuffix.size());
  return is_pack_key(key) ? std::string(key) : "";
}

bool is_pack_temporary(const std::string& name) {
  return name.starts_with(kTemporaryPrefix) && name.ends_with(kTemporarySuffix);
}

std::vector<std::string> remove_dead_temporaries(const CacheDir& folder) {
  std::vector<std::string> alive;
  for (const CacheEntry& entry : folder.list()) {
    if (!is_pack_temporary(entry.name)) continue;
    const int fd = ::open((folder.path() + "/" + entry.name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    const bool dead = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (dead) folder.remove(entry.name);
    ::close(fd);
    if (!dead) alive.push_back(entry.name);
  }
  return alive;
}

void verify_pack_data(const MappedFile& file, const PackHeader& header, WorkerPool& pool,
                      const PackProgress& progress, std::byte* into) {
  const PackPieces pieces(header.plan);
  std::vector<uint64_t> sums(pieces.count());
  std::vector<std::vector<std::byte>> scratches(pool.threads());
  Meter meter(progress, "checking the packed weights", header.plan.data_bytes);
  file.will_need(0, file.size());
  pool.run([&](WorkerPool::Worker& worker) {
    std::vector<std::byte>& scratch = scratches[worker.index()];
    worker.for_tiles(pieces.count(), 1, [&](uint32_t index) {
      const PackPieces::Place at = pieces.place(index);
      const PackTensor& tensor = header.plan.tensors[at.tensor];
      const PackPiece piece = tensor.piece(at.piece);
      // Copied, not read in place: a page that the disk cannot deliver then is an error and not the end.
      const uint64_t offset = tensor.offset + piece.offset;
      if (into == nullptr) scratch.resize(piece.bytes);
      const std::span<std::byte> copy(into == nullptr ? scratch.data() : into + offset, piece.bytes);
      file.read(header.data_start + offset, copy);
      if (into != nullptr) file.release(header.data_start + offset, piece.bytes);  // else both are resident
      sums[index] = xxh3(copy.data(), copy.size());
      meter.add(piece.bytes);
      if (worker.index() == 0) meter.show();
    });
  });
  for (size_t i = 0; i < header.plan.tensors.size(); ++i) {
    const PackTensor& tensor = header.plan.tensors[i];
    const uint64_t sum = tensor_checksum(sums.data() + pieces.first[i], tensor.pieces());
    if (sum != tensor.checksum)
      fail(Code::kInput, "{}: damaged: tensor '{}' has the checksum {:016x}, and it should be {:016x}", file.path(),
           visible_text(tensor.name), sum, tensor.checksum);
  }
}

PackWriter::PackWriter(const CacheDir& folder, const PackHeader& header)
    : folder_(folder), data_start_(header.data_start), file_bytes_(header.file_bytes) {
  folder.require_writable();
  const uint64_t free = folder.free_bytes();
  if (free < file_bytes_)
    fail(Code::kResource, "{}: the pack needs {} bytes and the disk has {} free; {}", folder.path(), file_bytes_, free,
         kWayOut);
  // Beyond this limit a write ends the process by a signal.
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < file_bytes_)
    fail(Code::kResource, "{}: the pack needs {} bytes and the limit of a file is {} (ulimit -f); {}", folder.path(),
         file_bytes_, limit.rlim_cur, kWayOut);
  create();
  try {
    reserve();
  } catch (...) {
    ::unlink(temporary_.c_str());
    ::close(fd_);
    throw;
  }
}

PackWriter::~PackWriter() {
  if (fd_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(fd_);
}

void PackWriter::create() {
  static std::atomic<unsigned> counter{0};
  for (;;) {
    temporary_ = fmt::format("{}/{}{}.{}{}", folder_.path(), kTemporaryPrefix, ::getpid(), counter++, kTemporarySuffix);
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0 && errno == EEXIST) continue;  // left by a process that had our number, or one of another container
    if (fd_ < 0) fail_to_write(errno);
    // Between the two calls somebody may have taken the file for a dead one's.
    struct stat status = {};
    const bool locked = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && ::fstat(fd_, &status) == 0 && status.st_nlink == 1) return;
    ::close(fd_);
  }
}

// Takes the room on the disk now, so that a full disk is found before the work is done.
void PackWriter::reserve() {
  if (::fallocate(fd_, 0, 0, static_cast<off_t>(file_bytes_)) == 0) return;
  const bool cannot_tell = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
  if (!cannot_tell || ::ftruncate(fd_, static_cast<off_t>(file_bytes_)) != 0) fail_to_write(errno);
}

void PackWriter::fail_to_write(int error) const {
  fail(Code::kResource, "{}: the pack of {} bytes cannot be written: {}; {}", folder_.path(), file_bytes_,
       std::strerror(error), kWayOut);
}

void PackWriter::write(uint64_t offset, const void* data, uint64_t bytes) {
  const char* next = static_cast<const char*>(data);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n = ::pwrite(fd_, next + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_to_write(n < 0 ? errno : EIO);
    done += static_cast<uint64_t>(n);
  }
  // Starts the disk; a hint.
  (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

uint8_t* PackWriter::place(uint64_t, uint64_t bytes, std::vector<uint8_t>& scratch) {
  scratch.resize(bytes);
  return scratch.data();
}

void PackWriter::put(uint64_t offset, const uint8_t* data, uint64_t bytes) { write(data_start_ + offset, data, bytes); }

void PackWriter::commit(const PackHeader& header) {
  STET_CHECK(fd_ >= 0 && header.data_start == data_start_ && header.file_bytes == file_bytes_);
  const std::string bytes = encode_pack_header(header);
  write(0, bytes.data(), bytes.size());
  if (::fsync(fd_) != 0) fail_to_write(errno);
  if (::rename(temporary_.c_str(), folder_.path_of(pack_name(header.key)).c_str()) != 0) fail_to_write(errno);
  ::close(fd_);
  fd_ = -1;
  const int folder = ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // the file is complete; only its name may be lost in a crash
  (void)::fsync(folder);
  ::close(folder);
}

}  // namespace stet
