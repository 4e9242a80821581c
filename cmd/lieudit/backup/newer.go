package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
	"lieudit/schemas/event"
)

// OtherLogError says that a folder holds another log than the backup.
type OtherLogError struct{ Folder, Log, Wanted string }

func (e *OtherLogError) Error() string {
	return fmt.Sprintf("%s holds the log %s, and the backup the log %s", e.Folder, e.Log, e.Wanted)
}

// newerLog is what is left of a log that went on after a copy was taken.
type newerLog struct {
	dir    string // its folder
	work   string // where what is whole of it is copied to: nothing is changed in what may be all that is left
	copied Log    // the copy's own log
	target Target
}

// newNewerLog finds the log in what an operator named.
func newNewerLog(dir, work string, m Manifest, t Target) (*newerLog, error) {
	copied := m.mainLog()
	if copied == nil {
		return nil, errors.New("the log of this backup is on EventStoreDB: name what was erased and revoked since by hand")
	}
	found, err := findLogFolder(dir)
	return &newerLog{found, work, *copied, t}, err
}

// findLogFolder is the folder of the log within what an operator named: a data folder, its folder of logs, or the log's own.
func findLogFolder(dir string) (string, error) {
	for _, below := range []string{"log/core", "core", "."} {
		folder := filepath.Join(dir, filepath.FromSlash(below))
		if found, err := filepath.Glob(filepath.Join(folder, "*.log")); err == nil && len(found) > 0 {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%s: %w", dir, journal.ErrNoLog)
}

// read reads what was closed, erased and revoked after the copy, as far as the log can be read. damage says where it cannot; nil: it
// is whole.
func (n *newerLog) read(ctx context.Context) (all []repeated, damage *eventstore.CorruptError, err error) {
	salvaged, err := offline.SalvageLog(ctx, n.dir, n.work)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(n.work)) }()
	if salvaged.LogID != uuid.Nil && salvaged.LogID != n.copied.ID {
		return nil, nil, &OtherLogError{n.dir, salvaged.LogID.String(), n.copied.ID.String()}
	}
	if salvaged.HasLog {
		if all, err = n.readWhole(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, dir := range []string{n.work, n.dir} { // the second: the log that was named is a salvaged one
		lost, err := readLost(filepath.Join(dir, offline.LostName))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, lost...)
	}
	return all, salvaged.Damage, nil
}

// readWhole reads the whole part of the log, from where the copy ends. A log that parted from the copy before is read from its
// beginning: to repeat too much does no harm.
func (n *newerLog) readWhole(ctx context.Context) (all []repeated, err error) {
	log, err := journal.Open(n.work, journal.Options{Clock: n.target.Now, Logger: n.target.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var after eventstore.Checkpoint
	if n.copied.Last != uuid.Nil {
		after = eventstore.Checkpoint{Log: n.copied.ID, Position: n.copied.LastAt, Event: n.copied.Last}
	}
	all, err = readRepeated(ctx, log, after)
	var diverged *eventstore.DivergedError
	if errors.As(err, &diverged) {
		all, err = readRepeated(ctx, log, eventstore.Checkpoint{})
	}
	return all, err
}

// readRepeated reads the closings, erasures and revocations after a checkpoint, in their order.
func readRepeated(ctx context.Context, log eventstore.Store, after eventstore.Checkpoint) (all []repeated, err error) {
	for s, err := range log.ReadAll(ctx, after, repeatedCategories()) {
		if err != nil {
			return nil, err
		}
		if s.Kind == eventstore.EventAppeared {
			all = appendRepeated(all, s.Event.Stream, s.Event.Type, s.Event.Data)
		}
	}
	return all, nil
}

func repeatedCategories() eventstore.Filter {
	return eventstore.Filter{account.Aggregate.Category, access.Aggregate.Category}
}

// appendRepeated appends the command that made an event, if it is one that a restore repeats. An event that this program cannot
// decode is none of those.
func appendRepeated(all []repeated, stream, eventType string, data []byte) []repeated {
	decoded, err := event.Decode(eventType, data)
	if err != nil {
		return all
	}
	id := eventstore.EntityID(stream)
	switch e := decoded.(type) {
	case event.AccountClosed, event.AccountErased:
		return append(all, repeated{kind: eventType, account: id})
	case event.KeyRevoked:
		return append(all, repeated{kind: eventType, account: id, id: e.Key})
	case event.TokenRevoked:
		return append(all, repeated{kind: eventType, id: e.Token})
	}
	return all
}

// readLost reads the file with the events that were found behind the damage of a log. Where there is none, nothing was found.
func readLost(path string) (all []repeated, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := json.NewDecoder(bufio.NewReader(file))
	for {
		var found struct {
			Stream, Type string
			Data         json.RawMessage
		}
		if err := lines.Decode(&found); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if repeatedCategories().Matches(found.Stream) {
			all = appendRepeated(all, found.Stream, found.Type, found.Data)
		}
	}
}
