package offline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// LostName is the file next to a salvaged log with the events that could be read behind the damage, one JSON object per line.
const LostName = "lost.ndjson"

// Salvaged is the result of SalvageLog. Contents describes the new log.
type Salvaged struct {
	Contents
	Mended []string                 // segments whose damaged header was restored; none of their events is lost
	Damage *eventstore.CorruptError // where the whole part ends; nil if the log is whole
	HasLog bool                     // false if not even the first segment could be read: then the folder holds no log

	// The events that could be read behind the damage, by stream, ordered by name. The fields below are zero if Lost is
	// empty.
	Lost                        []LostStream
	LostFirst, LostLast         eventstore.Position
	LostFirstTime, LostLastTime time.Time
}

// LostEvents is the number of events that could be read behind the damage.
func (s Salvaged) LostEvents() (n int) {
	for _, l := range s.Lost {
		n += l.Events
	}
	return n
}

// LostStream summarises the events of one stream that could be read behind the damage. There may have been more.
type LostStream struct {
	Stream      string
	Events      int
	First, Last eventstore.Revision
}

// SalvageLog makes a log in dstDir out of every whole append of a damaged one up to the first damage. It has the same UUID,
// and its events keep their positions. srcDir is only read; no process should be writing it. dstDir must be empty or missing.
//
// Events that can still be read behind the damage do not go into the log, since events before them are missing: they are
// written to the file LostName in dstDir exactly as the log has them, with personal texts encrypted. An error means that
// nothing could be saved, and leaves dstDir unchanged; damage is not an error.
func SalvageLog(ctx context.Context, srcDir, dstDir string) (Salvaged, error) {
	w, err := newFolderWriter(dstDir)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage log: %w", err)
	}
	salvaged, err := salvageInto(ctx, srcDir, w)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage log in %s: %w", srcDir, errors.Join(err, w.discard()))
	}
	return salvaged, nil
}

// salvageInto copies the whole part and then collects the events behind it.
func salvageInto(ctx context.Context, srcDir string, w *folderWriter) (Salvaged, error) {
	var s Salvaged
	src, mended, err := journal.MendHeaders(journal.ReadOnlyDir(srcDir))
	if err != nil {
		return s, err
	}
	s.Mended = mended
	s.Contents, err = copyWhole(ctx, src, w)
	if err != nil && !errors.As(err, &s.Damage) {
		return s, err
	}
	if s.HasLog = w.first != ""; s.HasLog {
		if err := w.finish(); err != nil {
			return s, err
		}
	}
	if s.Damage == nil {
		return s, nil
	}
	return s, s.collectLost(ctx, src, w)
}

// collectLost writes the events behind the whole part to a file, which may stay empty.
func (s *Salvaged) collectLost(ctx context.Context, src journal.FS, w *folderWriter) (err error) {
	if s.LogID == uuid.Nil { // the first segment is gone
		if s.LogID, err = journal.FindLogID(src); err != nil || s.LogID == uuid.Nil {
			return err
		}
	}
	f, err := w.create(LostName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	streams, out := map[string]*LostStream{}, bufio.NewWriterSize(f, bufferSize)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	err = journal.FindEvents(ctx, src, s.LogID, s.End, func(e journal.FoundEvent) error {
		s.addLost(streams, e)
		return lines.Encode(newLostLine(e))
	})
	if err != nil {
		return err
	}
	for _, l := range streams {
		s.Lost = append(s.Lost, *l)
	}
	slices.SortFunc(s.Lost, func(a, b LostStream) int { return strings.Compare(a.Stream, b.Stream) })
	return errors.Join(out.Flush(), f.Sync(), syncDir(w.dir))
}

// addLost counts one event behind the damage.
func (s *Salvaged) addLost(streams map[string]*LostStream, e journal.FoundEvent) {
	if s.LostFirst == 0 {
		s.LostFirst, s.LostFirstTime = e.Position, e.Time
	}
	s.LostLast, s.LostLastTime = e.Position, e.Time
	l := streams[e.Stream]
	if l == nil {
		l = &LostStream{Stream: strings.Clone(e.Stream), First: e.Revision}
		streams[l.Stream] = l
	}
	l.Events++
	l.Last = e.Revision
}

// lostLine is one line of the file of lost events. Metadata and data that are not JSON are base64.
type lostLine struct {
	Position   eventstore.Position `json:"position"`
	Stream     string              `json:"stream"`
	Revision   eventstore.Revision `json:"revision"`
	ID         uuid.UUID           `json:"id"`
	Type       string              `json:"type"`
	Time       time.Time           `json:"time"`
	EndsAppend bool                `json:"ends_append"`
	Metadata   any                 `json:"metadata,omitempty"`
	Data       any                 `json:"data,omitempty"`
}

func newLostLine(e journal.FoundEvent) lostLine {
	return lostLine{e.Position, e.Stream, e.Revision, e.ID, e.Type, e.Time, e.EndsAppend, jsonOrBase64(e.Metadata), jsonOrBase64(e.Data)}
}

// jsonOrBase64 is a value that the encoder writes unchanged if it is JSON, otherwise as base64.
func jsonOrBase64(b []byte) any {
	switch {
	case len(b) == 0:
		return nil
	case json.Valid(b):
		return json.RawMessage(b)
	}
	return b
}
