#include "lab/ledger/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace stet {
namespace {

// SQLite would make the file by the umask; what was tried is nobody else's business.
void create_private(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) fail(Code::kResource, "the ledger {} cannot be opened: {}", path, std::strerror(errno));
  close(fd);
}

}  // namespace

Database::Database(const std::string& path, int busy_seconds) : path_(path) {
  create_private(path);
  if (sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK) {
    const std::string why = handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory";
    sqlite3_close(handle_);
    fail(Code::kResource, "the ledger {} cannot be opened: {}", path, why);
  }
  sqlite3_busy_timeout(handle_, busy_seconds * 1000);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail_with_message(std::string_view doing) const {
  const int code = sqlite3_errcode(handle_) & 0xff;
  const std::string why = sqlite3_errmsg(handle_);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    fail(Code::kInput, "{} is no ledger, or damaged: {} while {}", path_, why, doing);
  if (code == SQLITE_BUSY)
    fail(Code::kResource, "the ledger {} is held by another process (while {}); try again", path_, doing);
  if (code == SQLITE_CONSTRAINT)
    fail(Code::kInternal, "the ledger {} refused a change: {} while {}", path_, why, doing);
  fail(Code::kResource, "the ledger {} failed: {} while {}", path_, why, doing);
}

void Database::run(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail_with_message(sql.substr(0, sql.find('(')));
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }

Statement::Statement(Database& database, std::string_view sql, std::nullptr_t) : database_(database) {
  if (sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &handle_, nullptr) != SQLITE_OK)
    database.fail_with_message(sql);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::bind(int index, std::string_view value) {
  STET_CHECK(sqlite3_bind_text(handle_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT) ==
             SQLITE_OK);
}

void Statement::bind(int index, int64_t value) { STET_CHECK(sqlite3_bind_int64(handle_, index, value) == SQLITE_OK); }

void Statement::bind(int index, const std::optional<std::string>& value) {
  if (value) return bind(index, std::string_view(*value));
  STET_CHECK(sqlite3_bind_null(handle_, index) == SQLITE_OK);
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail_with_message(sqlite3_sql(handle_));
  return false;
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return bytes == nullptr ? "" : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(handle_, column)));
}

bool Statement::null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

WriteTransaction::~WriteTransaction() {
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void WriteTransaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace stet
