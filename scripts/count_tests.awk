# Counts the tests in a log of `ctest -V` or of a script that closes with "N passed, N failed": prints three numbers:
# passed, failed, skipped. A GoogleTest program counts with its cases, any other entry of ctest as one.
{ sub(/^[0-9]+: /, "") }
/^\[  PASSED  \] [0-9]+ test/ { cases_passed += $4; has_cases = 1 }
/^\[  FAILED  \] [0-9]+ test/ { cases_failed += $4; has_cases = 1 }
/^\[  SKIPPED \] [0-9]+ test/ { cases_skipped += $4; has_cases = 1 }
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
  cases_passed += $1; cases_failed += $3; cases_skipped += $5; has_cases = 1
}
/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
  ran = 1
  if (has_cases) {
    # A program that died after its cases had passed has failed all the same.
    if (!/ Passed / && !/Skipped/ && cases_failed == 0) cases_failed = 1
    close_program()
  } else if (/ Passed /) passed++
  else if (/\*\*\*Skipped/) skipped++
  else failed++
}
function close_program() {
  passed += cases_passed; failed += cases_failed; skipped += cases_skipped
  cases_passed = cases_failed = cases_skipped = has_cases = 0
}
END {
  if (has_cases) close_program()
  print passed + 0, failed + 0, skipped + 0
}
