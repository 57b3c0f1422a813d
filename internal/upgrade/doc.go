// Package upgrade is a test of rolling upgrades: it builds the library of this tree and
// that of an earlier commit, the baseline, and has processes of both share records in
// one Redis. docs/compatibility.md says what is promised; `make upgrade` runs the test.
//
//   - BASELINE names the commit, or the tag of the last release. NEAP_BASELINE names
//     another one for one run.
//   - worker is a process of a user: it calls the library's public API as it is told.
//     It is built twice, from the tree and from the baseline.
//   - wire is what the test and the workers say to each other.
//   - The test is the judge: it decides by the answers and by what Redis has in the end.
//
// Add a scenario about something new when a release has it: only then do two versions
// share its records. If the tree's worker does not compile with the baseline,
// because the API has changed since, the baseline's own worker is built.
//
// Each part has a control: a third build, a mutant of the baseline with other formats and
// keys, must make every scenario fail.
//
// All files of the test but page_test.go have the build tag neap_upgrade, because they compile the
// library again, which takes longer than `make test` should.
package upgrade
