// As much of SQLite as the ledger needs: a connection, a statement, a transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace stet {

class Database {
 public:
  // Opens or creates the file, mode 0600. Waits up to `busy_seconds` for another process's write. Throws
  // Error(kResource) where it cannot be opened, Error(kInput) where it is no database.
  Database(const std::string& path, int busy_seconds);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Statements without parameters or rows.
  void run(const std::string& sql);
  int64_t last_id() const;
  sqlite3* handle() const { return handle_; }
  [[noreturn]] void fail_with_message(std::string_view doing) const;

 private:
  std::string path_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  template <typename... Args>
  Statement(Database& database, std::string_view sql, const Args&... args) : Statement(database, sql, nullptr) {
    int index = 0;
    (bind(++index, args), ...);
  }
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool step();  // true: there is a row
  int64_t integer(int column) const;
  std::string text(int column) const;  // empty where NULL
  bool null(int column) const;

 private:
  Statement(Database& database, std::string_view sql, std::nullptr_t);
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind(int index, int64_t value);
  void bind(int index, const std::optional<std::string>& value);

  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

// Takes the write lock at once, so that what is read inside still holds when it is written. Rolled back unless commit()
// is called.
class WriteTransaction {
 public:
  explicit WriteTransaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
  ~WriteTransaction();
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace stet
