# Counts the tests in a log of `ctest -V` or of a script that closes with "N passed, N failed": prints three numbers:
# passed, failed, skipped. A GoogleTest program counts with its cases, any other entry of ctest as one. Lines begin with the
# number of their entry, because several may run at once.
{
  entry = /^[0-9]+: / ? $0 + 0 : 0
  sub(/^[0-9]+: /, "")
}
/^\[  PASSED  \] [0-9]+ test/ { cases_passed[entry] += $4; has_cases[entry] = 1 }
/^\[  FAILED  \] [0-9]+ test/ { cases_failed[entry] += $4; has_cases[entry] = 1 }
/^\[  SKIPPED \] [0-9]+ test/ { cases_skipped[entry] += $4; has_cases[entry] = 1 }
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
  cases_passed[entry] += $1; cases_failed[entry] += $3; cases_skipped[entry] += $5; has_cases[entry] = 1
}
/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
  entry = $0
  sub(/^[^#]*#/, "", entry)
  entry += 0
  if (has_cases[entry]) {
    # A program that died after its cases had passed has failed all the same.
    if (!/ Passed / && !/Skipped/ && cases_failed[entry] == 0) cases_failed[entry] = 1
  } else if (/ Passed /) passed++
  else if (/\*\*\*Skipped/) skipped++
  else failed++
}
END {
  for (entry in has_cases) {
    passed += cases_passed[entry]; failed += cases_failed[entry]; skipped += cases_skipped[entry]
  }
  print passed + 0, failed + 0, skipped + 0
}
