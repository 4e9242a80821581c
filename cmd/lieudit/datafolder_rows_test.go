package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lostFile is a file of the data folder that is damaged while no service runs, what the next start says of it, and what
// repairs it. The operators' guide has the same table.
type lostFile struct {
	name, damage string // damage is a key of damages
	refusal      string // why the service does not start; "": it starts
	said         string // what readiness says until the repair; "": it has nothing to say of the data folder
	logged       string // what a line of the log says
	repair       string // "put back", flags of serve, or a command; "": it repairs itself
	wantOlder    bool   // what was written last is lost, and all the rest is there
	wantNoUsage  bool   // what was counted is lost

	wantOlderUsage bool // what was counted last is lost
	wantOneKey     bool // the event of the second key is lost

	wasKilled bool // the folder is one of a killed service: SQLite's own files lie next to its databases
}

// Repairs that are no command of the running service.
const (
	putBack  = "put back"               // the file of a backup
	moveAway = "move away, accept loss" // and start with --accept-lost-usage, which alone is refused
	salvage  = "log salvage"            // and what it prints
)

// lastKeyFlipped is a bit that flips in the event of the last key that was issued.
const lastKeyFlipped = "last key flipped"

const (
	coreLogLost  = "put log/core back from a backup"
	usageLogLost = "is missing in log/usage"
	vaultLost    = "Put the newest copy of this log's vault there"
	usageTooLow  = "are not on it, and their accounts are counted too low"
	usageLogElse = "one of the two is another service's"
)

// lostFiles are the rows of the table.
func lostFiles() []lostFile {
	const foldOfPaul = "folds/locations-paul.fold"
	const oldCore, newCore, oldUsage, newUsage = "log/core/0000000000000000", "log/core/0000000000004000", "log/usage/0000000000000000", "log/usage/0000000000004000"
	return []lostFile{
		{name: "log", damage: "deleted", refusal: coreLogLost, repair: putBack},
		{name: "log/core", damage: "deleted", refusal: coreLogLost, repair: putBack},
		{name: "log/core", damage: "of another service", refusal: usageLogElse, repair: putBack},
		{name: "log/core", damage: "older", said: "projections rebuild --all", repair: "projections rebuild --all", wantOlder: true},
		{name: oldCore + ".log", damage: "deleted", refusal: "segment is missing", repair: putBack},
		{name: oldCore + ".log", damage: "emptied", refusal: "log damaged at position 0", repair: putBack},
		{name: oldCore + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: oldCore + ".idx", damage: "deleted"},
		{name: oldCore + ".idx", damage: "emptied"},
		{name: oldCore + ".idx", damage: "cut"},
		{name: oldCore + ".idx", damage: "flipped"},
		{name: newCore + ".log", damage: "deleted", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: "emptied", refusal: "log damaged at position 16384", repair: putBack},
		{name: newCore + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: "flipped", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: lastKeyFlipped, refusal: "log damaged at position", repair: salvage, wantOneKey: true},
		{name: newCore + ".log", damage: "older", said: "projections rebuild --all", repair: "projections rebuild --all", wantOlder: true},
		{name: "log/usage", damage: "deleted", refusal: usageLogLost, repair: putBack},
		{name: "log/usage", damage: "deleted", refusal: usageLogLost, repair: "--accept-lost-usage", wantNoUsage: true},
		{name: "log/usage", damage: "of another service", refusal: usageLogElse, repair: putBack},
		{name: "log/usage", damage: "of another service", refusal: usageLogElse, repair: moveAway, wantNoUsage: true},
		{name: "log/usage", damage: "older", said: usageTooLow, repair: putBack},
		{name: "log/usage", damage: "older", said: usageTooLow, repair: "projections rebuild usage", wantOlderUsage: true},
		{name: oldUsage + ".log", damage: "deleted", refusal: "segment is missing", repair: putBack},
		{name: oldUsage + ".log", damage: "emptied", refusal: "log damaged at position 0", repair: putBack},
		{name: oldUsage + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: oldUsage + ".idx", damage: "deleted"},
		{name: newUsage + ".log", damage: "deleted", refusal: "log damaged at position", repair: putBack},
		{name: newUsage + ".log", damage: "older", said: usageTooLow, repair: putBack},
		{name: newUsage + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: "vault.db", damage: "deleted", refusal: "Put the newest copy of it back there", repair: putBack},
		{name: "vault.db", damage: "emptied", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "cut", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "flipped", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "older"}, // no account was opened since
		{name: "vault.db", damage: "of another service", refusal: vaultLost, repair: putBack},
		{name: "operator-token", damage: "deleted", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "emptied", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "cut", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "flipped", logged: "lieudit token recover", repair: "token recover"},
		{name: "keyring", damage: "deleted"},
		{name: "keyring", damage: "emptied", logged: "key ring snapshot ignored"},
		{name: "keyring", damage: "cut", logged: "key ring snapshot ignored"},
		{name: "keyring", damage: "flipped", logged: "key ring snapshot ignored"},
		{name: "keyring", damage: "older"},
		{name: "keyring", damage: "of another service", logged: "key ring restarts from zero"},
		{name: "folds", damage: "deleted"},
		{name: foldOfPaul, damage: "deleted"},
		{name: foldOfPaul, damage: "emptied", logged: "a snapshot is ignored"},
		{name: foldOfPaul, damage: "cut", logged: "a snapshot is ignored"},
		{name: foldOfPaul, damage: "flipped", logged: "a snapshot is ignored"},
		{name: "lock", damage: "deleted"},
		{name: "log/core/lock", damage: "emptied"},
		{name: "log/usage/lock", damage: "flipped"},
		{name: "uploads", damage: "deleted"},
		{name: "readmodels", damage: "deleted"},
		{name: "readmodels", damage: "older"},
		{name: "readmodels", damage: "of another service", logged: "made again from this log"},
		{name: "readmodels/places.db", damage: "deleted"}, // a link for people
		{name: "readmodels/registry.db", damage: "deleted", logged: "registry.db is missing"},
		{name: "readmodels/registry.db", damage: "emptied", logged: "registry.db is empty"},
		{name: "readmodels/registry.db", damage: "cut", logged: "registry.db is damaged"},
		{name: "readmodels/registry.db", damage: "flipped", logged: "registry.db is damaged"},
		{name: "readmodels/registry.db", damage: "older"},
	}
}

// readModelRows are the rows of the files of read models.
func readModelRows(used string) (rows []lostFile, err error) {
	files, err := filepath.Glob(filepath.Join(used, "readmodels", "*-g1.db"))
	for _, path := range files {
		name := "readmodels/" + filepath.Base(path)
		rows = append(rows,
			lostFile{name: name, damage: "deleted", logged: filepath.Base(path) + " is missing"},
			lostFile{name: name, damage: "emptied", logged: filepath.Base(path) + " is empty"},
			lostFile{name: name, damage: "cut", logged: filepath.Base(path) + " is damaged"},
			lostFile{name: name, damage: "flipped", logged: filepath.Base(path) + " is damaged"},
			lostFile{name: name, damage: "older"},
			lostFile{name: name, damage: "of another service", logged: "made again from this log"})
	}
	return rows, err
}

// releaseRows are the rows of the served vintage and the served road network. The network is invented, so that nothing remembers it
// where the whole folder is lost.
func releaseRows() (rows []lostFile) {
	for _, release := range []struct{ name, gone string }{
		{"vintages/*.vintage", "is gone"},
		{"networks/*.network", "no road network is loaded"},
	} {
		folder := filepath.Dir(release.name)
		rows = append(rows,
			lostFile{name: folder, damage: "deleted", said: release.gone, repair: putBack},
			lostFile{name: release.name, damage: "deleted", said: "is gone", repair: putBack},
			lostFile{name: release.name, damage: "emptied", said: "of this format", repair: putBack},
			lostFile{name: release.name, damage: "cut", said: "is damaged", repair: putBack},
			lostFile{name: release.name, damage: "flipped", said: "is damaged", repair: putBack},
			lostFile{name: folder + "/current", damage: "deleted"}, // it is the only one
			lostFile{name: folder + "/current", damage: "emptied"})
	}
	return append(rows, lostFile{name: "last-vintage", damage: "deleted"})
}

// walRows are the rows of the files that SQLite keeps next to its databases while they are open, those of all databases at once. A
// service that was killed leaves them. Without the first one a database is as it was some time ago, and catches up.
func walRows() (rows []lostFile) {
	for _, suffix := range []string{"wal", "shm"} {
		for _, damage := range []string{"deleted", "emptied", "cut", "flipped", "older"} {
			rows = append(rows, lostFile{name: "readmodels/*.db-" + suffix, damage: damage, wasKilled: true})
		}
	}
	return rows
}

// damages are what can happen to a file or folder. older and other are the same one of a copy from before and of another
// service.
func damages() map[string]func(path, older, other string) error {
	return map[string]func(path, older, other string) error{
		"deleted": func(path, _, _ string) error { return os.RemoveAll(path) },
		"emptied": func(path, _, _ string) error { return os.Truncate(path, 0) },
		"cut": func(path, _, _ string) error {
			found, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, found.Size()/2)
		},
		"flipped":            func(path, _, _ string) error { return flipBit(path) },
		lastKeyFlipped:       func(path, _, _ string) error { return flipLast(path, "key-issued") },
		"older":              func(path, older, _ string) error { return replacePath(path, older) },
		"of another service": func(path, _, other string) error { return replacePath(path, other) },
	}
}

// flipBit changes one bit in the middle of a file, of a segment in its first events, and of a database in its first page.
func flipBit(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	found, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	at, b := found.Size()/2, make([]byte, 1)
	switch filepath.Ext(path) {
	case ".log":
		at = 5000
	case ".db":
		at = 100 // the kind of the page
	}
	if _, err := file.ReadAt(b, at); err != nil {
		return errors.Join(err, file.Close())
	}
	b[0] ^= 4
	_, err = file.WriteAt(b, at)
	return errors.Join(err, file.Close())
}

// flipLast changes one bit where a text stands last in a file.
func flipLast(path, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := bytes.LastIndex(content, []byte(text))
	if at < 0 {
		return fmt.Errorf("%s holds no %s", path, text)
	}
	content[at] ^= 1
	return os.WriteFile(path, content, 0o600)
}

// replacePath puts a copy of a file or folder in the place of another.
func replacePath(path, by string) error {
	return errors.Join(os.RemoveAll(path), copySparse(by, path))
}
