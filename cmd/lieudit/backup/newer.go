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
	"time"

	"github.com/google/uuid"

	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
	"lieudit/schemas/event"
)

// OtherLogError means that a folder holds a log other than that of the backup.
type OtherLogError struct{ Folder, Log, Wanted string }

func (e *OtherLogError) Error() string {
	return fmt.Sprintf("%s holds the log %s, and the backup the log %s", e.Folder, e.Log, e.Wanted)
}

// OlderLogError means that a folder holds an older copy of the log than the backup, which does not contain what happened since.
type OlderLogError struct {
	Folder      string
	End, Copied time.Time // of the last events
}

func (e *OlderLogError) Error() string {
	return fmt.Sprintf("the log in %s ends before the backup (its last event is of %s, the backup's of %s): it is an older copy. Name the newer "+
		"log, or by hand what was erased and revoked since", e.Folder, e.End.UTC().Format(time.RFC3339), e.Copied.UTC().Format(time.RFC3339))
}

// newerLog is what is left of a log that continued after a copy was taken.
type newerLog struct {
	dir    string // its folder
	work   string // the undamaged part is copied here: nothing is changed in what may be all that is left
	copied Log    // the copy's own log
	target Target
}

// newNewerLog finds the log in the path that an operator gave.
func newNewerLog(dir, work string, m Manifest, t Target) (*newerLog, error) {
	copied := m.mainLog()
	if copied == nil {
		return nil, errors.New("the log of this backup is on EventStoreDB: name what was erased and revoked since by hand")
	}
	found, err := findLogFolder(dir)
	return &newerLog{found, work, *copied, t}, err
}

// findLogFolder returns the folder of the log within the path that an operator gave: a data folder, its folder of logs, or the log's own.
func findLogFolder(dir string) (string, error) {
	for _, below := range []string{"log/core", "core", "."} {
		folder := filepath.Join(dir, filepath.FromSlash(below))
		if found, err := filepath.Glob(filepath.Join(folder, "*.log")); err == nil && len(found) > 0 {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%s: %w", dir, journal.ErrNoLog)
}

// newerContents is what could be read of a newer log. A zero time is unknown.
type newerContents struct {
	all    []repeated // what was closed, erased and revoked after the copy
	damage string     // why there may have been more; "" if the log is whole
	until  time.Time  // nothing is missing up to here
	behind int        // events that were found behind the damage
}

// read reads what was closed, erased and revoked after the copy, as far as the log can be read. It fails with an *OtherLogError,
// and with an *OlderLogError for a whole log that ends before the copy.
func (n *newerLog) read(ctx context.Context) (found newerContents, err error) {
	salvaged, err := offline.SalvageLog(ctx, n.dir, n.work)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(n.work)) }()
	if salvaged.LogID != uuid.Nil && salvaged.LogID != n.copied.ID {
		return found, &OtherLogError{n.dir, salvaged.LogID.String(), n.copied.ID.String()}
	}
	hasParted := false
	if salvaged.HasLog {
		if found.all, hasParted, err = n.readWhole(ctx); err != nil {
			return found, err
		}
	}
	behind, err := readLost(filepath.Join(n.work, offline.LostName))
	if err != nil {
		return found, err
	}
	before, err := readLost(filepath.Join(n.dir, offline.LostName)) // the log that was named is a salvaged one
	if err != nil {
		return found, err
	}
	found.all = append(append(found.all, behind.all...), before.all...)
	switch {
	case salvaged.Damage != nil:
		found.damage, found.until, found.behind = salvaged.Damage.Error(), salvaged.LastTime, behind.events
	case before.exists && (hasParted || !before.isBefore(n.copied.LastAt)):
		found.damage, found.behind = "it was salvaged once, and what could not be read then is not in it", before.events
	case salvaged.Last.Position < n.copied.LastAt:
		return found, &OlderLogError{Folder: n.dir, End: salvaged.LastTime, Copied: n.copied.Until}
	}
	return found, nil
}

// readWhole reads the undamaged part of the log from the end of the copy on. A log that diverged from the copy earlier is read from its
// beginning: repeating too much does no harm.
func (n *newerLog) readWhole(ctx context.Context) (all []repeated, hasParted bool, err error) {
	log, err := journal.Open(n.work, journal.Options{Clock: n.target.Now, Logger: n.target.Log})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var after eventstore.Checkpoint
	if n.copied.Last != uuid.Nil {
		after = eventstore.Checkpoint{Log: n.copied.ID, Position: n.copied.LastAt, Event: n.copied.Last}
	}
	all, err = readRepeated(ctx, log, after)
	var diverged *eventstore.DivergedError
	if hasParted = errors.As(err, &diverged); hasParted {
		all, err = readRepeated(ctx, log, eventstore.Checkpoint{})
	}
	return all, hasParted, err
}

// readRepeated reads the closings, erasures and revocations after a checkpoint, in order.
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
	return eventstore.Filter{account.Aggregate.Category, areatoken.Aggregate.Category}
}

// appendRepeated appends the command that made an event, if a restore repeats it. It skips an event that this program cannot decode.
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

// lostEvents is the content of the file with the events that were found behind the damage of a log.
type lostEvents struct {
	exists bool
	all    []repeated
	events int
	first  eventstore.Position
}

// isBefore reports whether the damage is known to lie before a position.
func (l lostEvents) isBefore(at eventstore.Position) bool { return l.events > 0 && l.first <= at }

// readLost reads the file with the events that were found behind the damage of a log. If there is no file, none were found.
func readLost(path string) (lost lostEvents, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lost, nil
	}
	if err != nil {
		return lost, err
	}
	defer file.Close()
	lost.exists = true
	lines := json.NewDecoder(bufio.NewReader(file))
	for {
		var found struct {
			Position     eventstore.Position
			Stream, Type string
			Data         json.RawMessage
		}
		if err := lines.Decode(&found); errors.Is(err, io.EOF) {
			return lost, nil
		} else if err != nil {
			return lost, fmt.Errorf("%s: %w", path, err)
		}
		if lost.events++; lost.events == 1 {
			lost.first = found.Position
		}
		if repeatedCategories().Matches(found.Stream) {
			lost.all = appendRepeated(lost.all, found.Stream, found.Type, found.Data)
		}
	}
}
