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
	// maxEventData is the most that an event of several rows holds.
	maxEventData = 64 << 10
	// eventOverhead is more than what an event holds but for its rows, and its envelope.
	eventOverhead = 2 << 10
)

// stager makes the events of one command's change: one event where its rows are few; else the rows are staged, and a commit makes
// them real. The same rows again are not staged again.
type stager struct {
	locations  *Locations
	account    string
	meta       commands.Metadata
	stagedRows []event.SiteRow
	commit     event.SyncCommitted
}

func (l *Locations) newStager(account string, meta commands.Metadata) *stager {
	return &stager{locations: l, account: account, meta: meta}
}

// buildResult is a decision to make a change happen. Where its rows cannot be staged nothing happens.
func (s *stager) buildResult(ctx context.Context, c siteChanges) commands.Result {
	events, err := s.buildEvents(ctx, c)
	if err != nil {
		return commands.Fail(err)
	}
	return commands.Append(events...)
}

// buildEvents are what makes a change happen.
func (s *stager) buildEvents(ctx context.Context, c siteChanges) ([]event.Event, error) {
	switch {
	case len(c.rows) == 0 && c.IdempotencyKeyHash == "":
		return nil, nil
	case len(c.rows) == 0:
		return []event.Event{event.UnchangedWriteRecorded{SiteWriteSummary: c.SiteWriteSummary}}, nil
	case fitsOneEvent(c.rows):
		return []event.Event{event.SitesChanged{SiteWriteSummary: c.SiteWriteSummary, Rows: c.rows}}, nil
	}
	alreadyStaged, err := s.isStaged(ctx, c.rows)
	if err == nil && !alreadyStaged {
		err = s.stageRows(ctx, c.rows)
	}
	if err != nil {
		return nil, err
	}
	s.commit.SiteWriteSummary = c.SiteWriteSummary
	return []event.Event{s.commit}, nil
}

// isStaged says whether the rows are staged, and still on the log: one restored from a copy may be without them.
func (s *stager) isStaged(ctx context.Context, rows []event.SiteRow) (bool, error) {
	if s.commit.EventCount == 0 || !slices.EqualFunc(s.stagedRows, rows, equalRows) {
		return false, nil
	}
	stream, events, _ := s.commit.StagedStream()
	for _, err := range s.locations.store.ReadStream(ctx, stream, eventstore.Revision(events-1), eventstore.Forward) {
		return err == nil, err
	}
	return false, nil
}

func equalRows(a, b event.SiteRow) bool {
	return a.ExternalID == b.ExternalID && a.Operation == b.Operation && a.Version == b.Version && a.Content == b.Content
}

// stageRows appends the rows to a stream of their own.
func (s *stager) stageRows(ctx context.Context, rows []event.SiteRow) error {
	id := uuid.New()
	commit := event.SyncCommitted{SyncID: id.String(), RowCount: len(rows)}
	staging, _, _ := commit.StagedStream()
	digest, last := sha256.New(), eventstore.NoStream
	for n, events := range splitIntoAppends(rows) {
		part := uuid.NewSHA1(id, []byte(strconv.Itoa(n)))
		batch, err := s.locations.codec.Encode(ctx, streamOf(s.account), part, s.meta.EventMetadata(id), events)
		if err != nil {
			return err
		}
		for _, p := range batch {
			digest.Write(p.Data)
		}
		done, err := eventstore.AppendUntilKnown(ctx, s.locations.store, staging, last, batch, eventstore.Resend{})
		if err != nil {
			return fmt.Errorf("append to %s: %w", staging, err)
		}
		last = done.Revision
		commit.EventCount += len(events)
	}
	commit.Digest = digest.Sum(nil)
	s.stagedRows, s.commit = rows, commit
	return nil
}

// splitIntoAppends are the appends that rows are staged in.
func splitIntoAppends(rows []event.SiteRow) [][]event.Event {
	var appends [][]event.Event
	remaining := 0
	for len(rows) > 0 {
		n, weight := countFittingRows(rows)
		if remaining < weight {
			appends, remaining = append(appends, nil), eventstore.MaxAppendBytes
		}
		last := &appends[len(appends)-1]
		*last = append(*last, event.SyncStaged{Rows: rows[:n]})
		rows, remaining = rows[n:], remaining-weight
	}
	return appends
}

func fitsOneEvent(rows []event.SiteRow) bool {
	n, _ := countFittingRows(rows)
	return n == len(rows) && n > 0
}

// countFittingRows is how many of the first rows one event holds, at least one, and the most it weighs then.
func countFittingRows(rows []event.SiteRow) (n, weight int) {
	weight = eventOverhead + maxRowSize(rows[0])
	for n = 1; n < len(rows) && weight+maxRowSize(rows[n]) <= maxEventData; n++ {
		weight += maxRowSize(rows[n])
	}
	return n, weight
}

// maxRowSize is the most a row takes in an event's data, its content sealed.
func maxRowSize(r event.SiteRow) int {
	const rowOverhead, sealOverhead = 256, 64
	return rowOverhead + 6*len(r.ExternalID) + base64.RawStdEncoding.EncodedLen(sealOverhead+len(r.Content))
}
