package locations

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

const (
	// maxData is the most that an event of several rows holds.
	maxData = 64 << 10
	// frame is more than what an event holds but for its rows, and its envelope.
	frame = 2 << 10
)

// stager makes the events of one command's change: one event where its rows are few; else the rows are staged, and a commit makes
// them real. The same rows again are not staged again.
type stager struct {
	log     *Locations
	account string
	in      commands.Intent
	staged  []event.SiteRow
	commit  event.SyncCommitted
}

func (l *Locations) stager(account string, in commands.Intent) *stager {
	return &stager{log: l, account: account, in: in}
}

// result is a decision to make a change happen. Where its rows cannot be staged nothing happens.
func (s *stager) result(ctx context.Context, c change) commands.Result {
	events, err := s.events(ctx, c)
	if err != nil {
		return commands.Fail(err)
	}
	return commands.Append(events...)
}

// events are what makes a change happen.
func (s *stager) events(ctx context.Context, c change) ([]event.Event, error) {
	switch {
	case len(c.rows) == 0 && c.Key == "":
		return nil, nil
	case len(c.rows) == 0:
		return []event.Event{event.RequestKept{SitesWritten: c.SitesWritten}}, nil
	case fits(c.rows):
		return []event.Event{event.SitesChanged{SitesWritten: c.SitesWritten, Rows: c.rows}}, nil
	}
	kept, err := s.stands(ctx, c.rows)
	if err == nil && !kept {
		err = s.stage(ctx, c.rows)
	}
	if err != nil {
		return nil, err
	}
	s.commit.SitesWritten = c.SitesWritten
	return []event.Event{s.commit}, nil
}

// stands says whether the rows are staged, and still on the log: one restored from a copy may be without them.
func (s *stager) stands(ctx context.Context, rows []event.SiteRow) (bool, error) {
	if s.commit.Events == 0 || !slices.EqualFunc(s.staged, rows, sameRow) {
		return false, nil
	}
	stream, events, _ := s.commit.Staging()
	for _, err := range s.log.store.ReadStream(ctx, stream, eventstore.Revision(events-1), eventstore.Forward) {
		return err == nil, err
	}
	return false, nil
}

func sameRow(a, b event.SiteRow) bool {
	return a.ExternalID == b.ExternalID && a.Op == b.Op && a.Version == b.Version && a.Content == b.Content
}

// stage appends the rows to a stream of their own.
func (s *stager) stage(ctx context.Context, rows []event.SiteRow) error {
	id := uuid.New()
	commit := event.SyncCommitted{Sync: id.String(), Rows: len(rows)}
	name, _, _ := commit.Staging()
	digest, end := sha256.New(), eventstore.NoStream
	for n, events := range batches(rows) {
		part := uuid.NewSHA1(id, []byte(strconv.Itoa(n)))
		batch, err := s.log.codec.Encode(ctx, stream(s.account), part, s.in.Metadata(id), events)
		if err != nil {
			return err
		}
		for _, p := range batch {
			digest.Write(p.Data)
		}
		done, err := commands.Settle(ctx, s.log.store, name, end, batch)
		if err != nil {
			return fmt.Errorf("append to %s: %w", name, err)
		}
		end = done.Revision
		commit.Events += len(events)
	}
	commit.Digest = digest.Sum(nil)
	s.staged, s.commit = rows, commit
	return nil
}

// batches are the appends that rows are staged in.
func batches(rows []event.SiteRow) [][]event.Event {
	var all [][]event.Event
	room := 0
	for len(rows) > 0 {
		n, weight := most(rows)
		if room < weight {
			all, room = append(all, nil), eventstore.MaxAppend
		}
		last := &all[len(all)-1]
		*last = append(*last, event.SyncStaged{Rows: rows[:n]})
		rows, room = rows[n:], room-weight
	}
	return all
}

func fits(rows []event.SiteRow) bool {
	n, _ := most(rows)
	return n == len(rows) && n > 0
}

// most is how many of the first rows one event holds, at least one, and the most it weighs then.
func most(rows []event.SiteRow) (n, weight int) {
	weight = frame + size(rows[0])
	for n = 1; n < len(rows) && weight+size(rows[n]) <= maxData; n++ {
		weight += size(rows[n])
	}
	return n, weight
}

// size is the most a row takes in an event's data, its content sealed.
func size(r event.SiteRow) int {
	const shell, sealing = 256, 64
	return shell + 6*len(r.ExternalID) + base64.RawStdEncoding.EncodedLen(sealing+len(r.Content))
}
