// Command pictures draws docs/pictures: what each limit of core/limit lets
// through of the same traffic, by running the scripts on an embedded miniredis,
// and the states of a guard's record and of a lock's. It is run in the root of
// the repository; each run draws the same.
package main

import (
	"log"
	"os"
	"path/filepath"
)

const home = "docs/pictures"

func main() {
	log.SetFlags(0)
	if err := write(home); err != nil {
		log.Fatal(err)
	}
}

func write(dir string) error {
	all, err := draw()
	if err != nil {
		return err
	}
	for name, picture := range all {
		err := os.WriteFile(filepath.Join(dir, name), []byte(picture), 0o644) //nolint:gosec // for everyone to read
		if err != nil {
			return err
		}
	}
	return nil
}

// draw is every picture, by the name of its file.
func draw() (map[string]string, error) {
	all := map[string]string{
		"guard.svg": guard.drawing(),
		"lock.svg":  lock.drawing(),
	}
	var seen []*course
	for _, l := range limits {
		c, err := run(l.policy)
		if err != nil {
			return nil, err
		}
		seen = append(seen, c)
		all[l.file] = limitPicture(l, c)
	}
	all["limits.svg"] = limitsPicture(seen)
	served, err := serve()
	if err != nil {
		return nil, err
	}
	all["concurrency.svg"] = concurrencyPicture(served)
	return all, nil
}
