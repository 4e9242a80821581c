package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Format is the format of the backups that this program makes, and the only one that it reads.
const Format = 1

// Manifest is the first entry of a backup. It lists what the backup holds, in the order of the entries.
type Manifest struct {
	Format     int       `json:"format"`
	Program    string    `json:"programme"` // version of the program that made it
	TakenAt    time.Time `json:"pris_le"`   // all that was acknowledged before is in it
	LogID      uuid.UUID `json:"journal"`   // of the log of accounts, keys and sites, as the vault names it
	EventStore bool      `json:"eventstoredb,omitempty"`
	Logs       []Log     `json:"journaux"` // none when the log is on EventStoreDB
	VaultRows  int       `json:"cles"`     // data keys, destroyed ones included
	Files      []File    `json:"fichiers"`
}

// Log is a log that a backup holds.
type Log struct {
	Name   string              `json:"nom"` // CoreLog, UsageLog or NodeLog
	ID     uuid.UUID           `json:"uuid"`
	Events int                 `json:"evenements"`
	End    eventstore.Position `json:"fin"`
	Last   uuid.UUID           `json:"dernier"` // id of the last event
	LastAt eventstore.Position `json:"dernier_en"`
	Until  time.Time           `json:"jusqu_a"` // time of the last event
}

// The names of logs. A data folder has the first two; a node has one log that holds both.
const (
	CoreLog  = "core"
	UsageLog = "usage"
	NodeLog  = "node"
)

// File is one file of a backup. Its name is its path in a data folder, with slashes; those below nodeFolder are of a node's folder.
type File struct {
	Name string `json:"nom"`
	Size int64  `json:"octets"`
}

// Names of folders, and of entries that are not files of a data folder.
const (
	manifestEntry = "manifest.json"
	sumsEntry     = "SHA256SUMS"
	logFolder     = "log"
	nodeFolder    = "node"
	vaultFile     = "vault.db"
	tokenFile     = "operator-token"
)

// FormatError means that a backup has a format that this program does not read.
type FormatError struct {
	File    string
	Format  int
	Program string // version of the program that made it
}

func (e *FormatError) Error() string {
	age := "an older form than this program reads"
	if e.Format > Format {
		age = "a newer form than this program reads"
	}
	return fmt.Sprintf("%s has %s (format %d, not %d): restore it with lieudit %s, which made it, and upgrade then",
		e.File, age, e.Format, Format, e.Program)
}

// mainLog is the log of accounts, keys and sites; nil when it is on EventStoreDB.
func (m Manifest) mainLog() *Log {
	i := slices.IndexFunc(m.Logs, func(l Log) bool { return l.Name == CoreLog || l.Name == NodeLog })
	if i < 0 {
		return nil
	}
	return &m.Logs[i]
}

// HasNode reports whether the log is that of a node.
func (m Manifest) HasNode() bool { return m.mainLog() != nil && m.mainLog().Name == NodeLog }

// Size returns the size of all files together.
func (m Manifest) Size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// parseManifest reads a manifest, and refuses another format and names that lead out of a data folder.
func parseManifest(file string, text []byte) (m Manifest, err error) {
	var head struct {
		Format  int    `json:"format"`
		Program string `json:"programme"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, err
	}
	if head.Format < 1 {
		return m, errors.New("it says no format")
	}
	if head.Format != Format {
		return m, &FormatError{file, head.Format, head.Program}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	for _, f := range m.Files {
		if !isKnownName(f.Name) || f.Size < 0 {
			return m, fmt.Errorf("%q is no name of a file in a backup", f.Name)
		}
	}
	return m, nil
}

// isKnownName reports whether a backup may hold a file of this name. A restore writes no other paths, whatever a backup contains.
func isKnownName(name string) bool {
	top, rest, isBelow := strings.Cut(name, "/")
	if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) {
		return false
	}
	if isBelow {
		return rest != "lock" && slices.Contains([]string{logFolder, nodeFolder, "vintages", "networks"}, top)
	}
	return slices.Contains([]string{vaultFile, tokenFile, "last-vintage", "last-network"}, name)
}
